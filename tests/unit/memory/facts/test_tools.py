"""The words by which a model uses the tools that keep and forget: read whole when they change."""

import re

from memory.facts.tools import DESCRIPTIONS, FORGET, REMEMBER, SCHEMAS


def test_the_texts_name_when_to_call_and_when_not_in_both_languages_and_stay_short() -> None:
    remember, forget = DESCRIPTIONS[REMEMBER], DESCRIPTIONS[FORGET]
    for text in (remember, forget):
        assert re.search("[\u4e00-\u9fff]", text)
    for word in ("remember", "correct", "lasting preference", "decision", "reason", "secrets"):
        assert word in remember, word
    for word in ("how tools are called", "true only today", "what only a file says", "One fact"):
        assert word in remember, word
    assert "replaces" in forget
    assert (len(remember), len(forget)) == (625, 330)


def test_the_arguments_are_the_contracts() -> None:
    assert list(SCHEMAS[REMEMBER]["properties"]) == ["text", "evidence", "replaces", "lasting"]
    assert list(SCHEMAS[FORGET]["properties"]) == ["ids", "evidence"]
