"""Masking inside values."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.jsonsafe import json_safe
from gateway.observability.masking import UNMASKABLE, mask_leaves
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


def test_under_a_telling_key_everything_but_nothing_flags_and_a_schema_is_masked() -> None:
    value = {"password": ["a", 7, None, True, "", {"hint": "b", "secret": 1.5}]}
    assert mask_leaves(value, str) == {
        "password": [MASK, MASK, None, True, "", {"hint": "b", "secret": MASK}]
    }
    schema = {"properties": {"password": {"type": "string"}}, "required": ["password"]}
    assert mask_leaves(schema, str) == schema
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


PIECES = st.sampled_from(
    [
        *(KEY, "password", ":", "=", " ", "\n", '"', "'", "\\", "Bearer", "AKIAABCDEFGHIJKLMNOP"),
        *("hunter2!", "-----BEGIN PRIVATE KEY-----", "https://u:pw1234@h", "token", "密码：", "a"),
        *("…[masked]", "{"),
    ]
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)
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


@given(st.lists(st.lists(TEXTS, max_size=4) | TEXTS, max_size=6))
def test_masking_all_strings_at_once_misses_nothing(value: Any) -> None:
    assert mask_leaves(value, mask_secrets) == leaf_by_leaf(value)


def shape(value: Any) -> Any:
    if isinstance(value, list):
        return [shape(item) for item in value]
    return [shape(item) for item in value.values()] if isinstance(value, dict) else 0


@given(VALUES)
def test_the_shape_stays_and_no_known_secret_does(value: Any) -> None:
    masked = mask_leaves(json_safe({"v": value, "end": f" {KEY} "}), mask_secrets)
    assert shape(masked) == shape({"v": value, "end": ""})
    assert f" {KEY} " not in str(masked)
