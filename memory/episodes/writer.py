"""The way in: every episode, whoever made it, becomes memory here or not at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

import anyio
import anyio.to_thread

from memory.clock import Now
from memory.episodes.episode import Episode, EpisodeDraft, Written
from memory.episodes.likeness import likeness_of
from memory.episodes.preparation import Prepared, prepare, with_recalled, without_what_may_repeat
from memory.episodes.store import EpisodeStore, NewEpisode, Put
from memory.ids import new_episode_id
from memory.scope import Scope

_MAX_PREPARING: Final = 2
"""So many drafts are clipped and redacted side by side, in worker threads."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A draft that was judged; `new` is None where it was refused."""

    prepared: Prepared
    new: NewEpisode | None


class MemoryWriter:
    """Clips, redacts, judges and stores episodes, or merges them with their like."""

    def __init__(
        self,
        store: EpisodeStore,
        *,
        deliver_to: Sequence[str],
        known_secrets: Sequence[str] = (),
        now: Now,
        new_id: Callable[[], str] = new_episode_id,
    ) -> None:
        self._store = store
        self._deliver_to = tuple(deliver_to)
        self._known_secrets = tuple(known_secrets)
        self._now = now
        self._new_id = new_id
        self._preparing = anyio.CapacityLimiter(_MAX_PREPARING)

    async def write(self, draft: EpisodeDraft, *, remembers_turn: str | None = None) -> Written:
        """Make an episode of a draft, with its item, its words, its deliveries and the turn's mark.

        All of that is stored in one transaction, or none of it. Of a refused draft the turn's mark
        alone is stored. Two equal drafts at once make one episode. Cancelled, it has happened whole or
        not at all.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        (ready,) = await self._ready([draft])
        if ready.new is None:
            if remembers_turn is not None:
                await self._store.mark_remembered(remembers_turn)
            return _refused(ready.prepared)
        put = await self._store.put([replace(ready.new, remembers_turn=remembers_turn)])
        return _written(ready.prepared, put[0])

    async def write_all(self, drafts: Sequence[EpisodeDraft]) -> Sequence[Written]:
        """Write many drafts in one transaction, in their order: for imports.

        Each is judged and merged as by `write`, also with those before it. At most some hundred at a
        time: the transaction holds up every other writer.

        Raises:
            StoreUnavailable: nothing was stored.
        """
        all_ready = await self._ready(drafts)
        puts = iter(
            await self._store.put([ready.new for ready in all_ready if ready.new is not None])
        )
        return [
            _refused(ready.prepared) if ready.new is None else _written(ready.prepared, next(puts))
            for ready in all_ready
        ]

    async def _ready(self, drafts: Sequence[EpisodeDraft]) -> Sequence[_Ready]:
        """Prepare drafts in a worker thread, with what was recalled into their prompts."""
        known = [await self._with_recalled(draft) for draft in drafts]
        # made here: each draw of randomness lets go of the interpreter for so short a time that a
        # worker thread has it back before the loop wakes up, and the loop would never get its turn
        named = [(draft, self._new_id()) for draft in known]
        work = partial(self._ready_blocking, named, now=self._now())
        return await anyio.to_thread.run_sync(work, limiter=self._preparing)

    async def _with_recalled(self, draft: EpisodeDraft) -> EpisodeDraft:
        if draft.was_shown_forgotten:
            return without_what_may_repeat(draft)
        if not draft.recalled_ids:
            return draft
        anywhere = Scope(owner_id=draft.scope.owner_id)  # whatever labels it carries
        texts = await self._store.recalled_texts(draft.recalled_ids, anywhere)
        return without_what_may_repeat(draft) if texts is None else with_recalled(draft, texts)

    def _ready_blocking(
        self, named: Sequence[tuple[EpisodeDraft, str]], *, now: datetime
    ) -> list[_Ready]:
        ready: list[_Ready] = []
        for draft, episode_id in named:
            prepared = prepare(
                draft, episode_id=episode_id, now=now, known_secrets=self._known_secrets
            )
            new = self._new(prepared.episode, comes_back=draft.kept is not None)
            ready.append(_Ready(prepared, new))
        return ready

    def _new(self, episode: Episode | None, *, comes_back: bool) -> NewEpisode | None:
        if episode is None:
            return None
        return NewEpisode(
            episode=episode,
            likeness=likeness_of(episode),
            deliver_to=self._deliver_to,
            comes_back=comes_back,
        )


def _refused(prepared: Prepared) -> Written:
    return Written(
        status="refused",
        reason=prepared.reason,
        clipped=prepared.clipped,
        redacted=prepared.redacted,
        left_out=prepared.left_out,
    )


def _written(prepared: Prepared, put: Put) -> Written:
    return Written(
        status=put.status,
        episode_id=put.episode_id,
        clipped=prepared.clipped,
        redacted=prepared.redacted,
        left_out=prepared.left_out,
    )
