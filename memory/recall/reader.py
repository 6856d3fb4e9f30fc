"""`RecallReader`: from a query pack to a context pack.

Reads pending context, notes and search results at the same time, lets a model choose where that is
asked for, filters again and packs. Only cancellation is raised; parts that did not answer are
named.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import anyio
import anyio.to_thread

from memory.items.item import ItemKind
from memory.items.scope import WORKSPACE_OWNER, Scope
from memory.items.store import NewestItems
from memory.recall.distinct import distinct
from memory.recall.memory_questions import asks_about_memory
from memory.recall.pack import Pieces, pack
from memory.recall.query import (
    MAX_ITEMS,
    MAX_SHOWN,
    ContextPack,
    Degradation,
    Found,
    Hit,
    PendingText,
    QueryPack,
    QuotedNotes,
)
from memory.recall.search import MAX_QUERIES, READ_AT_ONCE, MemorySearch
from memory.recall.select import Selector
from memory.recall.shown import worth_showing
from memory.recall.stale_schema import split_stale

_log = logging.getLogger(__name__)

_NEWEST: Final = 10
_PENDING_SHARE: Final = 3
_NOTES_SHARE: Final = 2
_LEAST_LEFT_S: Final = 0.02
_FINDING_SHARE: Final = 0.72
"""Part of the deadline for the parts; the rest is for ranking, and for packing."""
UNSEARCHED_S: Final = 1.0
"""What is read without a search, the profile and the newest episodes, may take so long after the
deadline.
"""
_SELECTABLE: Final = 20
"""What a model may choose from."""
_LISTED: Final = "among the newest; the question is about all of memory"
_UNSEARCHED: Final = "among the newest; memory could not be searched"
_NO_ANSWER: Final = frozenset({"fulltext_error", "fulltext_timeout", "memory_timeout"})
_OF_NOTES: Final = Scope(owner_id=WORKSPACE_OWNER)


ReadPending = Callable[[str, str, int], Awaitable[PendingText]]
"""Returns what waits for the next prompt of a conversation of an owner, in at most so many
characters.
"""
ReadProfile = Callable[[str], Awaitable[str]]
"""Returns what is always in the context of an owner; empty if there is nothing."""


class AboutMemory(Protocol):
    """Quotes the notes for a message that asks about memory."""

    async def content(
        self,
        text: str,
        *,
        owner_id: str,
        budget_chars: int,
        most_items: int,
        active_tools: Sequence[str],
    ) -> QuotedNotes:
        """Return the quoted notes that an owner sees, without what is stale while these tools are
        in use.
        """


@dataclass(slots=True)
class _Before:
    """What precedes the search results."""

    asked: str | None = None
    """The first of the queries that asks about memory."""
    profile: str = ""
    pending: PendingText = field(default_factory=PendingText)
    notes: QuotedNotes = field(default_factory=QuotedNotes)
    degraded: list[Degradation] = field(default_factory=list)

    @contextmanager
    def reading(
        self,
        ends_at: float | None,
        event: str,
        late: Degradation = "memory_timeout",
        broken: Degradation = "memory_failed",
    ) -> Iterator[None]:
        """Run the block until a moment; if it is late or breaks, note that and go on."""
        try:
            with anyio.fail_after(_left_s(ends_at)):
                yield
        except TimeoutError:
            self.degraded.append(late)
        except Exception:  # noqa: BLE001  memory never breaks a turn, whatever broke
            _log.exception(event)
            self.degraded.append(broken)


class RecallReader:
    """Reads memory for prompts."""

    def __init__(
        self,
        search: MemorySearch,
        *,
        selector: Selector | None = None,
        pending: ReadPending | None = None,
        profiles: ReadProfile | None = None,
        about_memory: AboutMemory | None = None,
        items: NewestItems | None = None,
    ) -> None:
        self._search = search
        self._selector = selector
        self._pending = pending
        self._profiles = profiles
        self._about_memory = about_memory
        self._items = items

    async def recall(self, query: QueryPack) -> ContextPack:
        """Return what fits the query, within its budget and deadline.

        The profile, and the newest episodes in place of a search that did not answer, have
        `UNSEARCHED_S` more.
        """
        ends_at = _ends_at(query, _FINDING_SHARE)
        unsearched_until = _ends_at(query, after_s=UNSEARCHED_S)
        asked = filter(asks_about_memory, query.queries[:MAX_QUERIES])
        before = _Before(asked=next(asked, None) if self._about_memory is not None else None)
        found = Found(degraded=("memory_timeout",))

        async def find() -> None:
            nonlocal found
            with anyio.move_on_after(_left_s(_ends_at(query, after_s=query.selecting_s))):
                found = await self._find(query, before.asked, ends_at)
            if not found.hits and not _NO_ANSWER.isdisjoint(found.degraded):
                with before.reading(unsearched_until, "newest_not_read"):
                    found = await self._newest(query, found, ("episode",), _UNSEARCHED)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._add_pending, query, before, ends_at)
            tasks.start_soon(self._add_profile, query, before, unsearched_until)
            if before.asked is not None:
                tasks.start_soon(self._add_notes, query, before, ends_at)
            await find()
        degraded = tuple(dict.fromkeys((*found.degraded, *before.degraded)))
        pieces = Pieces(
            found=replace(found, degraded=degraded),
            budget_chars=query.budget_chars,
            max_items=query.max_items,
            queries=query.queries,
            profile=before.profile,
            before=before.pending.text,
            notes=before.notes,
        )
        if sum(len(hit.item.body) for hit in found.hits) <= READ_AT_ONCE:
            packed = pack(pieces)
        else:
            packed = await anyio.to_thread.run_sync(pack, pieces)
        was_told = before.pending.text in packed.text
        return replace(packed, pending_intent_ids=before.pending.intent_ids if was_told else ())

    async def _find(self, query: QueryPack, asked: str | None, ends_at: float | None) -> Found:
        """Search; let a model choose if the query asks for it.

        For a question about all of memory the newest follow, facts first.
        """
        found = Found()
        try:
            found = await self._search.search(
                query.queries,
                scope=query.scope,
                kinds=query.kinds,
                limit=MAX_SHOWN if query.mode == "rag" else _SELECTABLE,
                active_tools=query.active_tools,
                deadline_s=_left_s(ends_at),
                seen=query.seen,
            )
            shown = await self._chosen(query, found, ends_at)
            if asked is None:
                return shown
            return await self._newest(query, shown, query.kinds, _LISTED)
        except Exception:  # noqa: BLE001  memory never breaks a turn, whatever broke
            _log.exception("recall_failed")
            return replace(found, degraded=(*found.degraded, "memory_failed"))

    async def _chosen(self, query: QueryPack, found: Found, ends_at: float | None) -> Found:
        likely = worth_showing(found)
        if query.mode == "rag":
            return likely
        left_s = None if ends_at is None else _left_s(ends_at + query.selecting_s)
        if self._selector is None:
            return replace(likely, degraded=(*found.degraded, "selector_disabled"))
        if left_s is not None and left_s < _LEAST_LEFT_S:
            return replace(likely, degraded=(*found.degraded, "selector_timeout"))
        chosen = await self._selector.select(
            query.queries, replace(found, more=()), query.active_tools, deadline_s=left_s
        )
        if chosen.hits is found.hits:
            return replace(likely, degraded=chosen.degraded)
        return await _filtered_again(chosen, query.active_tools)

    async def _newest(
        self, query: QueryPack, found: Found, kinds: Sequence[ItemKind], why: str
    ) -> Found:
        if self._items is None or not (wanted := [kind for kind in kinds if kind in query.kinds]):
            return found
        facts = [kind for kind in wanted if kind == "fact"]
        newest = [
            item
            for some in (facts, [kind for kind in wanted if kind != "fact"])
            if some
            for item in await self._items.newest(query.scope, kinds=some, limit=_NEWEST // 2)
        ]
        known = {hit.item.id for hit in found.hits}
        unseen = [
            item for item in newest if item.id not in known and item.turn_id not in query.seen.turns
        ]
        shown, held = await split_stale(unseen, query.active_tools)
        hits = [Hit(item=item, score=1 / n, why=why) for n, item in enumerate(shown, start=2)]
        return replace(
            found,
            hits=distinct((*found.hits, *hits))[:_NEWEST],
            held_back=(*found.held_back, *held),
        )

    async def _add_pending(self, query: QueryPack, before: _Before, ends_at: float | None) -> None:
        if self._pending is None or query.conversation_id is None:
            return
        most = query.budget_chars // _PENDING_SHARE
        with before.reading(ends_at, "pending_context_not_read"):
            before.pending = await self._pending(query.conversation_id, query.scope.owner_id, most)

    async def _add_profile(self, query: QueryPack, before: _Before, ends_at: float | None) -> None:
        if self._profiles is not None:
            with before.reading(ends_at, "profile_not_read"):
                before.profile = await self._profiles(query.scope.owner_id)

    async def _add_notes(self, query: QueryPack, before: _Before, ends_at: float | None) -> None:
        about, asked = self._about_memory, before.asked
        if about is None or asked is None or not _may_have_notes(query):
            return
        with before.reading(ends_at, "notes_not_read", "notes_timeout", "notes_error"):
            before.notes = await about.content(
                asked,
                owner_id=query.scope.owner_id,
                budget_chars=query.budget_chars // _NOTES_SHARE,
                most_items=max(0, min(query.max_items, MAX_ITEMS)),
                active_tools=query.active_tools,
            )


def _may_have_notes(query: QueryPack) -> bool:
    """Return whether the query covers notes, which have no labels."""
    return "note" in query.kinds and query.scope.covers(_OF_NOTES)


def _ends_at(query: QueryPack, share: float = 1.0, after_s: float = 0.0) -> float | None:
    """Return the time of the loop's clock after a share of the deadline and some time; None: no
    deadline.
    """
    if query.deadline_s is None:
        return None
    return anyio.current_time() + query.deadline_s * share + after_s


def _left_s(ends_at: float | None) -> float | None:
    return None if ends_at is None else max(0.0, ends_at - anyio.current_time())


async def _filtered_again(found: Found, active_tools: Sequence[str]) -> Found:
    """Filter what a model chose, so that no path leads around the filter."""
    shown, held = await split_stale([hit.item for hit in found.hits], active_tools)
    ids = {item.id for item in shown}
    return replace(
        found,
        hits=[hit for hit in found.hits if hit.item.id in ids],
        held_back=(*found.held_back, *held),
    )
