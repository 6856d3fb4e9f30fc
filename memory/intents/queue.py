"""Records intents in the background that no turn waits for.

The queue is bounded: if the chronicle cannot keep up, the oldest intents are dropped and counted. A
cut of the power may lose the last ones.
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

import anyio

from memory.errors import StoreUnavailable
from memory.intents.record import IntentRecorder
from memory.intents.registry import IntentRefused, MemoryIntent

_log = logging.getLogger(__name__)

MAX_WAITING: Final = 1000
_BATCH: Final = 100
_PAUSE_S: Final = 5.0
"""Before the chronicle is tried again."""
_LAST_S: Final = 5.0
"""At the end, for what still waits."""


class IntentQueue:
    """Records intents soon, in their order. `run` it in a task group."""

    def __init__(self, recorder: IntentRecorder, *, pause_s: float = _PAUSE_S) -> None:
        self._recorder = recorder
        self._pause_s = pause_s
        self._waiting: deque[MemoryIntent] = deque()
        self._wakened = anyio.Event()
        self.dropped = 0
        """How many were not recorded: too many waited, or they were refused."""

    def put(self, intent: MemoryIntent) -> None:
        """Queue an intent; never waits."""
        if len(self._waiting) == MAX_WAITING:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(intent)
        self._wakened.set()

    async def run(self) -> None:
        """Record until cancelled, and then what still waits."""
        if self._waiting:  # left by a run that failed
            self._wakened.set()
        try:
            while True:
                await self._wakened.wait()
                self._wakened = anyio.Event()
                if not await self._record():
                    await anyio.sleep(self._pause_s)
                    self._wakened.set()
        finally:
            with anyio.move_on_after(_LAST_S, shield=True):
                await self._record()

    async def _record(self) -> bool:
        """Record what waits; return False if the chronicle cannot be written now."""
        try:
            while self._waiting:
                await self._record_some()
        except StoreUnavailable:
            _log.exception("intents_not_recorded")
            return False
        return True

    async def _record_some(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
        try:
            await self._record_batch(batch)
        except BaseException:
            # recorded or not: recording again changes nothing
            self._waiting.extendleft(reversed(batch))
            while len(self._waiting) > MAX_WAITING:
                self._waiting.popleft()
                self.dropped += 1
            raise

    async def _record_batch(self, batch: Sequence[MemoryIntent]) -> None:
        """Record a batch; if one is refused, record each by itself."""
        try:
            await self._recorder.record_intents(batch, is_synced=False)
        except IntentRefused:
            if len(batch) == 1:
                self.dropped += 1
                _log.exception("intent_refused", extra={"intent": batch[0].key[:120]})
                return
            for intent in batch:
                await self._record_batch([intent])
