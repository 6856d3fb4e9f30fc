"""What memory is asked, and what it answers.

The gateway asks before each run, within a deadline, and injects `ContextPack.text` beside the
prompt. Slow or broken parts of memory are named in `degraded` and never break the turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from memory.items.item import KINDS, Item, ItemKind
from memory.items.scope import Scope
from memory.items.seen import NOTHING_SEEN, Seen

Mode = Literal["rag", "llm"]

HeldBackReason = Literal["stale_tool_schema", "superseded"]

Degradation = Literal[
    "vector_error",
    "vector_timeout",
    "vector_rebuilding",
    "breaker_open",
    "memu_error",
    "memu_timeout",
    "fulltext_error",
    "fulltext_timeout",
    "notes_error",
    "notes_timeout",
    "selector_disabled",
    "selector_error",
    "selector_timeout",
    "memory_failed",
    "memory_timeout",
]
"""Why a part of memory did not answer; never inferred from an empty answer."""

RECALLED_KINDS: tuple[ItemKind, ...] = ("note", "fact", "episode", "turn")
"""Kinds that go into prompts. Cases are read by their tools only, which a person switches on."""
MAX_CATEGORIES = 10
MAX_ITEMS = 30
MAX_RESOURCES = 3
MAX_SHOWN = 5
"""Found items in one prompt."""
DEFAULT_BUDGET_CHARS = 6000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPack:
    """A question to memory."""

    queries: Sequence[str]
    """Asked at the same time, and fused; empty ones are ignored."""
    scope: Scope
    mode: Mode = "rag"
    kinds: Sequence[ItemKind] = KINDS
    budget_chars: int = DEFAULT_BUDGET_CHARS
    """Maximum length of `ContextPack.text`."""
    max_items: int = MAX_ITEMS
    conversation_id: str | None = None
    """The conversation whose pending context is included."""
    seen: Seen = NOTHING_SEEN
    """What the conversation's model has already."""
    active_tools: Sequence[str] = ()
    """Names or signatures of the tools in use, oldest first; what memory says of their schemas is
    held back.
    """
    deadline_s: float | None = None
    """Parts that have not answered by then are left out and named; None: only their own limits."""
    selecting_s: float = 0.0
    """In the mode `llm` the model may choose for so long after the deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A found item."""

    item: Item
    score: float
    """Above 0, the best of a list at most 1; comparable within one answer only."""
    why: str
    """In words: which retrievers found it, at which place."""
    fit: float = 0.0
    """0 to 1, by the retrievers' own measures; `score` uses ranks only."""
    nearness: float = 1.0
    """To the best that one of the retrievers found, 0 to 1."""
    is_weak: bool = False
    """True if it is not worth showing unasked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """A found item that is not shown."""

    id: str
    reason: HeldBackReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer of a search, best first."""

    hits: Sequence[Hit] = ()
    more: Sequence[Hit] = ()
    """Hits beyond the limit, for `ContextPack.next_step_query`."""
    not_told: int = 0
    """How many further ones are worth showing, whose items were not read."""
    held_back: Sequence[HeldBack] = ()
    degraded: Sequence[Degradation] = ()
    is_by_words: bool = False
    """True if nothing was found but by words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """Items with a kind or tag in common."""

    name: str
    summary: str
    item_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """One item in a prompt."""

    id: str
    kind: ItemKind
    title: str
    line: str
    relevance: float
    """As `Hit.score`."""
    why: str
    source: str
    occurred_at: datetime
    revision: int = 1
    conversation_id: str | None = None
    turn_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """An extract of an item's text."""

    item_id: str
    source: str
    extract: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPack:
    """What goes into one prompt; empty: nothing."""

    categories: Sequence[Category] = ()
    items: Sequence[ContextItem] = ()
    resources: Sequence[Resource] = ()
    held_back: Sequence[HeldBack] = ()
    next_step_query: str | None = None
    """What to ask for the rest; None: everything fitted."""
    degraded: Sequence[Degradation] = ()
    text: str = ""
    """The injected text: quoted data with source and date."""
    has_profile: bool = False
    """True if the text begins with the person's profile."""
    pending_intent_ids: Sequence[str] = ()
    """The pending intents that `text` contains; see `memory.intents`."""


class MemoryReader(Protocol):
    """Reads the context of a turn."""

    async def recall(self, query: QueryPack) -> ContextPack:
        """Return what fits the query. May be cancelled at the turn's deadline at any await."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingText:
    """Text for a prompt, and the ids of the intents in it."""

    text: str = ""
    intent_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedItem:
    """A note's item of which at least one line is in `QuotedNotes.text`."""

    item: Item
    line: str
    """The first of its lines that is not empty."""
    is_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedNotes:
    """The notes for a message that asks about memory; empty: none."""

    text: str = ""
    items: Sequence[QuotedItem] = ()
    """In the order of the text, each once."""
    held_back: Sequence[HeldBack] = ()
    """Items that would be in the text but are stale now."""
