"""The full-text index of items: their terms, and a token for each part of their scope.

Texts are segmented before they are indexed; an engine's own index only folds accents and stems.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from memory.items.item import ItemKind
from memory.items.scope import LABELS, Scope
from memory.stores.database import Connection, engine_of
from memory.stores.sqlite.fts5_index import Fts5Index
from memory.stores.sqlite.tsvector_index import TsvectorIndex
from memory.stores.sqlite.word_index import IndexedTerms, WordIndex
from memory.text.terms import characters, terms

MAX_BODY_TERMS: Final = 4000
"""Only the beginning and the end of a longer text are searched."""
_NEIGHBOUR_TERMS: Final = 200
_WORD_INDEXES: Final[Mapping[str, WordIndex]] = {
    "sqlite": Fts5Index(),
    "postgresql": TsvectorIndex(),
}
"""By the engine of a database."""


def word_index_of(connection: Connection) -> WordIndex:
    """Return what holds the terms of a database's items."""
    return _WORD_INDEXES[engine_of(connection)]


def index_item_blocking(connection: Connection, seq: int) -> None:
    """Index the item in this row, again if it was indexed before, and its neighbours."""
    row = _row(connection, seq)
    _write(connection, row)
    reindex_neighbours_blocking(connection, row)


def unindex_item_blocking(connection: Connection, seq: int) -> None:
    """Remove an item from the index."""
    word_index_of(connection).remove_blocking(connection, seq)


def reindex_neighbours_blocking(connection: Connection, place: Any) -> None:
    """Index the items beside a place in a thread again, whether or not an item is there."""
    for row in _beside(connection, place):
        if row["position"] != place["position"]:
            _write(connection, _row(connection, row["seq"]))


def scope_tokens(owner_id: str, kind: str, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield a token for the owner, the kind, each label, and each lacking label that it is found
    by.
    """
    yield token("owner", owner_id)
    yield token("kind", kind)
    for name, value in labels.items():
        yield _label_token(name, value)
    if kind == "case":
        yield token("cases of owner", owner_id)
    for name in LABELS:
        if name not in labels and may_lack(kind, name):
            yield _label_token(name, None)


def may_lack(kind: ItemKind | str, label: str) -> bool:
    """Return whether a query can accept items of a kind without this label; see `SearchScope`."""
    return kind == "case" or label == "project_id"


def label_tokens(scope: Scope) -> list[Sequence[str]]:
    """Return, for each label that a query names, the tokens of which an item must have one."""
    return [
        [_label_token(name, value) for value in values] for name, values in scope.wanted.items()
    ]


def _label_token(name: str, value: str | None) -> str:
    return token("without", name) if value is None else token("label", f"{name}={value}")


def token(sort: Literal["owner", "kind", "cases of owner", "label", "without"], text: str) -> str:
    """Return a token that equals no word: a digest after the first letter of what it stands for.

    An owner's cases have a token of their own: one posting list to read instead of two.
    """
    return f"{sort[0]}{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"


def _row(connection: Connection, seq: int) -> Any:
    return connection.execute(
        "SELECT seq, owner_id, kind, labels, title, body, tags, thread, position"
        " FROM items WHERE seq = ?",
        (seq,),
    ).fetchone()


def _beside(connection: Connection, place: Any) -> list[Any]:
    """Return the items at a place in a thread and on either side of it."""
    if place["thread"] is None:
        return []
    at = place["position"]
    return connection.execute(
        "SELECT seq, position, title, body FROM items"
        " WHERE owner_id = ? AND thread = ? AND position IN (?, ?, ?)",
        (place["owner_id"], place["thread"], at - 1, at, at + 1),
    ).fetchall()


def _write(connection: Connection, row: Any) -> None:
    beside = {
        item["position"] - row["position"]: _whole_text(item) for item in _beside(connection, row)
    }
    title = [*terms(_own_title(row)), *terms(" ".join(json.loads(row["tags"])))]
    written = IndexedTerms(
        title=title,
        body=_ends(terms(row["body"]), MAX_BODY_TERMS),
        before=_ends(terms(beside.get(-1, "")), _NEIGHBOUR_TERMS),
        after=_ends(terms(beside.get(1, "")), _NEIGHBOUR_TERMS),
        characters=characters(_whole_text(row)),
        scope=list(scope_tokens(row["owner_id"], row["kind"], json.loads(row["labels"]))),
    )
    word_index_of(connection).put_blocking(connection, row["seq"], written)


def _whole_text(row: Any) -> str:
    return f"{_own_title(row)} {row['body']}"


def _own_title(row: Any) -> str:
    """Return the title, or nothing if it repeats the body's beginning: its words
    would count twice.
    """
    title: str = row["title"]
    repeated = " ".join(row["body"][: 2 * len(title)].split()).startswith(
        title.rstrip("…").rstrip()
    )
    return "" if repeated else title


def _ends(words: Sequence[str], most: int) -> Sequence[str]:
    if len(words) <= most:
        return words
    return [*words[: most * 3 // 4], *words[-(most // 4) :]]
