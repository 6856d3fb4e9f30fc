"""What a small model finds in an ended turn goes through the door of the agent's tools."""

import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio.lowlevel
import pytest

from memory.facts.learner import MAX_CALLS, MAX_QUESTIONS_AN_HOUR, FactLearner
from memory.items.scope import Scope
from memory.record.store import SqlRecordStore
from memory.record.turn_item import RecordedTurn, item_of
from memory.remote.small_model import ModelUnavailable
from memory.stores.sqlite.database import Database
from policies.secrets import mask_secrets
from tests.support.episodes import dump, make_turn, recorder_on
from tests.support.fact_keepers import forgetting_on, keeper_on
from tests.support.intents import completed, received
from tests.support.recall import make_item

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SECRET = "sk-ant-api03-" + "k7Qz" * 22 + "AA"
MOVED = "moved the import to Tuesday"
TURN = make_turn(
    message=f"Ben {MOVED}, 9 o'clock. 我们最后决定用 RabbitMQ 做队列。",
    reply=f"Understood, with {SECRET}. The import broke because a stale lock file was left.",
    labels={"project_id": "shop"},
)


class Learned:
    """A learner with a model of one answer, on a real database."""

    def __init__(self, database: Database, answer: Any) -> None:
        self.answer = answer
        self.prompts: list[str] = []
        self.results: list[str] = []
        self.meanwhile: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint
        self.keeper = keeper_on(database)
        self.learner = FactLearner(
            self._ask, keeper=self.keeper, now=lambda: AT, on_result=self.results.append
        )

    async def _ask(self, *, system: str, prompt: str, timeout_s: float) -> str:
        self.prompts.append(prompt)
        await self.meanwhile()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, str) else json.dumps(self.answer)

    async def held(self) -> Sequence[str]:
        return [fact.text for fact in await self.keeper.store.holding("ann")]


def fact(text: str, evidence: str, **more: Any) -> dict[str, Any]:
    return {"text": text, "evidence": evidence, **more}


async def test_what_the_person_said_is_kept_replaced_and_forgotten(database: Database) -> None:
    learned = Learned(database, {})
    scope = Scope(owner_id="ann")
    old = await learned.keeper.write("The import is on Monday", scope)
    gone = await learned.keeper.write("The queue is Kafka", scope)
    learned.answer = {
        "remember": [
            fact("The import is on Tuesday", MOVED, replaces=[old.id]),
            fact("The import broke", "because a stale lock file was left"),
        ],
        "forget": [{"ids": [gone.id], "evidence": "我们最后决定用 RabbitMQ"}],
    }
    await learned.learner.learn(TURN)
    assert await learned.held() == ["The import is on Tuesday"], "the reply is no evidence"
    assert learned.results == ["answered", "kept", "dropped", "kept"]
    (prompt,) = learned.prompts
    assert SECRET not in prompt
    assert old.id in prompt
    (kept,) = await learned.keeper.store.holding("ann")
    assert (kept.origin, kept.evidence) == ("model", MOVED)


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.parametrize("evidence", [MOVED, "我们最后决定用 RabbitMQ"])
async def test_nothing_is_learned_of_a_turn_that_is_forgotten_while_the_model_reads_it(
    database: Database, evidence: str, *, is_deleted: bool
) -> None:
    record = SqlRecordStore(database, lambda: AT, deliver_to=[])
    told = make_item(TURN.turn_id, TURN.message, kind="turn", turn_id=TURN.turn_id)
    await record.put([told], without=[], deleted=[], copies={})

    async def forget() -> None:
        if is_deleted:
            gone = [TURN.turn_id]
            await record.put([], without=gone, deleted=gone, copies={})
        else:
            assert await forgetting_on(database).forget(TURN.turn_id, Scope(owner_id="ann"))

    learned = Learned(database, {"remember": [fact("The import is on Tuesday", evidence)]})
    learned.meanwhile = forget
    await learned.learner.learn(TURN)
    assert await learned.held() == []
    assert learned.results == ["answered", "dropped"]


@pytest.mark.parametrize(
    ("message", "evidence"),
    [
        ("Forget that the queue is Kafka, please.", "Forget that the queue"),
        ("忘掉队列用的是 Kafka 这件事", "忘掉队列"),
    ],
)
async def test_a_turn_that_asked_to_forget_leaves_no_word(
    database: Database, message: str, evidence: str
) -> None:
    """It is recorded already when the model reads it."""
    learned = Learned(database, {})
    gone = await learned.keeper.write("The queue is Kafka", Scope(owner_id="ann"))
    await recorder_on(database).record_intents([received(message), completed()])
    turn = RecordedTurn(
        turn_id="trn_1",
        conversation_id="cnv_1",
        owner_id="ann",
        position=1,
        occurred_at=AT,
        message=message,
    )
    item = item_of(turn, (), mask_secrets, AT)
    assert item is not None
    record = SqlRecordStore(database, lambda: AT, deliver_to=[])
    await record.put([item], without=[], deleted=[], copies={})
    learned.answer = {"forget": [{"ids": [gone.id], "evidence": evidence}]}
    await learned.learner.learn(make_turn(message=message))
    assert learned.results == ["answered", "kept"]
    assert "kafka" not in (await dump(database)).casefold()
    await record.put([item], without=[], deleted=[], copies={})
    assert "kafka" not in (await dump(database)).casefold(), "nor is it recorded again"


async def test_at_most_some_calls_are_taken(database: Database) -> None:
    facts = [fact(f"Import {number}", MOVED) for number in range(MAX_CALLS + 1)]
    learned = Learned(database, {"remember": facts})
    await learned.learner.learn(TURN)
    assert len(await learned.held()) == MAX_CALLS


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[]",
        {"remember": [1]},
        {"remember": [{"text": "x"}]},
        {"forget": [{"ids": [1], "evidence": MOVED}]},
        {"remember": [], "more": 1},
        ModelUnavailable("away"),
    ],
)
async def test_an_answer_of_another_form_keeps_nothing_and_the_model_rests(
    database: Database, answer: Any
) -> None:
    learned = Learned(database, answer)
    for _ in range(5):
        await learned.learner.learn(TURN)
    assert (await learned.held(), len(learned.prompts)) == ([], 3)
    assert learned.results == ["failed"] * 3 + ["skipped"] * 2


async def test_the_questions_of_an_hour_are_bounded(database: Database) -> None:
    learned = Learned(database, {"remember": []})
    for _ in range(MAX_QUESTIONS_AN_HOUR + 5):
        await learned.learner.learn(TURN)
    assert len(learned.prompts) == MAX_QUESTIONS_AN_HOUR
