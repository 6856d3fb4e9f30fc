"""The words of an item as they stand in the full-text index, and the tokens of its scope.

The index is told everything segmented: its own tokenizer only folds accents and takes word endings off.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from memory.items import ItemKind
from memory.scope import LABELS, Scope
from memory.terms import characters, terms

MAX_BODY_TERMS: Final = 4000
"""Of a longer text the beginning and the end are searched."""
_NEIGHBOUR_TERMS: Final = 200

_NEIGHBOURS: Final = (
    "SELECT seq, position, title, body FROM items"
    " WHERE owner_id = ? AND thread = ? AND position IN (?, ?, ?)"
)


def put_words_blocking(connection: sqlite3.Connection, seq: int) -> None:
    """Write the words of the item in this row, anew if there are some, and its neighbours'."""
    row = _row(connection, seq)
    _write(connection, row)
    tell_neighbours_blocking(connection, row)


def remove_words_blocking(connection: sqlite3.Connection, seq: int) -> None:
    """Remove the words of an item."""
    connection.execute("DELETE FROM item_words WHERE rowid = ?", (seq,))


def tell_neighbours_blocking(connection: sqlite3.Connection, place: sqlite3.Row) -> None:
    """Write anew the words of what stands beside a place in a thread, whoever has it or had it."""
    for one in _neighbours(connection, place):
        _write(connection, _row(connection, one))


def scope_tokens(owner_id: str, kind: str, labels: Mapping[str, str]) -> Iterator[str]:
    """Give a token for the owner, the kind and each label of an item, and of a case for each it lacks.

    Only cases are asked for what they lack, and by an owner's cases alone: for other kinds the index
    would only grow.
    """
    yield owner_token(owner_id)
    yield kind_token(kind)
    for name, value in labels.items():
        yield _label_token(name, value)
    if kind == "case":
        yield case_token(owner_id)
        for name in LABELS:
            if name not in labels:
                yield _label_token(name, None)


def owner_token(owner_id: str) -> str:
    """Give the token of an owner."""
    return _token("o", owner_id)


def kind_token(kind: ItemKind | str) -> str:
    """Give the token of a kind."""
    return _token("k", kind)


def case_token(owner_id: str) -> str:
    """Give the token of an owner's cases: one list to go through in the place of two."""
    return _token("c", owner_id)


def label_tokens(scope: Scope) -> list[Sequence[str]]:
    """Give for each label that a query names the tokens of which an item must have one."""
    return [
        [_label_token(name, value) for value in values] for name, values in scope.wanted.items()
    ]


def _label_token(name: str, value: str | None) -> str:
    return _token("w", name) if value is None else _token("l", f"{name}={value}")


def _token(sort: str, text: str) -> str:
    """Make a token that no word is: a digest, whatever the name holds."""
    return f"{sort}{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:20]}"


def _row(connection: sqlite3.Connection, seq: int) -> sqlite3.Row:
    cursor = connection.execute(
        "SELECT seq, owner_id, kind, labels, title, body, tags, thread, position"
        " FROM items WHERE seq = ?",
        (seq,),
    )
    row: sqlite3.Row = cursor.fetchone()
    return row


def _neighbours(connection: sqlite3.Connection, row: sqlite3.Row) -> list[int]:
    if row["thread"] is None:
        return []
    return [one["seq"] for one in _beside(connection, row) if one["position"] != row["position"]]


def _beside(connection: sqlite3.Connection, row: sqlite3.Row) -> list[sqlite3.Row]:
    place = row["position"]
    return connection.execute(
        _NEIGHBOURS, (row["owner_id"], row["thread"], place - 1, place, place + 1)
    ).fetchall()


def _write(connection: sqlite3.Connection, row: sqlite3.Row) -> None:
    beside = (
        {}
        if row["thread"] is None
        else {
            one["position"] - row["position"]: _whole_text(one) for one in _beside(connection, row)
        }
    )
    title = terms(_own_title(row))
    body = _ends(terms(row["body"]), MAX_BODY_TERMS)
    tags = terms(" ".join(json.loads(row["tags"])))
    scope = scope_tokens(row["owner_id"], row["kind"], json.loads(row["labels"]))
    connection.execute("DELETE FROM item_words WHERE rowid = ?", (row["seq"],))
    connection.execute(
        "INSERT INTO item_words (rowid, title, body, before, after, characters, scope)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            row["seq"],
            " ".join([*title, *tags]),
            " ".join(body),
            " ".join(_ends(terms(beside.get(-1, "")), _NEIGHBOUR_TERMS)),
            " ".join(_ends(terms(beside.get(1, "")), _NEIGHBOUR_TERMS)),
            " ".join(characters(_whole_text(row))),
            " ".join(scope),
        ),
    )


def _whole_text(row: sqlite3.Row) -> str:
    return f"{_own_title(row)} {row['body']}"


def _own_title(row: sqlite3.Row) -> str:
    """Give the title but where it only repeats the body's beginning: its words would count twice."""
    title: str = row["title"]
    repeated = " ".join(row["body"][: 2 * len(title)].split()).startswith(
        title.rstrip("…").rstrip()
    )
    return "" if repeated else title


def _ends(words: Sequence[str], most: int) -> Sequence[str]:
    if len(words) <= most:
        return words
    return [*words[: most * 3 // 4], *words[-(most // 4) :]]
