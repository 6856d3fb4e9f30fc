"""The gate of recall on its own labelled set, by words alone and with vectors."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from memory.recall.query import MAX_SHOWN
from tests.recall.labelled import (
    Answered,
    answer_all,
    asked_of,
    questions,
    rows,
    write_all,
)


def figures(answers: Sequence[Answered]) -> str:
    """Return each group's figure, and the questions that were answered wrongly."""
    groups: dict[str, list[float]] = defaultdict(list)
    lines = []
    for answer in answers:
        if answer.asked.gold:
            groups[answer.asked.group].append(answer.recall_at_5)
        if answer.asked.gold and answer.recall_at_5 < 1:
            lines.append(f"  missed {answer.asked.gold}: {answer.asked.q!r} gave {answer.keys[:5]}")
        if answer.leaked:
            lines.append(f"  stale and shown {answer.leaked}: {answer.asked.q!r}")
        withheld = set(answer.asked.gold) & set(answer.held_back)
        if withheld:
            lines.append(f"  to be shown, and held back {withheld}: {answer.asked.q!r}")
    told = [f"{name}: {sum(each) / len(each):.2f} of {len(each)}" for name, each in groups.items()]
    return "\n".join([f"Recall@5 {', '.join(told)}", *lines])


def test_the_set_is_large_and_its_questions_name_items_that_exist() -> None:
    keys = [str(row["key"]) for row in rows("items.jsonl")]
    asked = questions()
    named = {key for question in asked for key in (*question.gold, *question.hidden)}
    assert len(keys) == len(set(keys)) >= 60
    assert len(asked) == len({question.q for question in asked}) >= 60
    assert named <= set(keys)


@pytest.mark.parametrize("with_vectors", [False, True], ids=["words alone", "words and vectors"])
async def test_the_gate_holds(tmp_path: Path, *, with_vectors: bool) -> None:
    keys = await write_all(tmp_path)
    async with asked_of(tmp_path, with_vectors=with_vectors) as memory:
        answers = await answer_all(memory, keys)

    told = figures(answers)
    fitting = [answer.recall_at_5 for answer in answers if answer.asked.gold]
    assert sum(fitting) / len(fitting) >= 0.9, told
    assert all(len(answer.keys) <= MAX_SHOWN for answer in answers), told
    assert not any(answer.leaked for answer in answers), told
    assert not any(set(answer.asked.gold) & set(answer.held_back) for answer in answers), told
    durable = [answer for answer in answers if answer.asked.group == "durable"]
    assert all(set(question.asked.gold) <= set(question.keys) for question in durable), told
    assert not any(answer.pack.degraded for answer in answers), told
