"""The order of what a turn did, and what of it a turn result holds."""

from typing import Any

import pytest

from gateway.engine.events import MessageBegun, MessageEnded, TextDelta, TextDone, ThinkingDelta
from gateway.turns.steps import clean_steps
from tests.support.builders import called, evidence_of, finished, returned


def test_steps_stand_in_the_order_in_which_they_began() -> None:
    """A call may be seen before the text that was written ahead of it is known whole."""
    evidence = evidence_of(
        MessageBegun(),
        ThinkingDelta(text="void"),
        TextDelta(text="void"),
        MessageBegun(),
        ThinkingDelta(text="First "),
        ThinkingDelta(text="this."),
        TextDelta(text="I re"),
        called("t1", "Read"),
        TextDone(text="I read."),
        MessageEnded(stop_reason="tool_use"),
        returned(),
        MessageBegun(),
        TextDone(text=" \n"),
        called("t2", "Edit"),
        returned(tool_use_id="t2"),
        MessageBegun(),
        ThinkingDelta(text="Done."),
        MessageEnded(stop_reason="end_turn"),
        MessageBegun(),
        TextDelta(text="I chan"),
        finished(),
    )
    steps = evidence.steps.fields("Stopped.")
    assert steps == [
        {"type": "thinking", "text": "First this."},
        {"type": "text", "text": "I read."},
        {"type": "tool", "index": 1},
        {"type": "tool", "index": 2},
        {"type": "thinking", "text": "Done."},
        {"type": "text", "text": "I chan"},
        {"type": "text", "text": "Stopped.", "by": "gateway"},
    ]


A, B = TextDone(text="A block."), TextDone(text="Another.")
AGAIN, ENDED = MessageBegun(), MessageEnded(stop_reason="end_turn")


@pytest.mark.parametrize(
    ("events", "texts"),
    [
        ((A, AGAIN, A, AGAIN, A, B, ENDED), ["A block.", "Another."]),
        ((A, B, AGAIN, A, AGAIN, A, B, A, ENDED), ["A block.", "Another.", "A block."]),
        ((A, AGAIN, TextDelta(text="A bl"), A, ENDED), ["A block."]),
        ((A, AGAIN, B, A, ENDED), ["A block.", "Another.", "A block."]),
        ((A, A, ENDED), ["A block.", "A block."]),
        ((A, ENDED, AGAIN, A, ENDED), ["A block.", "A block."]),
        ((A, called(), returned(), AGAIN, A, ENDED), ["A block.", "A block."]),
    ],
    ids=["thrice", "partly", "in pieces", "goes on", "one answer", "ended", "a call between"],
)
def test_a_block_that_is_repeated_after_its_answer_broke_off_counts_once(
    events: tuple[Any, ...], texts: list[str]
) -> None:
    steps = evidence_of(AGAIN, *events).steps
    assert [step["text"] for step in steps.fields() if step["type"] == "text"] == texts


def test_the_thinking_before_a_repeated_block_is_void_too() -> None:
    thought = ThinkingDelta(text="Hm.")
    steps = evidence_of(AGAIN, thought, A, AGAIN, thought, A, thought, B, ENDED).steps
    kinds = [step["type"] for step in steps.fields()]
    assert kinds == ["thinking", "text", "thinking", "text"]


def test_thinking_is_bounded_and_a_secret_that_spans_two_texts_stays_masked() -> None:
    long = {"type": "thinking", "text": "x" * 20_000}
    steps = [*([long] * 20), {"type": "text", "text": "key:"}, {"type": "text", "text": "4711"}]
    whole = clean_steps(steps, "key:\n\n4711", str)
    assert [len(step["text"]) for step in whole if step["type"] == "text"] == [4, 4]
    sizes = [len(step["text"]) for step in whole if step["type"] == "thinking"]
    assert max(sizes) < 8_100
    assert sum(sizes) < 80_000
    masked = clean_steps(steps, "key:\n\n[masked]", str)
    assert [step for step in masked if step["type"] == "text"] == [
        {"type": "text", "text": "key:\n\n[masked]"}
    ]
