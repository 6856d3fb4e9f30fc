"""Recall@k, and the hash of what was measured."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

CUTS = (1, 5, 10, 20)


@dataclass
class Scores:
    """Mean over questions of the share of the gold items among the first k."""

    cuts: Sequence[int] = CUTS
    count: int = 0
    sums: dict[int, float] = field(default_factory=dict)
    any_at_10: float = 0.0
    reciprocal: float = 0.0

    def add(self, found: Sequence[str], gold: set[str]) -> None:
        self.count += 1
        for k in self.cuts:
            share = len(gold & set(found[:k])) / len(gold)
            self.sums[k] = self.sums.get(k, 0.0) + share
        self.any_at_10 += bool(gold & set(found[:10]))
        self.reciprocal += next(
            (1 / place for place, one in enumerate(found[:10], start=1) if one in gold), 0.0
        )

    def figures(self) -> Mapping[str, float]:
        count = max(1, self.count)
        return {
            **{f"@{k}": round(100 * self.sums.get(k, 0.0) / count, 1) for k in self.cuts},
            "any@10": round(100 * self.any_at_10 / count, 1),
            "MRR@10": round(100 * self.reciprocal / count, 1),
        }


def digest(*paths: Path) -> str:
    whole = hashlib.sha256()
    for path in paths:
        whole.update(path.read_bytes())
    return whole.hexdigest()[:16]
