"""Marks found items that a newer found item about the same thing replaces.

Two items are about the same thing if their headings are and their texts have words in common, or if the
newer one says that something has changed and has many words of the older one. A fact that corrects a line of
a note replaces the note if it says little else. Both are kept; recall shows the newer one, and its reason
names the older.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from memory.items import BETWEEN_HEADINGS, Item
from memory.periods import Period
from memory.recall.confidence import LEAST_CONFIDENCE
from memory.recall.query import Hit
from memory.recall.question_words import STOP_TERMS
from memory.terms import terms

_REPLACED_KINDS: Final = frozenset({"note", "episode"})
"""A fact says itself until when it holds, and what was said in a turn stays said."""
_MAX_COMPARED: Final = 8
_READ_CHARS: Final = 600
_SAME_HEADING: Final = 0.6
_SAME_TEXT: Final = 0.2
_CORRECTED_TEXT: Final = 0.3
_CORRECTED_NOTE: Final = 0.5
"""Of a note's words, in a fact that corrects one of its lines."""
_CORRECTS_LINE: Final = " [earlier: "
_LEAST_SHARED: Final = 2
_MOST_AHEAD: Final = 0.35
"""An older item that is likelier an answer by more than this says what the newer one does not."""
_DATE: Final = re.compile(r"\d{4}-\d{1,2}(?:-\d{1,2})?")
_CHANGED: Final = re.compile(
    r"\b(?:no longer|not any ?more|instead of|rather than|from now on|changed to|moved to|now\b[^.]{0,60}\bnot"
    r"|not\b[^.]{0,60}\bbut)\b|改[成为到]|换成|不再|不是[^。]{1,30}(?:而是|是)|由[^。]{1,30}(?:改|提高|降低|调整)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Wording:
    heading: frozenset[str]
    text: frozenset[str]
    says_changed: bool

    @classmethod
    def of(cls, item: Item) -> "_Wording":
        own = _DATE.sub("", item.title.rpartition(BETWEEN_HEADINGS)[2])
        body = item.body[:_READ_CHARS]
        heading = _words(own)
        return cls(heading, heading | _words(body), _CHANGED.search(f"{own}\n{body}") is not None)

    def replaces(self, older: "_Wording") -> bool:
        shared = _shared(self.text, older.text)
        if self.says_changed and shared >= _CORRECTED_TEXT:
            return len(self.text & older.text) >= _LEAST_SHARED
        numbers, theirs = (set(filter(str.isdecimal, one.heading)) for one in (self, older))
        return (
            shared >= _SAME_TEXT
            and _shared(self.heading, older.heading) >= _SAME_HEADING
            and (numbers == theirs or not (numbers and theirs))
        )


def mark_superseded(hits: Sequence[Hit], asked: Period | None) -> list[Hit]:
    """Return the hits, newer ones before those that they replace, which name them.

    An item of the period that is asked for is replaced by another one of that period only.
    """
    marked = list(hits)
    likely = [
        hit
        for hit in hits
        if hit.confidence >= LEAST_CONFIDENCE / 2
        and (hit.item.kind in _REPLACED_KINDS or _CORRECTS_LINE in hit.item.body)
    ][:_MAX_COMPARED]
    by_age = sorted(likely, key=lambda hit: hit.item.occurred_at, reverse=True)
    wordings = {hit.item.id: _Wording.of(hit.item) for hit in by_age}
    for place, newer in enumerate(by_age):
        for older in by_age[place + 1 :]:
            is_ahead = older.confidence > newer.confidence + _MOST_AHEAD
            if not is_ahead and _is_replaced(older.item, newer.item, wordings, asked):
                _mark(marked, older.item, newer.item)
    return marked


def corrected_line(fact: str) -> str:
    """Return the line of a note or a turn that a fact corrects; empty if it corrects none."""
    return fact.partition(_CORRECTS_LINE)[2].removesuffix("]")


def _is_replaced(
    older: Item, newer: Item, wordings: dict[str, _Wording], asked: Period | None
) -> bool:
    if older.occurred_at == newer.occurred_at or older.kind not in _REPLACED_KINDS:
        return False
    if asked is not None and asked.covers(older.occurred_at) > asked.covers(newer.occurred_at):
        return False
    new, old = wordings[newer.id], wordings[older.id]
    if newer.kind == "fact":
        return len(new.text & old.text) >= _CORRECTED_NOTE * len(old.text)
    return new.replaces(old)


def _mark(hits: list[Hit], older: Item, newer: Item) -> None:
    places = {hit.item.id: place for place, hit in enumerate(hits)}
    before, after = places[older.id], places[newer.id]
    replaced, replacing = hits[before], hits[after]
    if replaced.superseded_by is not None:
        return
    hits[before] = replace(
        replaced,
        superseded_by=newer.id,
        why=f"{replaced.why}; superseded by {newer.title} ({newer.occurred_at:%Y-%m-%d})",
    )
    why = f"{replacing.why}; newer than {older.title} ({older.occurred_at:%Y-%m-%d})"
    hits[after] = replace(
        replacing,
        why=why,
        fit=max(replaced.fit, replacing.fit),
        confidence=max(replaced.confidence, replacing.confidence),
    )
    if before < after:
        hits.insert(before, hits.pop(after))


def _words(text: str) -> frozenset[str]:
    return frozenset(terms(text)) - STOP_TERMS


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the smaller set that is in the other one."""
    return len(one & other) / (min(len(one), len(other)) or 1)
