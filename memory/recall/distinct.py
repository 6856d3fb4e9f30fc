"""Leaves out turns that tell what a better hit tells, and puts those that only ask behind what
answers.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memory.items.item import REPLY, Item
from memory.recall.query import MAX_SHOWN, Hit
from memory.recall.question_parts import QUESTION_MARKS
from memory.text.lines import flat
from memory.text.terms import terms

_MOSTLY: Final = 3
"""A turn of at most so many times a fact's length says little beside it."""


def distinct(hits: Sequence[Hit], seen: Sequence[Item] = ()) -> list[Hit]:
    """Return the hits, best first, without what a better one tells: the same turn, or a turn's same
    words.

    Of a turn and the episode made of it the better one stays; what else was made of a turn always
    stays. A turn that says little beside a fact that it told is left out for the fact, also for one
    of the found items that were `seen`.
    """
    items = (*seen, *(hit.item for hit in hits))
    facts = {item.turn_id: len(item.body) for item in items if item.kind == "fact"}
    told: set[tuple[str, str | None]] = set()
    kept: list[Hit] = []
    for hit in hits:
        item = hit.item
        if item.kind == "turn" and len(item.body) <= _MOSTLY * facts.get(item.turn_id, 0):
            continue
        own = {("made of", item.turn_id)}
        repeated: set[tuple[str, str | None]] = set()
        if item.kind == "turn":
            own |= {("turn", item.turn_id), ("text", flat(item.body).casefold())}
            repeated = own
        elif item.kind == "episode":
            repeated = {("turn", item.turn_id)}
        if not repeated & told:
            told |= own
            kept.append(hit)
    return kept


def answers_first(hits: Sequence[Hit], queries: Sequence[str]) -> list[Hit]:
    """Return the hits, with turns of the same question behind the other likely hits, and the others
    as near as if no turn asked anything.

    A question is nearest to a question, whether or not anything in its turn answers. The best turn
    of the same question is still among the first five.
    """
    asked = [frozenset(terms(query)) for query in queries]
    others: list[Hit] = []
    repeated: list[Hit] = []
    for hit in hits:
        (repeated if _only_asks(hit.item, asked) else others).append(hit)
    likely = [hit for hit in others if not hit.is_weak]
    if not likely:
        return list(hits)
    telling = [hit for hit in likely if not _asks(hit.item)] or likely
    nearest = max(hit.nearness for hit in telling) or 1.0
    near = [replace(hit, nearness=min(1.0, hit.nearness / nearest)) for hit in others]
    if not repeated:
        return near
    place = others.index(likely[-1]) + 1
    first, *behind = [replace(hit, fit=0.0) for hit in repeated]
    at = min(place, MAX_SHOWN - 1)
    return [*near[:at], first, *near[at:place], *behind, *near[place:]]


def _asks(item: Item) -> bool:
    """Return whether it is a turn whose message has a question."""
    message = item.body.partition(f"\n{REPLY}")[0]
    return item.kind == "turn" and not QUESTION_MARKS.isdisjoint(message)


def _only_asks(item: Item, asked: Sequence[frozenset[str]]) -> bool:
    """Return whether it is a turn whose message has no other words than one of the questions."""
    if item.kind != "turn":
        return False
    words = terms(item.title)
    return any(question.issuperset(words) for question in asked)
