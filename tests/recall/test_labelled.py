"""The gate of recall on its own labelled set, by words alone and with hashed vectors."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.recall.labelled import (
    Answered,
    answer_all,
    asked_of,
    questions,
    rows,
    write_all,
)


def figures(answers: Sequence[Answered]) -> str:
    """Tell each group's figure, and each question that was not answered as it should be."""
    groups: dict[str, list[float]] = defaultdict(list)
    lines = []
    for one in answers:
        if one.asked.gold:
            groups[one.asked.group].append(one.recall_at_5)
        if one.asked.gold and one.recall_at_5 < 1:
            lines.append(f"  missed {one.asked.gold}: {one.asked.q!r} gave {one.keys[:5]}")
        if one.asked.group == "none" and one.keys:
            lines.append(f"  nothing fits {one.asked.q!r}, it gave {one.keys}")
        if one.leaked:
            lines.append(f"  stale and shown {one.leaked}: {one.asked.q!r}")
        withheld = set(one.asked.gold) & set(one.held_back)
        if withheld:
            lines.append(f"  to be shown, and held back {withheld}: {one.asked.q!r}")
    told = [f"{name}: {sum(each) / len(each):.2f} of {len(each)}" for name, each in groups.items()]
    return "\n".join([f"Recall@5 {', '.join(told)}", *lines])


def test_the_set_is_large_and_its_questions_name_items_that_exist() -> None:
    keys = [str(one["key"]) for one in rows("items.jsonl")]
    asked = questions()
    named = {key for one in asked for key in (*one.gold, *one.hidden)}
    assert len(keys) == len(set(keys)) >= 60
    assert len(asked) == len({one.q for one in asked}) >= 60
    assert named <= set(keys)


@pytest.mark.parametrize("with_vectors", [False, True], ids=["words alone", "words and vectors"])
async def test_the_gate_holds(tmp_path: Path, *, with_vectors: bool) -> None:
    keys = await write_all(tmp_path)
    async with asked_of(tmp_path, with_vectors=with_vectors) as memory:
        answers = await answer_all(memory, keys)

    told = figures(answers)
    fitting = [one.recall_at_5 for one in answers if one.asked.gold]
    assert sum(fitting) / len(fitting) >= 0.9, told
    assert not any(one.pack.text for one in answers if one.asked.group == "none"), told
    assert not any(one.leaked for one in answers), told
    assert not any(set(one.asked.gold) & set(one.held_back) for one in answers), told
    durable = [one for one in answers if one.asked.group == "durable"]
    assert all(set(one.asked.gold) <= set(one.keys) for one in durable), told
    assert not any(one.pack.degraded for one in answers), told
