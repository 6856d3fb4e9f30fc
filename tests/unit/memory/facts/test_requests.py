"""What a message asks of memory, over messages that the model was not trained on, in both languages."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory.facts.fact import Fact
from memory.facts.matching import corrected, meant, superseded
from memory.facts.requests import Wished, read_wishes
from memory.scope import Scope

CORPUS = Path(__file__).parent / "messages.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def fact(text: str) -> Fact:
    return Fact(
        id=text,
        text=text,
        scope=Scope(owner_id="ann"),
        origin="request",
        valid_from=NOW,
        updated_at=NOW,
    )


def kept(row: dict[str, Any]) -> list[str]:
    """Return the texts that a message makes facts."""
    facts = [fact(text) for text in row["facts"]]

    def is_kept(wish: Wished) -> bool:
        about: object = superseded(wish.text, facts)
        if wish.wish == "correction":
            about = corrected(wish.text, facts, is_firm=wish.is_firm)
        return wish.wish not in ("forget", "undo") and (wish.stands_alone or bool(about))

    return [wish.text for wish in read_wishes(row["message"]) if is_kept(wish)]


def forgotten(row: dict[str, Any]) -> list[str]:
    facts = [fact(text) for text in row["facts"]]
    wishes = [wish for wish in read_wishes(row["message"]) if wish.wish == "forget"]
    return [known.text for wish in wishes for known in meant(wish.text, facts)]


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


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Also, please remember that my locker is number 12.", "my locker is number 12"),
        ("My locker is number 12. Remember that, please.", "My locker is number 12"),
        ("My boss is Ada; please keep that on file.", "My boss is Ada; please keep that on file"),
        ("请记住：我对花生过敏。", "我对花生过敏"),
        ("Remember this:\n- the vault code is 4417\n- ask Ben", "the vault code is 4417 ask Ben"),
        ("No, the demo is on Friday now.", "the demo is on Friday now"),
    ],
)
def test_the_content_of_a_request_is_kept(message: str, text: str) -> None:
    assert [wish.text for wish in read_wishes(message) if wish.is_firm] == [text]


@pytest.mark.parametrize(
    "message",
    [
        "Translate this:\n\nDear all,\n\nRemember that the office is closed on Monday.",
        "> remember that the office is closed\n\nWhat does he mean?",
        "```\nremember that x is 1\n```",
        'What does "remember that the gate is closed" mean?',
        "“记住，门的密码是 4417” 这句话用英语怎么说？",
    ],
)
def test_quoted_and_pasted_text_is_no_request(message: str) -> None:
    assert [wish for wish in read_wishes(message) if wish.is_firm] == []
