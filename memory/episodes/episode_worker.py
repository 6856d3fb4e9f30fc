"""Writes episodes of ended turns in the background.

The queue is the chronicle: a turn that is not marked as remembered. Its episode and its mark are
stored in one transaction, so nothing is lost if the process ends. A turn without anything to keep
is marked without an episode.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio

from memory.episodes.episode import EpisodeDraft, Written
from memory.episodes.from_turn import draft_of
from memory.episodes.turn import Turn
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

_BATCH: Final = 50
_RETRY_S: Final = 30.0
"""Pause after the store was unavailable."""


Unremembered = Callable[[int], Awaitable[Sequence[str]]]
"""Returns ids of ended turns without a mark, oldest first, at most so many."""
ReadTurn = Callable[[str], Awaitable[Turn | None]]
"""Returns a whole turn; None if nothing of it is left."""
Write = Callable[..., Awaitable[Written]]
"""Writes a draft and marks its turn; see `MemoryWriter.write`."""
Mark = Callable[[str], Awaitable[None]]
"""Marks a turn as remembered without an episode."""
Extract = Callable[[EpisodeDraft, str], Awaitable[EpisodeDraft]]
"""Adds to a draft what a model finds in the reply; see `Extractor.extract`."""
Learn = Callable[[Turn], Awaitable[None]]
"""Learns facts from a turn; see `FactLearner.learn`. May raise `StoreUnavailable`."""


class EpisodeWorker:
    """Writes episodes of turns one after another, oldest first."""

    def __init__(
        self,
        unremembered: Unremembered,
        read_turn: ReadTurn,
        write: Write,
        mark: Mark,
        *,
        extract: Extract | None = None,
        learn: Learn | None = None,
    ) -> None:
        self._unremembered = unremembered
        self._read_turn = read_turn
        self._write = write
        self._mark = mark
        self._extract = extract
        self._learn = learn
        self._bad: set[str] = set()
        self._woken = anyio.Event()

    @property
    def learns(self) -> bool:
        """Whether a model learns from turns, also from those that called no tool."""
        return self._learn is not None

    def wake(self) -> None:
        """Announce that a turn ended. Call it on the loop; it never waits."""
        self._woken.set()

    async def run(self) -> None:
        """Write what there is, then wait for more, until cancelled."""
        while True:
            self._woken = anyio.Event()
            try:
                await self.drain()
            except StoreUnavailable:
                with anyio.move_on_after(_RETRY_S):
                    await self._woken.wait()
                continue
            await self._woken.wait()

    async def drain(self) -> int:
        """Write until nothing is left; return how many turns were marked.

        A turn that fails is logged and tried again after the next start. Raise
        `StoreUnavailable` if the store cannot be reached; what was marked before stays marked.
        """
        done = 0
        while True:
            most = _BATCH + len(self._bad)
            ids = await self._unremembered(most)
            for turn_id in ids:
                if turn_id not in self._bad:
                    done += await self._remembered(turn_id)
            if len(ids) < most:  # who ends a turn meanwhile wakes the worker
                return done

    async def _remembered(self, turn_id: str) -> bool:
        try:
            await self._remember(turn_id)
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001  one bad turn must not keep all later ones from memory
            self._bad.add(turn_id)
            _log.exception("turn_not_remembered", extra={"turn_id": turn_id})
            return False
        return True

    async def _remember(self, turn_id: str) -> None:
        turn = await self._read_turn(turn_id)
        if turn is not None and self._learn is not None and not turn.was_shown_forgotten:
            await self._learn(turn)
            turn = await self._read_turn(turn_id)  # without its message if that asked to forget
        draft = await _draft_of(turn)
        if turn is not None and draft is not None and not turn.was_shown_forgotten:
            draft = await self._extracted(turn, draft)
        if draft is None:
            await self._mark(turn_id)
            return
        written = await self._write(draft, remembers_turn=turn_id)
        if written.status == "refused":
            _log.info("episode_refused", extra={"turn_id": turn_id, "reason": written.reason})

    async def _extracted(self, turn: Turn, draft: EpisodeDraft) -> EpisodeDraft | None:
        """Return a turn's draft with what a model adds.

        A model takes seconds, and what it says anew may repeat what was forgotten meanwhile: then
        return a draft of what is left of the turn, or None.
        """
        if self._extract is None:
            return draft
        extracted = await self._extract(draft, turn.reply)
        left = await self._read_turn(turn.turn_id)
        if left is not None and set(turn.intent_ids) <= set(left.intent_ids):
            return extracted
        return await _draft_of(left)


async def _draft_of(turn: Turn | None) -> EpisodeDraft | None:
    return None if turn is None else await anyio.to_thread.run_sync(draft_of, turn)
