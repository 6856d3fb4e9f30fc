"""Writes episodes: the one place where a draft becomes memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from memory.clock import Now
from memory.episodes.episode import EpisodeDraft, Written
from memory.episodes.episode_merge import fingerprint_of
from memory.episodes.preparation import Prepared, prepare, without_what_may_repeat
from memory.episodes.store import NewEpisode, Put, SqlEpisodeStore
from memory.items.ids import opaque_id
from memory.items.scope import Scope

_MAX_PREPARING: Final = 2
"""Worker threads that prepare drafts."""


_Ready = tuple[Prepared, NewEpisode | None]
"""A prepared draft; without an episode if it was refused."""


class MemoryWriter:
    """Clips, redacts, judges and stores episodes, or merges them into similar ones.

    A method that raises `StoreUnavailable` has stored nothing.
    """

    def __init__(
        self,
        store: SqlEpisodeStore,
        *,
        deliver_to: Sequence[str],
        known_secrets: Sequence[str] = (),
        keeps_contacts: bool = False,
        now: Now,
        new_id: Callable[[], str] = lambda: opaque_id("epi"),
        on_written: Callable[[Sequence[Written]], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._deliver_to = tuple(deliver_to)
        self._known_secrets = tuple(known_secrets)
        self._keeps_contacts = keeps_contacts
        self._now = now
        self._new_id = new_id
        self._on_written = on_written
        self._preparing = anyio.CapacityLimiter(_MAX_PREPARING)

    async def write(self, draft: EpisodeDraft, *, remembers_turn: str | None = None) -> Written:
        """Store a draft as an episode with its item, its deliveries and the turn's mark, in one
        transaction.

        For a refused draft only the turn's mark is stored. Two equal drafts at once make one
        episode. If cancelled, everything or nothing was stored.
        """
        (written,) = await self.write_all([draft], remembers_turn=remembers_turn)
        return written

    async def write_all(
        self, drafts: Sequence[EpisodeDraft], *, remembers_turn: str | None = None
    ) -> Sequence[Written]:
        """Write drafts, all of the one turn or of none, in one transaction, in order.

        Each is judged and merged as by `write`. Pass at most some hundred, because the transaction
        blocks every other writer.
        """
        all_ready = await self._ready(drafts)
        some = [replace(new, remembers_turn=remembers_turn) for _, new in all_ready if new]
        puts = iter(await self._store.put(some) if some else ())
        if not some and remembers_turn is not None:
            await self._store.mark_remembered(remembers_turn)
        written = [
            _written(prepared, next(puts) if new is not None else None)
            for prepared, new in all_ready
        ]
        self._on_written(written)
        return written

    async def _ready(self, drafts: Sequence[EpisodeDraft]) -> Sequence[_Ready]:
        known = [await self._with_recalled(draft) for draft in drafts]
        # ids are drawn here: in a worker thread each draw would release and retake the interpreter
        # lock so quickly that the loop starves
        named = [(draft, self._new_id()) for draft in known]
        work = partial(self._ready_blocking, named, now=self._now())
        return await anyio.to_thread.run_sync(work, limiter=self._preparing)

    async def _with_recalled(self, draft: EpisodeDraft) -> EpisodeDraft:
        if draft.was_shown_forgotten:
            return without_what_may_repeat(draft)
        if not draft.recalled_ids:
            return draft
        anywhere = Scope(owner_id=draft.scope.owner_id)  # with any labels
        texts = await self._store.recalled_texts(draft.recalled_ids, anywhere)
        if texts is None:
            return without_what_may_repeat(draft)
        return replace(draft, recalled_texts=tuple(texts))

    def _ready_blocking(
        self, named: Sequence[tuple[EpisodeDraft, str]], *, now: datetime
    ) -> list[_Ready]:
        ready: list[_Ready] = []
        for draft, episode_id in named:
            prepared = prepare(
                draft,
                episode_id=episode_id,
                now=now,
                known_secrets=self._known_secrets,
                keeps_contacts=self._keeps_contacts,
            )
            episode = prepared.episode
            new = None
            if episode is not None:
                new = NewEpisode(
                    episode=episode,
                    fingerprint=fingerprint_of(episode),
                    deliver_to=self._deliver_to,
                    comes_back=draft.kept is not None,
                )
            ready.append((prepared, new))
        return ready


def _written(prepared: Prepared, put: Put | None) -> Written:
    return Written(
        status="refused" if put is None else put.status,
        episode_id=None if put is None else put.episode_id,
        reason=prepared.reason if put is None else None,
        clipped=prepared.clipped,
        redacted=prepared.redacted,
        left_out=prepared.left_out,
    )
