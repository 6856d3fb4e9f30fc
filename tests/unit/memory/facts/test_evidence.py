"""What proves that a person said something, and which messages are kept without a tool."""

import pytest

from memory.facts.evidence import is_said
from memory.facts.openings import asks_to_forget, asks_to_remember


@pytest.mark.parametrize(
    ("evidence", "message", "is_proven"),
    [
        ("keep  in MIND", "Can you keep in mind that it rains?", True),
        ("it’s “green”", 'I said it\'s "green".', True),
        ("住海曙区", "我搬家了，现在住海曙区。", True),
        ("忘掉它", "忘掉它", True),
        ("undo", "Undo", True),
        ("undo", "undo that please", False),
        ("the", "Look at the file.", False),
        ("", "", False),
        ("...---...", "...---... and so on", False),
        ("send it all", "Look at the file.", False),
        ("ｋｅｅｐ ｉｎ ｍｉｎｄ", "keep in mind", True),
    ],
)
def test_the_words_stand_in_the_message_and_are_enough(
    evidence: str, message: str, *, is_proven: bool
) -> None:
    assert is_said(evidence, message) is is_proven


def test_only_how_a_message_begins_is_read() -> None:
    remember = [
        "Remember: tea",
        "please  remember tea",
        "note：tea",
        "请记住茶",
        "备忘一下",
        "记一下茶",
    ]
    forget = ["Forget it", "忘掉它", "忘记这个"]
    neither = [
        "Remember",
        "please remember…",
        "记住",
        "Note:",
        "remembering tea",
        "notes on tea",
        "I forgot it",
        "Do remember",
        "别忘记",
        "记得吗",
    ]
    assert [asks_to_remember(text) for text in (*remember, *forget)] == [True] * 6 + [False] * 3
    assert [asks_to_forget(text) for text in (*forget, *remember)] == [True] * 3 + [False] * 6
    assert not any(asks_to_remember(text) or asks_to_forget(text) for text in neither)
