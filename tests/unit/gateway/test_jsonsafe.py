"""Values and texts of any depth as JSON."""

import dataclasses
import json
import math
from datetime import UTC, date, datetime
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any

import claude_agent_sdk as sdk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.jsonsafe import MAX_DEPTH, MAX_ITEMS, clean_text, estimate_chars, json_safe, json_text
from gateway.nesting import TOO_DEEP, bound_depth, depth_of


@dataclasses.dataclass
class Point:
    x: Any
    y: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    name: str


class Colour(Enum):
    RED = "red"


class Speed(IntEnum):
    FAST = 3


class Mood(StrEnum):
    GOOD = "good"


class Silent:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Hostile(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no items")


def _raise(_self: object) -> None:
    raise RuntimeError("no class")


Liar = type("Liar", (), {"__class__": property(_raise)})
"""Raises when it is asked for its class, as `isinstance` does."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        ("\ud800", "�"),
        ("\ud83d\ude00", "😀"),
        (b"\xff\x00a", "\\xff\x00a"),
        (Path("a/b"), "a/b"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (Colour.RED, "red"),
        (Speed.FAST, 3),
        (Mood.GOOD, "good"),
        (int, "<class 'int'>"),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        ({1: "a", "1": "b"}, {"1": "a", "1 (2)": "b"}),
        ((1, [2]), [1, [2]]),
        (frozenset({7}), [7]),
        (ValueError("bad \ud800"), {"type": "ValueError", "message": "bad �"}),
        (Point(1, Slotted("s")), {"type": "Point", "x": 1, "y": {"type": "Slotted", "name": "s"}}),
        (Silent(), "[unreadable]"),
        ({"h": Hostile(a=1), "n": 1}, {"h": "[unreadable]", "n": 1}),
        ([Liar(), 1], ["[unreadable]", 1]),
    ],
)
def test_a_value_becomes_what_json_can_carry(value: Any, expected: Any) -> None:
    assert json_safe(value) == expected
    json.loads(json_text(value))


def test_a_cycle_ends_where_it_closes() -> None:
    loop: dict[str, Any] = {"a": []}
    loop["a"].append(loop)
    assert json_safe(loop) == {"a": ["[cycle]"]}


def test_depth_and_width_are_bounded() -> None:
    for wraps in (MAX_DEPTH * 2, 100_000):  # beyond the interpreter's own limit, too
        deep: Any = Point(None)
        for _ in range(wraps):
            deep = [deep]
        written = json_text([deep, b""])
        assert "[too deep]" in written
        json.loads(written)
    wide = json_safe([0] * (MAX_ITEMS + 5))
    assert wide[-1] == "[5 more]"
    assert len(wide) == MAX_ITEMS + 1
    assert json_safe(dict.fromkeys(range(MAX_ITEMS + 5)))["[more]"] == 5
    assert json.loads(json_text({"n": 10**5000}))["n"] == hex(10**5000)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.text(st.characters(categories=["Cs", "Cc", "Ll"]))
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.complex_numbers()
    | st.sampled_from([Colour.RED, Speed.FAST, Mood.GOOD, Silent(), Hostile(a=1), object()])
    | st.builds(ValueError, st.text())
    | st.builds(Path, st.just("x"))
)
KEYS = st.text() | st.integers() | st.floats() | st.none() | st.binary() | st.tuples(st.text())
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner)
        | st.builds(Point, inner, inner)
        | st.builds(sdk.TextBlock, inner)
        | st.builds(sdk.ToolUseBlock, inner, inner, inner)
    ),
    max_leaves=20,
)


def strictly(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


@given(ANYTHING)
def test_anything_becomes_one_valid_line_and_what_is_safe_stays_as_it_is(value: Any) -> None:
    text = json_text(value)
    text.encode()
    assert "\n" not in text
    strictly(text)
    safe = json_safe(value)
    assert json_safe(safe) == safe
    assert strictly(json_text(safe)) == safe


@given(st.text(st.characters(categories=["Cs", "Ll"])))
def test_clean_text_can_always_be_encoded_and_keeps_what_can_be(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode()
    assert clean_text(cleaned) == cleaned


def test_the_estimate_sees_text_inside_messages_and_ends_for_anything() -> None:
    message = sdk.AssistantMessage([sdk.TextBlock("x" * 10_000)], "m")
    assert 10_000 < estimate_chars({"message": message}) < 12_000
    loop: list[Any] = []
    loop.append(loop)
    assert estimate_chars(loop) < 1_000_000
    assert estimate_chars([0] * 1_000_000) > 100_000


CUT = json.loads(TOO_DEEP)


DEPTHS = {"1": 0, "[]": 1, '{"a": [1, {"b": 2}], "c": []}': 3, '["[[[", "\\"[[", {}]': 2}
WITHIN = ["", "plain", "[[1]]", '["[[[[", "]]]]"]', '{"a": {"b": "[\\"["}}']
NO_JSON = ["[" * 50, "[[[[ 1", "]" * 50, '[[[["', "[[[]]]]]]]"]


def test_depth_counts_brackets_outside_of_strings_and_is_bounded() -> None:
    assert {text: depth_of(text) for text in DEPTHS} == DEPTHS
    assert [bound_depth(text, 2) for text in WITHIN] == WITHIN
    assert max(depth_of(bound_depth(text, 2)) for text in NO_JSON) <= 2


def test_what_lies_deeper_is_replaced_and_everything_beside_it_is_kept() -> None:
    value = {"a": [1, [2, [3]], {"b": {"c": "]"}}, []], "d": "[[["}
    kept = {"a": [1, [2, CUT], {"b": CUT}, []], "d": "[[["}
    assert json.loads(bound_depth(json.dumps(value), 3)) == kept


def test_what_no_parser_could_read_can_be_read_afterwards() -> None:
    deep = '{"a": 1, "b": ' + "[" * 100_000 + "]" * 100_000 + ', "c": 2}'
    with pytest.raises(RecursionError):
        json.loads(deep)
    read = json.loads(bound_depth(deep, 2))
    assert (read["a"], read["b"], read["c"]) == (1, [CUT], 2)
