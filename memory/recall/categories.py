"""Names what several found items have in common: kinds, tags, and topics, which are words of their
titles.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from memory.items.item import Item
from memory.recall.query import MAX_CATEGORIES, Category
from memory.recall.question_words import STOP_TERMS
from memory.text.terms import terms

_MAX_SUBJECTS = 3
_MIN_MEMBERS = 2


def categories_of(items: Sequence[Item]) -> list[Category]:
    """Return at most ten categories of at least two items, the most common first."""
    members = dict(_topics(items))
    for name in dict.fromkeys(name for item in items for name in (f"{item.kind}s", *item.tags)):
        members[name] = [item for item in items if name in (f"{item.kind}s", *item.tags)]
    common = [pair for pair in members.items() if len(pair[1]) >= _MIN_MEMBERS]
    common.sort(key=lambda pair: -len(pair[1]))
    return [_category(name, of_it) for name, of_it in common[:MAX_CATEGORIES]]


def _topics(items: Sequence[Item]) -> Iterator[tuple[str, list[Item]]]:
    """Yield the longest runs of words that several titles share, each with its items."""
    titles = [_words(item.title) for item in items]
    sets = [set(title) for title in titles]
    counts = Counter(word for words in sets for word in words - STOP_TERMS)
    runs: dict[tuple[int, ...], list[str]] = {}
    for title in titles:
        for place, word in enumerate(title):
            if counts[word] >= _MIN_MEMBERS:
                run = _run_around(place, title, counts)
                own = tuple(n for n, words in enumerate(sets) if words.issuperset(run))
                runs[own] = max(runs.get(own, []), run, key=len)
    for own, run in runs.items():
        yield _spelled(run), [items[n] for n in own]


def _words(title: str) -> list[str]:
    """Return the words of a title, without numbers and compounds, whose parts are there."""
    found = [term for term in terms(title) if not term.isdecimal()]
    return [term for n, term in enumerate(found) if "".join(found[:n])[-len(term) :] != term]


def _run_around(place: int, title: Sequence[str], counts: Counter[str]) -> list[str]:
    """Return a word with its neighbours that are at least as common among the titles."""
    first = last = place
    while first > 0 and counts[title[first - 1]] >= counts[title[place]]:
        first -= 1
    while last + 1 < len(title) and counts[title[last + 1]] >= counts[title[place]]:
        last += 1
    return list(title[first : last + 1])


def _spelled(run: Sequence[str]) -> str:
    """Return a run as text; pairs of Chinese characters overlap."""
    text = run[0]
    for before, term in pairwise(run):
        text += term[1:] if not term.isascii() and term[:1] == before[-1:] else f" {term}"
    return text


def _category(name: str, members: Sequence[Item]) -> Category:
    titles = "; ".join(item.title for item in members[:_MAX_SUBJECTS])
    return Category(
        name=name,
        summary=f"{len(members)} of what was found: {titles}",
        item_ids=tuple(item.id for item in members),
    )
