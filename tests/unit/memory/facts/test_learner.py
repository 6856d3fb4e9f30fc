"""Facts that a model finds in plain talk, and those that it invents."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import anyio.lowlevel
import pytest

from memory.episodes.turn import Turn
from memory.facts.fact import Fact
from memory.facts.learner import MAX_QUESTIONS_AN_HOUR, FactLearner
from memory.facts.told import NewFact, ToldTurn
from memory.small_model import ModelUnavailable

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TURN = Turn(
    turn_id="trn_1",
    conversation_id="cnv_1",
    owner_id="ann",
    occurred_at=AT,
    message="Ben moved the import to Tuesday, 9 o'clock. 我们最后决定用 RabbitMQ 做队列。",
    reply="Understood. The import broke because a stale lock file was left in the spool.",
    labels={"project_id": "shop"},
)


class Learned:
    """A learner on a model with one answer, and what it kept."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = 0
        self.kept: list[NewFact] = []
        self.results: list[str] = []
        self.learner = FactLearner(
            self._ask, keep=self._keep, now=lambda: AT, on_result=self.results.append
        )

    async def _ask(self, *, system: str, prompt: str, timeout_s: float) -> str:
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, str) else json.dumps(self.answer)

    async def _keep(self, new: Sequence[NewFact], turn: ToldTurn) -> Sequence[Fact]:
        await anyio.lowlevel.checkpoint()
        assert (turn.turn_id, turn.scope.project_id) == ("trn_1", "shop")
        self.kept += new
        return []


def found(text: str, evidence: str, **more: Any) -> dict[str, Any]:
    return {"facts": [{"text": text, "evidence": evidence, **more}]}


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("The import is on Tuesday at 9 o'clock", "moved the import to Tuesday, 9 o'clock"),
        ("队列用 RabbitMQ", "我们最后决定用 RabbitMQ 做队列"),
        (
            "The import broke because of a stale lock file",
            "The import broke because a stale lock file",
        ),
    ],
)
async def test_what_the_conversation_says_is_kept_with_its_evidence(
    text: str, evidence: str
) -> None:
    learned = Learned(found(text, evidence))
    await learned.learner.learn(TURN)
    assert [(fact.text, fact.evidence, fact.origin) for fact in learned.kept] == [
        (text, evidence, "model")
    ]


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("The import is on Friday", "moved the import to Friday"),
        ("The import is on Tuesday at 10", "moved the import to Tuesday, 9 o'clock"),
        ("Clara moved the import to Tuesday", "moved the import to Tuesday"),
        ("The person likes 9 cats and quiet mornings", "moved the import to Tuesday, 9 o'clock"),
        ("队列改用 Kafka", "我们最后决定用 RabbitMQ 做队列"),
        ("The import is on Tuesday", "import"[:5]),
        ("The import is on Tuesday", ""),
    ],
)
async def test_what_the_conversation_does_not_say_is_dropped(text: str, evidence: str) -> None:
    learned = Learned(found(text, evidence))
    await learned.learner.learn(TURN)
    assert (learned.kept, learned.results) == ([], ["answered", "dropped"])


@pytest.mark.parametrize(
    "answer", ["", "[]", '{"facts": [1]}', '{"facts": [], "more": 1}', ModelUnavailable("away")]
)
async def test_an_answer_of_another_form_keeps_nothing_and_the_model_rests(answer: Any) -> None:
    learned = Learned(answer)
    for _ in range(5):
        await learned.learner.learn(TURN)
    assert (learned.kept, learned.asked) == ([], 3)
    assert learned.results == ["failed"] * 3 + ["skipped"] * 2


async def test_the_questions_of_an_hour_are_bounded() -> None:
    learned = Learned({"facts": []})
    for _ in range(MAX_QUESTIONS_AN_HOUR + 5):
        await learned.learner.learn(TURN)
    assert learned.asked == MAX_QUESTIONS_AN_HOUR
