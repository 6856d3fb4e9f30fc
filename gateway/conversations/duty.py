"""The background work of all servers that share a database, which one of them does.

It has the duty as long as its heart beats; where it dies, another one goes on. A server that was
paused for longer learns from its own clock that it may have the duty no more, before it does
anything further.
"""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio

from gateway.conversations.leases import Node
from gateway.conversations.sql.duties import DutyStore
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

_DUTY: Final = "background"
_LOOK_S: Final = 1.0
"""How often the duty is taken or kept, and what others may have left to do is looked for."""
_MARGIN_S: Final = 1.0
"""How long before others may take it the duty counts as lost."""
_STOP_S: Final = 2.0
"""How long work that has to stop is waited for."""
_TRY_S: Final = 0.02
_WAIT_S: Final = 10.0
"""How long what another server does is waited for; it may be dead."""

Work = Callable[[], Awaitable[None]]


class Duty:
    """Whether this server does the work, which one that is alone always does. `run` it."""

    def __init__(self, store: DutyStore, node: Node, *, is_shared: bool) -> None:
        """Initialise; `is_shared` if other servers use the database."""
        self._store = store
        self._node = node
        self.is_shared = is_shared
        self._until_s = -math.inf if is_shared else math.inf
        self._changed = anyio.Event()
        self._working = 0
        self._is_over = False

    @property
    def is_held(self) -> bool:
        """True if no other server can have the duty now."""
        return anyio.current_time() < self._until_s

    async def run(self) -> None:
        """Take the duty when it is free, and keep it, until cancelled."""
        while self.is_shared:
            try:
                await self._look()
            except StoreUnavailable as exc:  # the log of events reports the disk
                _log.warning("duty_unknown", extra={"reason": str(exc)})
            await anyio.sleep(_LOOK_S)

    async def _look(self) -> None:
        if self._is_over:
            return
        began_s, was_held = anyio.current_time(), self.is_held
        left_ms = await self._store.take(self._node, _DUTY)
        if not self._is_over:
            self._until_s = began_s + left_ms / 1000 - _MARGIN_S
        if self.is_held != was_held:
            _log.info("duty_taken" if self.is_held else "duty_lost")
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def give_up(self) -> None:
        """Stop the work for good, and let another server go on with it at once."""
        if not self.is_shared or self._is_over:
            return
        self._is_over, self._until_s = True, -math.inf
        self._tell()
        with anyio.move_on_after(_STOP_S):
            while self._working:
                await self._changed.wait()
        try:
            await self._store.release(self._node, _DUTY)
        except StoreUnavailable as exc:
            _log.warning("duty_not_released", extra={"reason": str(exc)})

    async def while_held(
        self,
        work: Work,
        wake: Callable[[], None] = lambda: None,
        otherwise: Work = anyio.sleep_forever,
    ) -> None:
        """Do some work until it returns; when the duty is lost it is cancelled, and begun again
        when it is back.

        `wake` is called now and then, since other servers wake nobody here. `otherwise` is done
        while another server has the duty.
        """
        if not self.is_shared:
            await work()
            return
        is_done = False
        while not is_done:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_held, tasks.cancel_scope)
                await otherwise()
            is_done = await self._work(work, wake)

    async def _until_held(self, scope: anyio.CancelScope) -> None:
        while not self.is_held:
            await self._changed.wait()
        scope.cancel()

    async def _work(self, work: Work, wake: Callable[[], None]) -> bool:
        """Do some work while the duty is held; return whether it has returned."""
        is_done = False
        self._working += 1
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tick, wake, tasks.cancel_scope)
                await work()
                is_done = True
                tasks.cancel_scope.cancel()
        finally:
            self._working -= 1
            self._tell()
        return is_done

    async def _tick(self, wake: Callable[[], None], scope: anyio.CancelScope) -> None:
        """Wake the work now and then, and cancel it when the duty is lost."""
        while self.is_held:
            with anyio.move_on_after(min(_LOOK_S, self._until_s - anyio.current_time())):
                await self._changed.wait()
            wake()
        scope.cancel()

    @asynccontextmanager
    async def alone(self, what: str) -> AsyncIterator[None]:
        """Keep other servers from doing the same while the block runs; wait for one that does.

        Tasks of this server keep each other out by themselves. Raise `StoreUnavailable`, also if
        the other one does not end.
        """
        if not self.is_shared:
            yield
            return
        until_s = anyio.current_time() + _WAIT_S
        while not await self._store.take(self._node, what):
            if anyio.current_time() > until_s:
                raise StoreUnavailable("Another server does this now, and does not end.")
            await anyio.sleep(_TRY_S)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True), suppress(StoreUnavailable):  # the next use has it
                await self._store.release(self._node, what)
