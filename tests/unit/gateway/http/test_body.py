"""Reading a JSON body."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import UnprocessableEntity
from gateway.http.bodies import parse_body
from gateway.http.parameters import field_name, validation_error
from gateway.http.schemas import ChatBody


def test_a_message_has_at_most_two_hundred_thousand_characters() -> None:
    def raw(chars: int) -> bytes:
        return json.dumps({"message": "😀" * chars}, ensure_ascii=False).encode()

    assert len(parse_body(raw(200_000), ChatBody).message) == 200_000
    with pytest.raises(UnprocessableEntity):
        parse_body(raw(200_001), ChatBody)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None)), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*ChatBody.model_fields, "other", "\ud800"]), JSON))
def test_any_json_is_a_sound_body_or_one_short_sentence(value: dict[str, Any]) -> None:
    try:
        body = parse_body(json.dumps(value).encode(), ChatBody)
    except UnprocessableEntity as exc:
        sentence = exc.message
    else:
        sentence = "It fits."
        body.model_dump_json().encode()
        assert body.message.strip()
    sentence.encode()
    assert sentence.endswith(".")
    assert len(sentence) < 200


def test_a_field_is_named_as_a_person_would() -> None:
    assert field_name(("memory", "enabled")) == "memory.enabled"
    assert field_name(("query", "limit")) == "limit"
    assert field_name(("query", "path")) == "path"
    assert field_name(()) == "body"
    assert len(field_name(("x" * 1000,))) < 100


def test_a_fault_of_a_kind_that_is_not_known_is_told_all_the_same() -> None:
    fault = validation_error([{"type": "new_kind", "loc": ("body", "x"), "msg": "secret"}])
    assert fault.message == "`x` is not valid."


WRONG = [
    (b"", "JSON"),
    (b"[]", "object"),
    (b'{"message": NaN}', "NaN"),
    (b'{"message": 1' + b"0" * 5000 + b"}", "number"),
    (b"\xef\xbb\xbf{}", "mark"),
    (b"\xff", "UTF-8"),
    (b"[" * 100_000, "deeply"),
    (b'{"message":' + b"[" * 900 + b"]" * 900 + b"}", "deeply|message"),
    (b'{"message":\n "a"', "line 2"),
    (rb'{"message": "\ud800"}', "`message` holds a lone surrogate"),
    (rb'{"message": "a", "idempotency_key": "\udfff"}', "surrogate"),
    (rb'{"message": "a\u0000b"}', "`message` holds NUL"),
    (rb'{"\u0000": 1}', "`body` holds NUL"),
]


def test_the_sentence_says_what_is_wrong_with_a_body() -> None:
    for raw, words in WRONG:
        with pytest.raises(UnprocessableEntity, match=words):
            parse_body(raw, ChatBody)
