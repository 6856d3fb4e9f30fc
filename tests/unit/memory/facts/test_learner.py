"""Requests to remember: which messages are, and what is learned of them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest

from memory.facts.fact import Fact
from memory.facts.learner import MAX_FACTS, MAX_QUESTIONS_AN_HOUR, FactLearner
from memory.facts.matching import (
    MIN_SHARED,
    MIN_SHARED_UNSAID,
    MIN_TO_FORGET,
    corrected,
    nearest,
)
from memory.facts.requests import Wished, read_wishes
from memory.facts.told import NewFact, ToldTurn
from memory.small_model import ModelUnavailable
from memory.wording import contradicts
from tests.support.episodes import make_turn

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SECRET = "sk-ant-api03-" + "k7Qz" * 22 + "AA"
TURN = make_turn(
    message="Ben moved the import to Tuesday, 9 o'clock. 我们最后决定用 RabbitMQ 做队列。",
    reply=f"Understood, with {SECRET}. The import broke because a stale lock file was left in the spool.",
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
        assert SECRET not in prompt
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


MOVED = "moved the import to Tuesday, 9 o'clock"
SAID = {
    "The import is on Tuesday at 9 o'clock": MOVED,
    "队列用 RabbitMQ": "我们最后决定用 RabbitMQ 做队列",
    "The import broke because of a stale lock file": "The import broke because a stale lock file",
}
NOT_SAID = [
    ("The import is on Friday", "moved the import to Friday"),
    ("The import is on Tuesday at 10", MOVED),
    ("Clara moved the import to Tuesday", "moved the import to Tuesday"),
    ("The person likes 9 cats and quiet mornings", MOVED),
    ("队列改用 Kafka", "我们最后决定用 RabbitMQ 做队列"),
    ("The spool", "spool"),
    ("The import is on Tuesday", ""),
]


async def test_what_the_conversation_says_is_kept_with_its_evidence_and_nothing_else() -> None:
    for text, evidence in SAID.items():
        learned = Learned(found(text, evidence))
        await learned.learner.learn(TURN)
        (fact,) = learned.kept
        assert (fact.text, fact.evidence, fact.origin) == (text, evidence, "model")
    learned = Learned({"facts": found(text, evidence)["facts"] * (MAX_FACTS + 1)})
    await learned.learner.learn(TURN)
    assert len(learned.kept) == MAX_FACTS
    for text, evidence in NOT_SAID:
        learned = Learned(found(text, evidence))
        await learned.learner.learn(TURN)
        assert (learned.kept, learned.results) == ([], ["answered", "dropped"]), text


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


CORPUS = Path(__file__).parent / "messages.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]


def kept(row: dict[str, Any]) -> list[str]:
    """Return the texts that a message makes facts."""

    def is_kept(wish: Wished) -> bool:
        least = MIN_SHARED if wish.is_firm else MIN_SHARED_UNSAID
        about = corrected(wish.text, row["facts"], least) if wish.wish == "correction" else None
        return wish.wish not in ("forget", "undo") and (wish.stands_alone or bool(about))

    return [wish.text for wish in read_wishes(row["message"]) if is_kept(wish)]


def forgotten(row: dict[str, Any]) -> list[str]:
    wishes = [wish for wish in read_wishes(row["message"]) if wish.wish == "forget"]
    return [
        known
        for wish in wishes
        for known in nearest(
            wish.text, row["facts"], MIN_TO_FORGET if wish.is_firm else MIN_SHARED_UNSAID
        )
    ]


def is_right(row: dict[str, Any]) -> bool:
    if row["wish"] == "forget":
        return forgotten(row) == row["contains"] and not kept(row)
    if row["wish"] is None:
        return not kept(row) and not forgotten(row)
    return any(all(part in text for part in row["contains"]) for text in kept(row))


@pytest.mark.parametrize(
    ("asked", "least"), [(True, 0.8), (False, 0.96)], ids=["asked", "ordinary"]
)
def test_most_requests_are_recognised_and_few_ordinary_messages_are_taken_for_one(
    *, asked: bool, least: float
) -> None:
    rows = [row for row in ROWS if (row["wish"] is not None) == asked]
    wrong = [f"{row['message']} -> {kept(row)}" for row in rows if not is_right(row)]
    assert len(wrong) <= (1 - least) * len(rows), "\n".join(wrong)


REQUESTS: dict[str, list[str]] = {
    "Do not forget that I am away on Friday.": ["I am away on Friday"],
    "别忘了我周五不在": ["我周五不在"],
    "remember that I am vegetarian": ["I am vegetarian"],
    "Remember that my kids go to Fernhill Primary.": ["my kids go to Fernhill Primary"],
    "Also, please remember that my locker is number 12.": ["my locker is number 12"],
    "My locker is number 12. Remember that, please.": ["My locker is number 12"],
    "My boss is Ada; please keep that on file.": ["My boss is Ada; please keep that on file"],
    "请记住：我对花生过敏。": ["我对花生过敏"],
    "remember that the release codename is Falcon": ["the release codename is Falcon"],
    "Remember my dentist is Dr. Kaur.": ["my dentist is Dr. Kaur"],
    "Remember this:\n- the vault code is 4417\n- ask Ben\n\nI like tea.": [
        "the vault code is 4417 ask Ben"
    ],
    "No, the demo is on Friday now.": ["the demo is on Friday now"],
    "Petra moved to Lyon - remember that please": ["Petra moved to Lyon"],
    "FYI the code is 9981, remember it.": ["FYI the code is 9981"],
    "不要再用表情符号": ["不要再用表情符号"],
    "取消记住我的工号": ["取消记住我的工号"],
    "记住小敏怀孕了。": ["小敏怀孕了"],
    "Remember that Tuan reviews all SQL. Also create sql.txt.": ["Tuan reviews all SQL"],
    "Note to self: dentist on Friday": ["dentist on Friday"],
    "Can you remember that my badge is 4471?": ["my badge is 4471"],
    "I am getting a 500 error from nginx": [],
    "我不明白这个错误": [],
    "Translate this:\n\nDear all,\n\nRemember that the office is closed on Monday.": [],
    "> remember that the office is closed\n\nWhat does he mean?": [],
    "```\nremember that x is 1\n```": [],
    'What does "remember that the gate is closed" mean?': [],
    "“记住，门的密码是 4417” 这句话用英语怎么说？": [],
}


def test_the_content_of_a_request_is_kept_and_quoted_and_pasted_text_is_none() -> None:
    assert {
        message: [wish.text for wish in read_wishes(message) if wish.is_firm]
        for message in REQUESTS
    } == REQUESTS


def test_a_request_is_not_read_as_its_opposite() -> None:
    for message, wish in (
        ("Petra moved to Lyon - remember that please", "request"),
        ("不要再用表情符号", "statement"),
        ("取消记住我的工号", "forget"),
        ("I don't want you to remember that I smoke", "forget"),
        ("I moved to York last week", "statement"),
    ):
        assert [wished.wish for wished in read_wishes(message)] == [wish]


MANAGER = "Igor is my manager"
LOCKER = "my locker is number 12"
CONTRADICTIONS: list[tuple[str, str, bool]] = [
    (MANAGER, "Igor is on parental leave until March", False),
    (MANAGER, "Igor is on leave now", False),
    ("the Graz office is on floor 3", "the Graz office is open from 9 to 5", False),
    ("王涛是组长", "王涛在休假", False),
    ("Anna is vegetarian", "Anna is pregnant", False),
    (LOCKER, "my locker is number 14", True),
    ("the demo is on Thursday at 3", "the demo is on Friday", True),
    ("the rehearsal is on Monday", "The rehearsal moved to Tuesday", True),
    ("蜂箱放在磨坊后面", "蜂箱改成放在磨坊前面了", True),
    ("the wifi password is tulip", "the wifi password is rosebud", True),
    ("our database is PostgreSQL", "our database is MySQL now", True),
    ("上线时间是五月", "上线时间是六月", True),
]


def test_a_statement_contradicts_another_value_and_not_all_else_of_its_subject() -> None:
    read = [(old, new, contradicts(new, old)) for old, new, _ in CONTRADICTIONS]
    assert read == CONTRADICTIONS


def test_ordinary_sentences_correct_nothing() -> None:
    log = "\n".join(f"2026-11-21 03:01:{n} backup job {n} ended on node 1" for n in range(10, 60))
    for fact, message in (
        ("the nightly backup runs at 02:30", f"why is the backup slow?\n{log}"),
        ("the sprint review is on Friday", "Our sprint planning was on Monday and went badly"),
        ("the invoice limit is 500 EUR", "The invoice total is too high, it shows 730"),
        ("Ana does billing, she started in March", "Ben does search, he started in April"),
        ("the demo is on Thursday", "Translate this:\nThe demo moved to May."),
        ("我们的发布窗口是周四", "周二的发布会改在上海"),
        ("the demo is on Thursday", "Write a story in which the demo is moved to Friday."),
        ("站会是九点半", "翻译成西班牙语：站会改到十点一刻了"),
        ("Igor is my manager", 'The novel says: "Igor is my brother now and lives in Kyiv."'),
    ):
        assert kept({"message": message, "facts": [fact]}) == []


def test_a_correction_that_fits_several_facts_equally_well_corrects_none() -> None:
    lockers = ["a locker is 1", "a locker is 2"]
    assert corrected("no, the other locker", lockers, MIN_SHARED) is None
    assert corrected("no, the other locker", lockers[:1], MIN_SHARED) == lockers[0]


def test_a_denial_corrects_the_fact_of_its_subject_and_is_nothing_without_one() -> None:
    row = {"message": "actually the parking spot is C3", "facts": ["the parking spot is B7"]}
    assert kept(row) == ["the parking spot is C3"]
    assert kept({**row, "facts": ["the gate is 2"]}) == []


@pytest.mark.parametrize("name", ["pantry code", "release codename"])
def test_what_may_be_a_request_to_forget_corrects_nothing(name: str) -> None:
    row = {"message": f"forget the {name}", "facts": [f"the {name} is 5521", "the tests run at 9"]}
    assert (forgotten(row), kept(row)) == (row["facts"][:1], [])
    assert forgotten({**row, "message": "Forget the tests"}) == []
    for message in (f"stop remembering that my {name} is 9", f"forget that my {name} 3 is 9"):
        assert [wish.wish for wish in read_wishes(message)] == ["forget"]


@pytest.mark.parametrize(
    "message",
    [
        "You can drop what I told you about my locker.",
        "You still know where my locker is? Please get rid of that.",
        "I quit the gym, so there's no need to hold on to my locker number.",
        "柜子号不用再留着了",
    ],
)
def test_what_is_no_longer_to_be_known_is_forgotten_also_by_what_was_said_before(
    message: str,
) -> None:
    facts = ["my locker is number 12", "我的柜子号是十二", "I get up at six", "我喜欢绿色"]
    (known,) = forgotten({"message": message, "facts": facts})
    assert known in facts[:2]
