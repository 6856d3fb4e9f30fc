"""Fits how likely a found item is an answer (`memory/recall/confidence.py`) to questions with and without one.

`python -m bench.train_confidence` prints the coefficients for the tuning rows of the sets in `bench/person`, and
what each set's held-out questions show by a model fitted to the other sets.
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
TRAINED_ON_ALL = {"others"}
"""Sets without halves; what is measured on them comes from models of the other sets."""
FIRST = 5
PENALTY = 5.0
STEPS = 50

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """A question with the measures of its first hits."""

    question: Question
    measures: Sequence[Sequence[float]]
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
            is_found = any(question.is_answered_by(*source_and_text(item)) for item in items)
            if question.kind != "cross":
                rows.append(Asked(question, [hit.measures for hit in found], is_found))
    return rows


def fit(sets: Sequence[Sequence[Asked]]) -> Floats:
    """Return intercept and coefficients; each set, and in it each of the two kinds, weighs the same."""
    features, truths, weights = [], [], []
    for rows in sets:
        for truth in (True, False):
            some = [
                row
                for row in rows
                if row.measures and bool(row.question.answers) is truth and row.is_found is truth
            ]
            features += [row.measures[0] for row in some]
            truths += [truth] * len(some)
            weights += [50 / len(some)] * len(some)
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
    """Return what is shown where 20 % of the unanswerable are, and those where 75 and 85 % are shown."""
    best = [
        max((float(model[0] + model[1:] @ one) for one in row.measures), default=-9.0)
        for row in rows
    ]
    pairs = list(zip(best, rows, strict=True))
    silent = sorted((value for value, row in pairs if not row.question.answers), reverse=True)
    answered = [pair for pair in pairs if pair[1].question.answers]
    found = sorted((value for value, row in answered if row.is_found), reverse=True)
    least = silent[len(silent) // 5]
    cells = [f"{100 * sum(value > least for value in found) / len(answered):.0f}"]
    for share in (0.75, 0.85):
        needed = ceil(share * len(answered))
        is_reached = needed <= len(found)
        above = sum(value >= found[needed - 1] for value in silent) if is_reached else 0
        cells.append(f"{100 * above / len(silent):.0f}" if is_reached else "never")
    return cells


def main() -> None:
    asked = {name: anyio.run(ask_all, read(path)) for name, path in SETS.items()}
    tuning = {
        name: [row for row in rows if name in TRAINED_ON_ALL or row.question.half == "tuning"]
        for name, rows in asked.items()
    }
    table = []
    for name, rows in asked.items():
        others = fit([part for other, part in tuning.items() if other != name])
        table.append([name, *curve(others, rows)])
    header = ["set", "shown at 20 % false", "false at 75 % shown", "false at 85 % shown"]
    show("Judged by a model of the other sets, in %", header, table)
    print("intercept and coefficients:", fit(list(tuning.values())).round(2).tolist())


if __name__ == "__main__":
    main()
