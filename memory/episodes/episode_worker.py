"""The background writer: turns that ended become episodes.

A turn that is in the chronicle and not marked as remembered is the job, so nothing is lost where the
process ends in between: at the next start it is still there. Its episode and its mark are stored in one
transaction. A turn without tool calls is marked without an episode: what a person wants to be kept of
a mere conversation is written by the agent's notes, on their word.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

import anyio
from anyio.abc import TaskStatus

from memory.episodes.episode import EpisodeDraft, Written
from memory.episodes.from_turn import draft_of
from memory.episodes.turn import Turn
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

_BATCH: Final = 50
_RETRY_S: Final = 30.0
"""So long after the store could not be reached it is tried again, woken or not."""


class Turns(Protocol):
    """Where ended turns come from."""

    async def unremembered(self, limit: int) -> Sequence[str]:
        """Give ids of turns that ended and are not marked, oldest first."""
        ...

    async def turn(self, turn_id: str) -> Turn | None:
        """Give a turn whole; None where nothing of it is left."""
        ...


class Writer(Protocol):
    """What takes the drafts; see `MemoryWriter.write`."""

    async def write(self, draft: EpisodeDraft, *, remembers_turn: str | None = None) -> Written:
        """Write a draft and mark its turn."""
        ...


class Marks(Protocol):
    """Where a turn is marked of which nothing is to be remembered."""

    async def mark_remembered(self, turn_id: str) -> None:
        """Mark it."""
        ...


class Extraction(Protocol):
    """What a model adds; see `Extractor.extract`."""

    async def extract(self, draft: EpisodeDraft, reply: str) -> EpisodeDraft:
        """Give the draft with more in it, or as it is."""
        ...


class EpisodeWorker:
    """Makes episodes of turns, oldest first, one after another."""

    def __init__(
        self,
        turns: Turns,
        writer: Writer,
        marks: Marks,
        *,
        extraction: Extraction | None = None,
        on_bad_turn: Callable[[str, Exception], None] | None = None,
    ) -> None:
        self._turns = turns
        self._writer = writer
        self._marks = marks
        self._extraction = extraction
        self._on_bad_turn = on_bad_turn
        self._bad: set[str] = set()
        self._woken = anyio.Event()

    def wake(self) -> None:
        """Say that a turn ended. Call it on the loop; it never waits."""
        self._woken.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Remember what there is, then whatever comes; until cancelled. For a task group."""
        task_status.started()
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
        """Remember until nothing is left; gives how many turns were marked.

        A turn that cannot be remembered is told to `on_bad_turn`, left as it is and tried again after
        the next start.

        Raises:
            StoreUnavailable: the store cannot be reached; what was marked before stays marked.
        """
        done = 0
        while True:
            ids = await self._turns.unremembered(_BATCH + len(self._bad))
            todo = [turn_id for turn_id in ids if turn_id not in self._bad]
            if not todo:
                return done
            for turn_id in todo:
                done += await self._remembered(turn_id)

    async def _remembered(self, turn_id: str) -> bool:
        try:
            await self._remember(turn_id)
        except StoreUnavailable:
            raise
        except Exception as exc:  # noqa: BLE001  one bad turn must not keep all later ones from memory
            self._bad.add(turn_id)
            if self._on_bad_turn is not None:
                self._on_bad_turn(turn_id, exc)
            return False
        return True

    async def _remember(self, turn_id: str) -> None:
        turn = await self._turns.turn(turn_id)
        draft = draft_of(turn) if turn is not None else None
        if turn is None or draft is None:
            await self._marks.mark_remembered(turn_id)
            return
        if self._extraction is not None and not turn.was_shown_forgotten:
            plain, draft = draft, await self._extraction.extract(draft, turn.reply)
            # a model takes seconds, and what it says anew may repeat what was forgotten meanwhile
            turn = await self._turns.turn(turn_id)
            if turn is None or turn.was_shown_forgotten:
                draft = replace(plain, was_shown_forgotten=True)
        written = await self._writer.write(draft, remembers_turn=turn_id)
        if written.status == "refused":
            _log.info("episode_refused", extra={"turn_id": turn_id, "reason": written.reason})
