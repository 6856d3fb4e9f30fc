"""One line: valid, masked, clipped."""

import json
from datetime import UTC, datetime
from typing import Any

import claude_agent_sdk as sdk
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.journal.line import Line, LineFormat

SECRET = "sk-test-0123456789"
ENVELOPE = {"conversation_id": "cnv_c", "turn_id": "trn_a"}


def encode(fields: dict[str, Any], *, max_bytes: int = 4_000_000) -> bytes:
    line = Line(at=datetime(2026, 11, 20, tzinfo=UTC), kind="tool", fields=fields)
    line_format = LineFormat(mask=lambda text: text.replace(SECRET, "***"), max_bytes=max_bytes)
    return line_format.encode(line, 1, ENVELOPE)


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


@settings(max_examples=50, deadline=None)
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
