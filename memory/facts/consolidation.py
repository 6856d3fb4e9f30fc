"""Decides what to tidy among a person's facts: repetitions, contradictions, and too many of them.

Nothing is deleted: a fact that is merged, superseded or faded is kept, and holds no longer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from memory.episodes.likeness import tell_the_same
from memory.facts.fact import Fact
from memory.wording import contradicts, subject_of, value_of, words_of

MAX_FACTS: Final = 1_000
"""Facts of a person that hold; beyond it those fade that were shown least lately. Lasting ones stay."""

TidyAction = Literal["merged", "superseded", "faded"]


@dataclass(frozen=True, slots=True)
class Tidying:
    """One fact that is to hold no longer."""

    action: TidyAction
    fact_id: str
    by_id: str | None = None
    """The newer fact that says the same or otherwise; None for one that fades."""


def tidyings(
    facts: Sequence[Fact], shown_at: Mapping[str, datetime], *, most: int = MAX_FACTS
) -> Iterator[Tidying]:
    """Yield what to tidy among the facts of one person that hold, given newest first.

    `shown_at` has when a fact was last shown to a model. Each fact is named once.
    """
    kept: list[Fact] = []
    by_subject: dict[object, Fact] = {}
    for fact in facts:
        subject = subject_of(fact.text)
        newer = by_subject.get((fact.scope, subject)) if subject else None
        is_same = newer is not None and value_of(newer.text) == value_of(fact.text)
        same = newer if is_same else _same(kept, fact)
        if same is not None:
            yield Tidying("merged", fact.id, same.id)
        elif newer is not None and contradicts(newer.text, fact.text):
            yield Tidying("superseded", fact.id, newer.id)
        else:
            kept.append(fact)
            if subject:
                by_subject[fact.scope, subject] = fact
    fading = [fact for fact in kept if not fact.lasting]
    fading.sort(key=lambda fact: max(shown_at.get(fact.id, fact.valid_from), fact.updated_at))
    for fact in fading[: max(0, len(kept) - most)]:
        yield Tidying("faded", fact.id)


def _same(kept: Sequence[Fact], fact: Fact) -> Fact | None:
    words = words_of(fact.text)
    return next(
        (
            other
            for other in kept
            if other.scope == fact.scope and tell_the_same(words_of(other.text), words)
        ),
        None,
    )
