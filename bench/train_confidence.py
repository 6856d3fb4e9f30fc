"""Fits how likely a found item is an answer (`memory/recall/confidence.py`) to questions with and without one.

`python -m bench.train_confidence` prints the coefficients for the sets in `bench/person`, and what the questions of
each set show by a model fitted to the other sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import anyio
import numpy as np
from numpy.typing import NDArray

from bench.person.corpus import DEFAULT, PersonSet, Question, read
from bench.person.measure import OWNER, remembering, source_and_text
from bench.report import show
from memory.periods import asked_time
from memory.recall.query import RECALLED_KINDS
from memory.scope import Scope

SETS = {"first": DEFAULT, "others": DEFAULT / "others", "third": DEFAULT / "third"}
FIRST = 5
FORGOTTEN = 0.35
"""Share of the questions without an answer whose answer is left out; the others were written without one."""
PENALTY = 5.0
STEPS = 50

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """A question with the measures of its first hits."""

    question: Question
    measures: Sequence[Sequence[float]]
    others: Sequence[Sequence[float]]
    """Of the hits that do not answer it: as if its answer were not remembered."""
    is_found: bool


async def ask_all(person: PersonSet) -> list[Asked]:
    """Search for all questions that are asked in the language of their answer."""
    scope = Scope(owner_id=OWNER)
    rows: list[Asked] = []
    async with remembering(person) as memory:
        for question in person.questions:
            when = asked_time(question.text, question.asked_at)
            found = await memory.items.search(
                question.text, scope, kinds=RECALLED_KINDS, limit=FIRST, when=when
            )
            items = await memory.items.get_many([hit.item_id for hit in found], scope)
            right = {item.id for item in items if question.is_answered_by(*source_and_text(item))}
            if question.kind != "cross":
                others = [hit.measures for hit in found if hit.item_id not in right]
                rows.append(Asked(question, [hit.measures for hit in found], others, bool(right)))
    return rows


def fit(sets: Sequence[Sequence[Asked]]) -> Floats:
    """Return intercept and coefficients; each set weighs the same, and in it what answers and what does not."""
    features, truths, weights = [], [], []
    for rows in sets:
        found = [row.measures[0] for row in rows if row.is_found]
        without = [row.measures[0] for row in rows if row.measures and not row.question.answers]
        forgotten = [row.others[0] for row in rows if row.others and row.question.answers]
        for some, share in ((found, 1.0), (without, 1 - FORGOTTEN), (forgotten, FORGOTTEN)):
            features += some
            truths += [some is found] * len(some)
            weights += [50 * share / len(some)] * len(some)
    raw, truth_of, weight_of = (np.array(part, float) for part in (features, truths, weights))
    mean, scale = raw.mean(0), raw.std(0)
    inputs = np.c_[np.ones(len(raw)), (raw - mean) / scale]
    penalty = np.diag([0.0] + [PENALTY] * raw.shape[1])
    fitted = np.zeros(inputs.shape[1])
    for _ in range(STEPS):  # Newton's method
        likely = 1 / (1 + np.exp(-inputs @ fitted))
        slope = inputs.T @ (weight_of * (likely - truth_of)) + penalty @ fitted
        curvature = (inputs.T * (weight_of * likely * (1 - likely))) @ inputs + penalty
        fitted = fitted - np.linalg.solve(curvature, slope)
    factors = fitted[1:] / scale
    return np.r_[fitted[0] - factors @ mean, factors]


def curve(model: Floats, rows: Sequence[Asked]) -> list[str]:
    """Return what is shown where 20 % of the unanswerable are, and these where 75 and 85 % are shown.

    After each of these: what is shown of the answerable questions without the answer.
    """
    answered = [row for row in rows if row.question.answers]
    silent = _best(model, [row.measures for row in rows if not row.question.answers])
    forgotten = _best(model, [row.others for row in answered])
    found = _best(model, [row.measures for row in answered if row.is_found])
    least = silent[len(silent) // 5]
    cells = [f"{100 * sum(value > least for value in found) / len(answered):.0f}"]
    for share in (0.75, 0.85):
        needed = ceil(share * len(answered))
        if needed > len(found):
            cells += ["never"] * 2
            continue
        for values in (silent, forgotten):
            above = sum(value >= found[needed - 1] for value in values)
            cells.append(f"{100 * above / len(values):.0f}")
    return cells


def _best(model: Floats, measured: Sequence[Sequence[Sequence[float]]]) -> list[float]:
    """Return the highest value of each question's hits, in falling order."""
    values = (
        max((float(model[0] + model[1:] @ one) for one in hits), default=-9.0) for hits in measured
    )
    return sorted(values, reverse=True)


def main() -> None:
    asked = {name: anyio.run(ask_all, read(path)) for name, path in SETS.items()}
    table = []
    for name, rows in asked.items():
        others = fit([part for other, part in asked.items() if other != name])
        table.append([name, *curve(others, rows)])
    header = ["set", "shown at 20 % false"]
    for share in (75, 85):
        header += [f"false at {share} % shown", "without the answer"]
    show("Judged by a model of the other sets, in %", header, table)
    print("intercept and coefficients:", fit(list(asked.values())).round(2).tolist())


if __name__ == "__main__":
    main()
