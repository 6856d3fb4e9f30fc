"""What of a statement may become a fact."""

import pytest

from memory.facts.gate import quotable, savable


@pytest.mark.parametrize(
    "text",
    [
        "The heron\0 service is red",
        "The \ud83dheron service is red",
        "The heron\x1b service is\x7f red",
        "The he\u200bron\u2060 service is red\ufeff",
        "The heron \u202eservice\u202c is \u2066red\u2069",
    ],
)
def test_a_fact_holds_no_character_that_nobody_sees(text: str) -> None:
    assert savable(text) == "The heron service is red"


@pytest.mark.parametrize(
    "text", ["The team is 👩\u200d👩\u200d👧", "می\u200cخواهم", "שלום\u200f red team"]
)
def test_characters_that_scripts_and_emoji_need_stay(text: str) -> None:
    assert savable(text) == text


def test_evidence_holds_no_character_that_nobody_sees() -> None:
    assert quotable("The he\u200bron is \u202egreen") == "The heron is green"
