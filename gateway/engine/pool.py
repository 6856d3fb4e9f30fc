"""The pool of live agent clients, at most one for each conversation.

A client is reused while its options stay the same. A new conversation takes a prewarmed client if
there is one. A conversation is put to sleep (its process ends, its session stays) when it has been
idle for long, or is the least recently used one when there are too many processes or they use too
much memory; it wakes by resuming its session. A client counts until its processes are gone, so
there are never more than `max_live` besides the prewarmed ones.

A conversation that somebody opens is woken before its message comes (`wake`), in a place that
nobody needs.

Leaving a conversation makes its client stale: it is not used again and ends after a grace. Two
processes never write one session (CC #39151): the old one is gone before the session is resumed.
"""

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
from anyio.abc import TaskGroup

from gateway.engine.held_client import Claim, HeldClient, HeldProcess, Lease, Origin, PoolLimits
from gateway.engine.prewarm import PrewarmPool
from gateway.engine.protocol import (
    AgentClient,
    ClientSpec,
    Engine,
    EngineUnavailable,
    SessionGone,
    SessionOrigin,
)
from memory.background import OnFailure, keep_running

_log = logging.getLogger(__name__)

_MEASURE_EVERY_S = 10.0
_MEASURE_IDLE_EVERY_S = 60.0
"""If no client has run a turn since the last measurement."""
_AGENT_BYTES = 250 * 2**20
"""What an agent may need that was not measured yet."""
_SHUTDOWN_S = 12.0
_STAYS_S = 0.3
"""A conversation is woken if it is not left for another within this time after it was opened."""
_OPENED_AGAIN_S = 30.0
"""Reads that follow each other faster are one opening: polling keeps no process."""


class ClientPool:
    """The live clients of all conversations. `run` must be running; `close` ends all.

    `acquire`, `release` and `discard` of one conversation must not overlap (its lane ensures that);
    `leave` and `drop` may be called at any time.
    """

    def __init__(
        self,
        engine: Engine,
        default_spec: Callable[[], ClientSpec | None],
        limits: PoolLimits,
        tasks: TaskGroup,
    ) -> None:
        """Initialise; `default_spec` returns the options of prewarmed clients, None for none."""
        self._engine = engine
        self._limits = limits
        self._tasks = tasks
        self._held: dict[str, HeldClient] = {}
        self._claims: dict[str, Claim] = {}
        self._opened_at: dict[str, float] = {}
        """Of conversations that were opened lately and have had no turn since."""
        self._waking = anyio.Lock()
        self._slots = anyio.Semaphore(limits.max_live, max_value=limits.max_live)
        self._changed = anyio.Event()
        self._prewarm = PrewarmPool(engine, default_spec, limits.prewarmed, self._most_prewarmed)
        self._warm_memory_bytes = 0
        self._closing = False

    @property
    def live_count(self) -> int:
        """The clients of conversations, without the prewarmed ones."""
        return len(self._held)

    @property
    def warm_count(self) -> int:
        """The prewarmed clients that are ready."""
        return self._prewarm.ready_count

    @property
    def memory_bytes(self) -> int:
        """The last measured memory of all processes, including the prewarmed ones."""
        return self._warm_memory_bytes + sum(held.memory_bytes for held in self._held.values())

    def processes(self) -> list[HeldProcess]:
        """List the agent processes of conversations, oldest first."""
        now = anyio.current_time()
        return [
            HeldProcess(
                conversation_id=conversation_id,
                state=held.state,
                age_s=now - held.started_at,
                memory_bytes=held.memory_bytes,
            )
            for conversation_id, held in self._held.items()
        ]

    def is_hot(self, conversation_id: str) -> bool:
        """Return whether the conversation has a live client that it can still use."""
        held = self._held.get(conversation_id)
        return held is not None and held.is_usable

    async def acquire(
        self, conversation_id: str, spec: ClientSpec, session: SessionOrigin
    ) -> Lease:
        """Return the conversation's client: the live one, or a woken, prewarmed or new one.

        Wait while `max_live` clients are busy, in order of arrival. Cancellation leaves nothing
        behind. Raise `EngineUnavailable` if no agent could be started, or the pool or the
        conversation was closed.
        """
        self._opened_at.pop(conversation_id, None)
        waking = self._claims.get(conversation_id)
        if waking is not None and waking.has_begun:
            await waking.done.wait()
        elif waking is not None:
            waking.scope.cancel()
        if self._closing:
            raise EngineUnavailable("The agents are being closed.")
        held = self._held.get(conversation_id)
        if held is not None and held.is_usable and held.fingerprint == spec.fingerprint:
            return held.take()
        with self._claimed(conversation_id) as claim:
            return await self._replace(conversation_id, held, claim, spec, session)
        raise EngineUnavailable("The conversation's agent was closed while it was started.")

    @contextmanager
    def _claimed(self, conversation_id: str) -> Iterator[Claim]:
        """Connect a conversation's client; `drop` and `close` cancel it and wait for its end."""
        claim = self._claims[conversation_id] = Claim()
        try:
            with claim.scope:
                yield claim
        finally:
            if self._claims.get(conversation_id) is claim:
                del self._claims[conversation_id]
            claim.done.set()

    def wake(self, conversation_id: str, spec: ClientSpec, session: SessionOrigin) -> None:
        """Start the client of a conversation that somebody opened, before a message comes.

        It takes a free slot, or the one of the oldest such client that no turn has used: there are
        at most `max_woken`. Otherwise nothing happens. The next `acquire` returns it with what
        there is to report of it, and meets the error itself if it could not be started.
        """
        since = anyio.current_time() - _OPENED_AGAIN_S
        lately = {name: at for name, at in self._opened_at.items() if at > since}
        self._opened_at = lately | {conversation_id: anyio.current_time()}
        if self._limits.max_woken and conversation_id not in lately:
            self._tasks.start_soon(self._wake, conversation_id, spec, session)

    async def _wake(self, conversation_id: str, spec: ClientSpec, session: SessionOrigin) -> None:
        held = self._held.get(conversation_id)
        if self._closing or conversation_id in self._claims or (held and not held.is_over):
            return
        with self._claimed(conversation_id) as claim:
            claim.has_begun = False  # until then a turn does not wait for it
            await anyio.sleep(_STAYS_S)
            async with self._waking:
                await self._prewarm.give_way()
                while len(unused := self._unused()) >= self._limits.max_woken:
                    await self._end(*unused[0])
                if self._slots.value == 0 or self.memory_bytes >= self._limits.max_memory_bytes:
                    return
                claim.has_begun = True
                try:
                    lease = await self._replace(conversation_id, held, claim, spec, session)
                    self._prewarm.resume(conversation_id)
                    self._held[conversation_id].rest(lease)
                except Exception:  # noqa: BLE001  the turn tries again, and reports it
                    _log.info("client_not_woken", exc_info=True)
        self._make_room()
        self._wake_tender()

    def _unused(self) -> list[tuple[str, HeldClient]]:
        """Return the woken clients without a turn, oldest first."""
        return [pair for pair in self._held.items() if pair[1].is_unused and not pair[1].is_ending]

    async def _replace(
        self,
        conversation_id: str,
        held: HeldClient | None,
        claim: Claim,
        spec: ClientSpec,
        session: SessionOrigin,
    ) -> Lease:
        """Return a new client; the held one is ended first."""
        died = held is not None and held.has_died
        if held is not None:
            await self._end(conversation_id, held)
        self._make_room(newcomers=1)
        await self._slots.acquire()
        self._prewarm.delay(conversation_id)
        try:
            client, origin, lost = await self._obtain(spec, session)
        except BaseException:
            self._prewarm.resume(conversation_id)
            self._slots.release()
            raise
        fresh = HeldClient(client, spec.fingerprint)
        if claim.left:
            fresh.leave()
            self._wake_tender()
        self._held[conversation_id] = fresh
        return Lease(client=client, origin=origin, session_lost=lost, client_died=died)

    def text_began(self, conversation_id: str) -> None:
        """Report the first text of a turn; prewarming waits for it."""
        self._prewarm.resume(conversation_id)

    def release(self, conversation_id: str) -> None:
        """Return the client to the pool after a turn; it stays live for the next one."""
        self._prewarm.resume(conversation_id)
        held = self._held.get(conversation_id)
        if held is None:
            return
        held.rest()
        if not held.client.is_alive():
            self._end_soon(conversation_id, held)
        self._make_room()
        self._wake_tender()

    async def discard(self, conversation_id: str) -> None:
        """Kill the client and return when its processes are gone. The session stays."""
        self._prewarm.resume(conversation_id)
        held = self._held.get(conversation_id)
        if held is not None:
            await held.client.kill()
            await self._end(conversation_id, held)

    def leave(self, conversation_id: str) -> None:
        """Make the client stale; it ends after the grace."""
        claim = self._claims.get(conversation_id)
        if claim is not None:
            claim.left = True
        held = self._held.get(conversation_id)
        if held is not None:
            held.leave()
            self._wake_tender()

    async def drop(self, conversation_id: str) -> None:
        """End the client, also one that is being started, and return when its
        processes are gone.
        """
        while (claim := self._claims.get(conversation_id)) is not None:
            claim.scope.cancel()
            await claim.done.wait()
        held = self._held.get(conversation_id)
        if held is not None:
            await self._end(conversation_id, held)

    async def run(self, on_failure: OnFailure = lambda _: None) -> None:
        """Run the pool's loops until cancelled: prewarming, idle clients, memory."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_running, "pool_prewarm", self._prewarm.run, on_failure)
            tasks.start_soon(keep_running, "pool_idle", self._tend, on_failure)
            tasks.start_soon(keep_running, "pool_memory", self._measure, on_failure)

    async def close(self) -> None:
        """End all clients concurrently, in order within a bound; return when all are gone."""
        self._closing = True
        self._wake_tender()
        with anyio.CancelScope(shield=True):
            for claim in list(self._claims.values()):
                claim.scope.cancel()
            for claim in list(self._claims.values()):
                await claim.done.wait()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._prewarm.close)
                for conversation_id, held in list(self._held.items()):
                    tasks.start_soon(self._end_bounded, conversation_id, held)

    async def _obtain(
        self, spec: ClientSpec, session: SessionOrigin
    ) -> tuple[AgentClient, Origin, bool]:
        """Return a client, its origin, and whether the session was lost."""
        if session.resume is None:
            return *await self._fresh(spec), False
        try:
            return await self._engine.connect(spec, session), "woken", False
        except SessionGone as exc:
            _log.warning("session_gone", extra={"detail": exc.detail})
            return *await self._fresh(spec), True

    async def _fresh(self, spec: ClientSpec) -> tuple[AgentClient, Origin]:
        warm = await self._prewarm.take(spec)
        if warm is not None:
            return warm, "prewarmed"
        return await self._engine.connect(spec, SessionOrigin()), "connected"

    def _make_room(self, *, newcomers: int = 0) -> None:
        """End as many idle clients as turns wait for a slot."""
        waiting = self._slots.statistics().tasks_waiting + newcomers
        ending = sum(1 for held in self._held.values() if held.is_ending)
        short = waiting - self._slots.value - ending
        for conversation_id, held in self._sleepers()[: max(0, short)]:
            self._end_soon(conversation_id, held)

    def _sleepers(self) -> list[tuple[str, HeldClient]]:
        """Return the clients that may be ended, in order."""
        idle = [pair for pair in self._held.items() if not pair[1].busy and not pair[1].is_ending]
        return sorted(idle, key=lambda pair: pair[1].worth)

    def _end_soon(self, conversation_id: str, held: HeldClient) -> None:
        if not held.is_ending and not self._closing:
            held.is_ending = True
            self._tasks.start_soon(self._finish, conversation_id, held)

    async def _end(self, conversation_id: str, held: HeldClient) -> None:
        if held.is_ending:
            await held.ended.wait()
            return
        held.is_ending = True
        await self._finish(conversation_id, held)

    async def _end_bounded(self, conversation_id: str, held: HeldClient) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._end, conversation_id, held)
            with anyio.move_on_after(_SHUTDOWN_S):
                await held.ended.wait()
                return
            await held.client.kill()

    async def _finish(self, conversation_id: str, held: HeldClient) -> None:
        """Close a client that is marked as ending, then free its slot."""
        with anyio.CancelScope(shield=True):
            try:
                await held.client.close()
            except Exception:  # noqa: BLE001  its slot must not be lost
                _log.exception("client_not_closed")
            finally:
                del self._held[conversation_id]
                self._slots.release()
                held.ended.set()

    def _most_prewarmed(self) -> int:
        held = sum(max(held.memory_bytes, _AGENT_BYTES) for held in self._held.values())
        fitting = (self._limits.max_memory_bytes - held) // _AGENT_BYTES
        return min(self._limits.max_live, fitting)

    def _wake_tender(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _tend(self) -> None:
        """End clients that have been stale or idle for long."""
        while not self._closing:
            changed = self._changed
            now = anyio.current_time()
            for conversation_id, held in list(self._held.items()):
                if self._due_at(held) <= now:
                    self._end_soon(conversation_id, held)
            pending = [self._due_at(held) for held in self._held.values() if not held.is_ending]
            with anyio.CancelScope(deadline=min(pending, default=math.inf)):
                await changed.wait()

    def _due_at(self, held: HeldClient) -> float:
        if held.stale_since is not None:
            return held.stale_since + self._limits.stale_grace_s
        return math.inf if held.busy else held.idle_since + self._limits.idle_s

    async def _measure(self) -> None:
        measured_at, measured = -math.inf, (self._changed, -1)
        while True:
            await anyio.sleep(_MEASURE_EVERY_S)
            state = (self._changed, self._prewarm.ready_count)
            is_idle = state == measured and not any(held.busy for held in self._held.values())
            if is_idle and anyio.current_time() < measured_at + _MEASURE_IDLE_EVERY_S:
                continue
            measured_at, measured = anyio.current_time(), state
            await self.keep_memory_bound()

    async def keep_memory_bound(self) -> None:
        """Measure all process trees and end idle clients until the memory bound is kept."""
        for held in list(self._held.values()):
            held.memory_bytes = await anyio.to_thread.run_sync(held.client.memory_bytes_blocking)
        await self._prewarm.end_surplus()
        self._warm_memory_bytes = sum(
            [
                await anyio.to_thread.run_sync(client.memory_bytes_blocking)
                for client in self._prewarm.clients()
            ]
        )
        leaving = sum(held.memory_bytes for held in self._held.values() if held.is_ending)
        excess = self.memory_bytes - leaving - self._limits.max_memory_bytes
        for conversation_id, held in self._sleepers():
            if excess <= 0:
                return
            excess -= held.memory_bytes
            self._end_soon(conversation_id, held)
