"""One line: valid, masked, clipped."""

import json
from datetime import UTC, datetime
from typing import Any

import claude_agent_sdk as sdk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.journal.line import Line, LineForm, encode_line
from gateway.journal.waiting import WaitingLines, estimate_bytes

SECRET = "sk-test-0123456789"
ENVELOPE = {"conversation_id": "cnv_c", "turn_id": "trn_a"}


def encode(fields: dict[str, Any], *, max_bytes: int = 4_000_000) -> bytes:
    line = Line(at=datetime(2026, 11, 20, tzinfo=UTC), kind="tool", fields=fields)
    form = LineForm(mask=lambda text: text.replace(SECRET, "***"), max_bytes=max_bytes)
    return encode_line(line, 1, ENVELOPE, form)


def test_the_envelope_comes_first_in_a_fixed_order() -> None:
    assert list(json.loads(encode({"a": 1}))) == [
        "ts",
        "seq",
        "conversation_id",
        "turn_id",
        "kind",
        "a",
    ]


def test_only_the_largest_strings_of_a_long_line_are_shortened_and_they_say_so() -> None:
    encoded = encode(
        {"small": "s" * 100, "large": ["l" * 50_000, {"x": "m" * 900}]}, max_bytes=10_000
    )
    assert len(encoded) <= 10_000
    line = json.loads(encoded)
    assert line["small"] == "s" * 100
    assert line["large"][1]["x"] == "m" * 900
    assert line["large"][0].startswith("l" * 5000)
    assert line["large"][0].endswith("…[45000 characters left out]")
    assert line["clipped"] is True


def test_a_line_of_countless_small_things_keeps_its_own_fields() -> None:
    encoded = encode({"items": list(range(50_000)), "outcome": "answered"}, max_bytes=5_000)
    assert len(encoded) <= 5_000
    line = json.loads(encoded)
    assert (line["kind"], line["outcome"]) == ("tool", "answered")
    assert "items" not in line


def test_the_cut_of_an_enormous_string_shows_no_half_of_a_secret() -> None:
    for shift in range(len(SECRET)):
        text = "a" * (2_000 - shift) + SECRET + "b" * 60_000
        assert SECRET[:6] not in encode({"text": text}, max_bytes=2_000).decode()


@given(
    st.recursive(
        st.text(max_size=30) | st.just(SECRET) | st.integers() | st.binary(max_size=20) | st.none(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.text(max_size=5) | st.just(SECRET), inner)
            | st.builds(sdk.TextBlock, inner)
        ),
        max_leaves=30,
    ),
    st.integers(300, 2_000),
)
def test_any_line_is_valid_within_its_bound_and_without_secrets(value: Any, most: int) -> None:
    encoded = encode({"value": value, "tail": f"x{SECRET}"}, max_bytes=most)
    assert len(encoded) <= most
    assert encoded.endswith(b"\n")
    assert encoded.count(b"\n") == 1
    assert SECRET not in encoded.decode()
    assert json.loads(encoded)["turn_id"] == "trn_a"


# --- how much waits -------------------------------------------------------------------------------


def test_the_estimate_sees_text_inside_messages() -> None:
    class Unknown:
        def __init__(self) -> None:
            self.text = "x" * 1000

    message = sdk.AssistantMessage([sdk.TextBlock("x" * 10_000)], "m")
    assert 10_000 < estimate_bytes({"message": message}) < 12_000
    assert estimate_bytes(Unknown()) < 100


@given(st.recursive(st.text() | st.binary() | st.integers() | st.just(object()), st.lists))
def test_the_estimate_of_anything_is_a_number(value: Any) -> None:
    assert estimate_bytes(value) >= 0


def test_the_estimate_of_a_cycle_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert estimate_bytes(loop) < 1_000_000


@pytest.mark.parametrize("reserved", [False, True])
def test_the_reserve_is_bounded_too(reserved: bool) -> None:  # noqa: FBT001
    waiting: WaitingLines[int] = WaitingLines(max_lines=100, max_bytes=10_000)
    taken = sum(waiting.offer(n, 1, reserved=reserved) for n in range(1000))
    assert taken == (116 if reserved else 100)
    waiting = WaitingLines(max_lines=100, max_bytes=800)
    taken = sum(waiting.offer(n, 100, reserved=reserved) for n in range(1000))
    assert taken == (9 if reserved else 8)


def test_at_least_one_line_is_taken_however_large() -> None:
    waiting: WaitingLines[str] = WaitingLines(max_lines=10, max_bytes=1000)
    waiting.offer("a", 900, reserved=False)
    waiting.offer("b", 10, reserved=False)
    assert waiting.take(max_lines=5, max_bytes=100) == (["a"], 900)
    assert waiting.take(max_lines=5, max_bytes=100) == (["b"], 10)
