"""Secrets that a sentence states, and ordinary lines that look much like these sentences."""

import json
import re
from itertools import cycle, pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.secrets import mask_secrets, names_secret
from policies.secrets.text import MASK
from tests.unit.policies.pieces import masked_in_pieces

_LISTS = json.loads((Path(__file__).parent / "data" / "stated.json").read_text("utf-8"))
STATED = [*_LISTS["english"], *_LISTS["chinese"]]
"""Sentences; `⟦…⟧` marks a secret."""
ORDINARY = _LISTS["ordinary"]
MISSED, HARMED = _LISTS["missed"], _LISTS["harmed"]
"""The sentences whose secret stays readable, and the ordinary lines that are masked."""
_SECRET = re.compile(r"⟦([^⟧]*)⟧")


def _plain(sentence: str) -> str:
    return _SECRET.sub(r"\1", sentence)


def _is_missed(sentence: str) -> bool:
    masked = mask_secrets(_plain(sentence))
    return any(secret[len(secret) // 2 :] in masked for secret in _SECRET.findall(sentence))


def test_there_are_enough_of_both() -> None:
    assert min(len(_LISTS["english"]), len(_LISTS["chinese"])) >= 60
    assert len(ORDINARY) >= 250


def test_what_a_sentence_states_is_masked_but_for_the_listed_ones() -> None:
    assert [sentence for sentence in STATED if _is_missed(sentence)] == MISSED


def test_what_stands_around_a_stated_secret_stays() -> None:
    for sentence in set(STATED) - set(MISSED):
        before, *_, after = _SECRET.split(sentence)
        masked = mask_secrets(_plain(sentence))
        assert masked.startswith(before), sentence
        assert masked.endswith(after), sentence
        assert mask_secrets(masked) == masked


def test_ordinary_lines_stay_but_for_the_listed_ones() -> None:
    harmed = [line for line in ORDINARY if mask_secrets(line) != line]
    assert sorted(harmed) == sorted(HARMED)


def test_a_stream_of_statements_is_masked_as_the_whole_wherever_it_is_cut() -> None:
    arounds = cycle(
        ("{}", "so {} it is\n", "他说{}。然后走了", "{} bytes", "{} 位", "a\n{}\n密码 ")
    )
    for sentence, around in zip((*STATED, *ORDINARY), arounds, strict=False):
        text = around.replace("{}", _plain(sentence))
        whole = mask_secrets(text)
        for at in range(len(text) % 5, len(text) + 1, 5):
            assert masked_in_pieces([text[:at], text[at:]]) == whole, text[:at]
        assert masked_in_pieces([*text]) == whole, text


_PIECES = st.sampled_from(
    [
        *("password", "passphrase", "pin", "PIN", "PIN code", " 码", "密码", "口令", "暗号", "pw"),
        *(" is", "'s", " should be", " to", " that we use", " for the card", " - ", ": ", "："),
        *("是", "我改成了", "还是原来的", "=", " ", "\n", '"', "“", "”", "'", "**", "`", "(", ")"),
        *("4821", "889900", " bytes", "位", " if", "blue-Horse-4821", "abc123", "tall green hill"),
        *("hunter2-XyZ-998877", "芝麻开门", "a-b-c-1", ".", "。", ",", "\u200b", "中文", "the "),
    ]
)


@settings(max_examples=150, deadline=None)
@example(["passphrase", " for the card", " is", " ", "“", "tall green hill", "”"], [22])
@given(st.lists(_PIECES, max_size=9), st.lists(st.integers(0, 200), max_size=6))
def test_any_statement_in_pieces_is_masked_as_the_whole(words: list[str], cuts: list[int]) -> None:
    text = "".join(words)
    ends = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    pieces = [text[begin:end] for begin, end in pairwise(ends)]
    whole = mask_secrets(text)
    assert masked_in_pieces(pieces) == whole
    assert mask_secrets(whole) == whole


def test_a_pin_is_a_word_of_sentences_and_no_name_of_a_field() -> None:
    assert not names_secret("pin")
    assert not names_secret("gpio-pin")


@pytest.mark.parametrize("sentence", ["my pin is ⟦4821⟧ now", "银行卡密码 ⟦889900⟧"])
def test_a_masked_number_shows_none_of_its_digits(sentence: str) -> None:
    assert mask_secrets(_plain(sentence)) == _SECRET.sub(MASK, sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "密码是 ⟦1234-5678⟧",
        "密码：⟦8812~9932⟧，别告诉别人",
        "密码是 ⟦JWT-2024⟧",
        "password: ⟦env:hunter22⟧",
    ],
)
def test_what_only_begins_like_a_count_or_a_name_is_masked(sentence: str) -> None:
    assert not _is_missed(sentence)
