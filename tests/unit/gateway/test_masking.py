"""Masking inside values."""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.jsonsafe import json_safe
from gateway.observability.masking import UNMASKABLE, CleanStrings, mask_leaves
from memory.intents.masking import masked_payload
from policies.secrets import MASK, mask_secrets

KEY = "sk-ant-api03-abcdefghij0123456789"


SECRET_KEYS = [
    *("password", "PASSWORD", "db_password", "dbPassword", "DB-Passwd", "user.passphrase"),
    *("token", "accessToken", "X-Auth-Token", "apiKey", "api_key", "APIKEY", "ANTHROPIC_API_KEY"),
    *("AWS_SECRET_ACCESS_KEY", "clientSecret", "Authorization", "proxy-authorization"),
    *("Set-Cookie", "private_key", "credentials", "密码", "密钥"),
]
ORDINARY_KEYS = [
    *("input_tokens", "output_tokens", "max_tokens", "token_count", "session_id", "key", "pwd"),
    *("keyboard", "secretary", "tokenizer", "author", "passwordless", "cookies_accepted", ""),
]


def test_what_is_under_the_name_of_a_secret_is_masked_and_nothing_else() -> None:
    for key in SECRET_KEYS:
        assert mask_leaves({"a": [{key: "x1"}]}, str) == {"a": [{key: MASK}]}
    for key in ORDINARY_KEYS:
        assert mask_leaves({key: "x1"}, str) == {key: "x1"}


FLAGS: list[Any] = [None, True, "", {}]
NESTED = {
    "an object": ({"password": {"value": "letmein"}}, {"password": {"value": MASK}}),
    "a list": ({"token": ["a", 7, 1.5, *FLAGS]}, {"token": [MASK, MASK, MASK, *FLAGS]}),
    "deeper": ({"a": [{"secret": {"b": "c"}}]}, {"a": [{"secret": {"b": MASK}}]}),
    "bytes": ({"password": b"letmein", "a": "b"}, {"password": MASK, "a": "b"}),
    "a name of bytes": ({b"password": {"value": b"letmein"}}, {"password": {"value": MASK}}),
    "capitals": ({"PassWord": {"Value": "letmein"}}, {"PassWord": {"Value": MASK}}),
    "full width": ({"ｐａｓｓｗｏｒｄ": ["letmein"]}, {"ｐａｓｓｗｏｒｄ": [MASK]}),
    "an invisible character": ({"pass\u00adword": "letmein"}, {"pass\u00adword": MASK}),
    "a space": ({"password ": ("letmein",)}, {"password ": [MASK]}),
    "an option": (["run", "--password", {"a": "b"}, "c"], ["run", "--password", {"a": MASK}, "c"]),
    "beside it": (
        {"a": {"password": "b"}, "c": ["d", 7]},
        {"a": {"password": MASK}, "c": ["d", 7]},
    ),
}


@pytest.mark.parametrize("where", NESTED)
def test_journal_events_and_memory_mask_all_below_a_secret_name(where: str) -> None:
    value, masked = NESTED[where]
    assert mask_leaves(json_safe({"v": value}), str) == {"v": masked}
    assert masked_payload({"v": value}, str) == {"v": masked}


def test_the_end_of_a_long_name_decides() -> None:
    name = "x" * 200 + "_password"
    assert mask_leaves({name: {"a": "letmein"}}, str) == {name: {"a": MASK}}
    assert list(masked_payload({name: {"a": "letmein"}}, str).values()) == [{"a": MASK}]


def test_two_names_that_are_masked_alike_stay_two() -> None:
    twins = mask_leaves({"s1": 1, "s2": 2}, lambda text: re.sub(r"s\d", "*", text))
    assert twins == {"*": 1, "*'": 2}


def test_a_mask_that_fails_leaves_nothing() -> None:
    def broken(text: str) -> str:
        if "x" in text:
            raise ValueError
        return text

    assert mask_leaves({"a": "x", "b": "y"}, broken) == {"a": UNMASKABLE, "b": "y"}


def test_the_mask_runs_once_over_a_value_without_secrets_and_not_over_what_it_made() -> None:
    calls: list[str] = []

    def mask(text: str) -> str:
        calls.append(text)
        return text

    value = {"a": ["b", {"c": "d"}]}
    assert mask_leaves(value, mask, {"d", "a secret"}) == value
    assert calls == ["a\nb\nc"]


def test_a_short_string_without_a_secret_is_read_once_and_a_secret_each_time() -> None:
    calls: list[str] = []

    def mask(text: str) -> str:
        calls.append(text)
        return text.replace(KEY, MASK)

    clean = CleanStrings(mask)
    value = {"name": ["short", {"id": KEY}], "path": "long " * 20}
    first = mask_leaves(value, mask, clean=clean)
    assert first == {"name": ["short", {"id": MASK}], "path": "long " * 20}
    calls.clear()
    assert mask_leaves(value, mask, clean=clean) == first
    assert calls == [f"{KEY}\n{'long ' * 20}", KEY, "long " * 20]


PIECES = st.sampled_from(
    [
        *(KEY, "password", ":", "=", " ", "\n", '"', "'", "\\", "Bearer", "AKIAABCDEFGHIJKLMNOP"),
        *("hunter2!", "-----BEGIN PRIVATE KEY-----", "https://u:pw1234@h", "token", "密码：", "a"),
        *("…[masked]", "{"),
    ]
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)
CLEAN = CleanStrings(mask_secrets)
"""Of all examples, as the journal's is of all lines."""
VALUES = st.recursive(
    TEXTS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def leaf_by_leaf(value: Any) -> Any:
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, list):
        return [leaf_by_leaf(item) for item in value]
    return value


def hides_as_much(masked: Any, leaf: Any) -> bool:
    """Return whether a value is masked like its leaves; what follows the name of a secret wholly."""
    if isinstance(leaf, list):
        return len(masked) == len(leaf) and all(map(hides_as_much, masked, leaf))
    return masked in {leaf, MASK}


@given(st.lists(st.lists(TEXTS, max_size=4) | TEXTS, max_size=6))
@example(["-----BEGIN PRIVATE KEY-----password", KEY])
def test_masking_all_strings_at_once_misses_nothing(value: Any) -> None:
    assert hides_as_much(mask_leaves(value, mask_secrets), leaf_by_leaf(value))
    assert hides_as_much(mask_leaves(value, mask_secrets, clean=CLEAN), leaf_by_leaf(value))


def shape(value: Any) -> Any:
    if isinstance(value, list):
        return [shape(item) for item in value]
    return [shape(item) for item in value.values()] if isinstance(value, dict) else 0


@given(VALUES)
def test_the_shape_stays_and_no_known_secret_does(value: Any) -> None:
    masked = mask_leaves(json_safe({"v": value, "end": f" {KEY} "}), mask_secrets)
    assert shape(masked) == shape({"v": value, "end": ""})
    assert f" {KEY} " not in str(masked)
