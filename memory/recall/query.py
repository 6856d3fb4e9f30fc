"""What memory is asked, and what it answers: query pack in, context pack out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memory.items import KINDS, Item, ItemKind
from memory.scope import Scope

Mode = Literal["rag", "llm"]

HeldBackReason = Literal["stale_tool_schema"]

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
"""Why a part of memory did not take part. Said by the part itself, never inferred from finding nothing."""

RECALLED_KINDS: tuple[ItemKind, ...] = ("note", "episode")
"""What goes into prompts unasked. Cases come by their tools, where a person switched them on; elsewhere
nobody hears of them."""
MAX_CATEGORIES = 10
MAX_ITEMS = 30
MAX_RESOURCES = 3
DEFAULT_BUDGET_CHARS = 6000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPack:
    """What is asked."""

    queries: Sequence[str]
    """In anybody's words; several are asked side by side and fused. Empty ones are left out."""
    scope: Scope
    mode: Mode = "rag"
    kinds: Sequence[ItemKind] = KINDS
    budget_chars: int = DEFAULT_BUDGET_CHARS
    """The bound of `ContextPack.text`, in characters."""
    max_items: int = MAX_ITEMS
    conversation_id: str | None = None
    """Whose pending context goes in too; None: nobody's."""
    active_tools: Sequence[str] = ()
    """The tools in use just now, oldest first: what memory says of their schemas is held back."""
    deadline_s: float | None = None
    """Parts that have not answered by then are left out and named; None: their own limits alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An item that was found, and why."""

    item: Item
    score: float
    """Above 0; the best of a list is at most 1. Comparable within one answer only."""
    why: str
    """In plain words: which retrievers found it at which place, what raised or lowered it."""
    fit: float = 0.0
    """0 to 1: how well it fits by the retrievers' own measures, where `score` knows places alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """An item that was found and is not shown."""

    id: str
    reason: HeldBackReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The answer of a search: best first, at most as many as were asked for."""

    hits: Sequence[Hit] = ()
    weak: Sequence[Hit] = ()
    """What a model may still find useful: too far off to be shown without one."""
    held_back: Sequence[HeldBack] = ()
    degraded: Sequence[Degradation] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """What several of the items have in common."""

    name: str
    summary: str
    item_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextItem:
    """One line of what goes into a prompt."""

    id: str
    kind: ItemKind
    title: str
    line: str
    relevance: float
    """As `Hit.score`."""
    why: str
    source: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """An extract of an item's whole text."""

    item_id: str
    source: str
    extract: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPack:
    """What memory has for one prompt; empty: nothing."""

    categories: Sequence[Category] = ()
    items: Sequence[ContextItem] = ()
    resources: Sequence[Resource] = ()
    held_back: Sequence[HeldBack] = ()
    next_step_query: str | None = None
    """What to ask for next where not everything fitted; None: nothing was left out."""
    degraded: Sequence[Degradation] = ()
    text: str = ""
    """What is injected, at most the query's budget; quoted data with source and date."""
    pending_intent_ids: Sequence[str] = ()
    """The conversation's own pending context that `text` holds; see `memory.intents`."""
