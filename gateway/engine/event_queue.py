"""The queue of a run's events between the agent and the run's reader."""

from collections import deque
from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel

from gateway.engine.events import ClientLost, EngineEvent, RunFinished


class EventQueue:
    """Keeps a run's events until they are read, however late; `RunFinished` or `ClientLost` ends it.

    It is unbounded: an agent that had to wait for a reader could not ask for permission either (SDK #779).
    """

    def __init__(self) -> None:
        self._kept: deque[EngineEvent] = deque()
        self._more = anyio.Event()
        self._ended = False

    @property
    def is_ended(self) -> bool:
        """The last event was put in."""
        return self._ended

    def put(self, event: EngineEvent) -> None:
        """Add an event; what comes after the last one is dropped."""
        if self._ended:
            return
        self._ended = isinstance(event, RunFinished | ClientLost)
        self._kept.append(event)
        self._more.set()

    async def read(self) -> AsyncIterator[EngineEvent]:
        """Yield the events in order up to the last one. For one reader."""
        while True:
            await anyio.lowlevel.checkpoint()
            if self._kept:
                yield self._kept.popleft()
            elif self._ended:
                return
            else:
                self._more = anyio.Event()
                await self._more.wait()
