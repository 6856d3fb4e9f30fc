"""What holds the terms of items, and finds the rows that have some; each engine has its own.

What is looked for is an expression in the engine's language, made of words, and of tokens that
stand for a part of an item's scope. Both are letters and digits, so nothing needs escaping.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from memory.stores.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedTerms:
    """What is indexed of an item: terms in their order, and what else finds it."""

    title: Sequence[str]
    body: Sequence[str]
    before: Sequence[str]
    """Of the item before it in its thread."""
    after: Sequence[str]
    """Of the item after it."""
    characters: Sequence[str]
    """Each Chinese, Japanese or Korean character of the title and the body once."""
    scope: Sequence[str]
    """A token for each part of its scope."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that have a term."""

    count: int
    seqs: Sequence[int] | None
    """None if they were not read, since their count is remembered, or if they are too many."""


class IndexedRow(NamedTuple):
    """A row with what a search needs of its item."""

    seq: int
    item_id: str
    kind: str
    labels: str
    """As JSON."""
    characters: str
    """The single Chinese, Japanese and Korean characters of the title and the body."""
    columns: Sequence[str]
    """The terms of the title, the body and the items before and after, with spaces between them."""


class WordIndex(Protocol):
    """The terms of items by their rows. An expression finds the same rows on every engine."""

    @property
    def few(self) -> int:
        """Rows of an expression that are as quick to read as to count."""

    def put_blocking(self, writer: Connection, seq: int, terms: IndexedTerms) -> None:
        """Index a row, again if it was indexed before."""

    def remove_blocking(self, writer: Connection, seq: int) -> None:
        """Remove a row; one that is not there is fine."""

    def prepare_blocking(self, reader: Connection) -> None:
        """Prepare the index for the reads of a transaction; call it before the others."""

    def scoped(self, tokens: Iterable[str]) -> str:
        """Return the expression for rows with one of the tokens."""

    def having(self, term: str, stem: str) -> str:
        """Return the expression for rows with a term in some form; `stem` is that of the term.

        A single character is found in the title and the body.
        """

    def all_of(self, parts: Iterable[str]) -> str:
        """Return the expression for rows that fit all of one or several expressions."""

    def one_of(self, parts: Iterable[str]) -> str:
        """Return the expression for rows that fit one of one or several expressions."""

    def without(self, part: str, other: str) -> str:
        """Return the expression for rows that fit the one and not the other."""

    def counting_blocking(self, reader: Connection, expression: str) -> Callable[[], int]:
        """Count the rows that fit; what is returned waits for their number."""

    def rows_blocking(
        self, reader: Connection, expression: str, limit: int, *, newest: bool
    ) -> list[int]:
        """Return so many of the rows that fit, the newest or any, in no certain order."""

    def look_up_blocking(
        self, reader: Connection, expressions: Sequence[str], most: int, counted: int
    ) -> Sequence[Rows]:
        """Return the rows that fit each of the expressions, in no certain order; of those with more
        than `most` only how many they are, counting to `counted`.
        """

    def read_blocking(self, reader: Connection, seqs: Sequence[int]) -> Iterable[IndexedRow]:
        """Yield those of some rows that are there, in no certain order."""
