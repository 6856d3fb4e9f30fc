"""The conversations whose turns this server runs, and the beat of its heart that keeps them."""

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final, Protocol

import anyio
from anyio.abc import TaskGroup

from gateway.conversations.event_log import OnLost
from gateway.conversations.leases import Lease, LeaseStore, Node
from gateway.conversations.model import Turn
from gateway.engine.pool import ClientPool
from gateway.errors import Overloaded
from gateway.ids import ConversationId, NodeId, new_incarnation
from gateway.turns.lanes import Lanes
from gateway.turns.requests import RETRY_AFTER_S
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)


class Recovery(Protocol):
    """Ends the turns that the last owner of a conversation has left, and queues those that wait.

    See `TurnRecovery`.
    """

    async def recover(self, lease: Lease) -> None:
        """Recover the turns of a conversation that was taken."""

    async def recover_all(
        self, leases: Sequence[Lease], is_foreign: Callable[[ConversationId], Awaitable[bool]]
    ) -> None:
        """Recover the turns of all of them, at the start."""


_TTL_MS: Final = 15_000
"""A server that has been silent for so long is dead for the others."""
_BEAT_S: Final = 5.0


class Ownership:
    """What this server holds. `run` keeps it; a conversation is held until the server stops."""

    def __init__(self, leases: LeaseStore, node: Node) -> None:
        self._leases = leases
        self.node = node
        self._epochs: dict[ConversationId, int] = {}
        self._taking = anyio.Lock()
        """Held from the taking of conversations until their turns are recovered."""
        self._recovery: Recovery | None = None
        self.on_lost: OnLost = lambda _: None
        """Called with a conversation that another server holds now; its turns must stop."""

    async def begin(self) -> None:
        """Let the server join."""
        await self._leases.join(self.node, ttl_ms=_TTL_MS)

    async def start(self, recovery: Recovery) -> None:
        """Take over from the dead, the server's last process among them, before the first
        message.
        """
        async with self._taking:
            leases = await self._leases.take_unfinished(self.node)
            await recovery.recover_all(leases, self._is_foreign)
            self._epochs.update((lease.conversation_id, lease.epoch) for lease in leases)
        self._recovery = recovery

    async def adopt(self) -> None:
        """Take the conversations with unfinished turns whose servers are dead, and recover them."""
        async with self._taking:
            for lease in await self._leases.take_unfinished(self.node):
                await self._take(lease)

    async def _is_foreign(self, conversation_id: ConversationId) -> bool:
        return await self._leases.owner(conversation_id) not in {None, self.node.id}

    async def hold(self, conversation_id: ConversationId) -> int:
        """Return the epoch under which this server runs a conversation, which is taken if need be.

        What the last owner left unfinished is recovered then. Raise `Overloaded` if another server
        runs it, and `StoreUnavailable`.
        """
        if conversation_id not in self._epochs:
            async with self._taking:
                await self._hold(conversation_id)
        return self._epochs[conversation_id]

    async def _hold(self, conversation_id: ConversationId) -> None:
        if conversation_id in self._epochs:
            return
        lease = await self._leases.take(self.node, conversation_id)
        if lease is None:
            raise Overloaded(
                "Another server runs this conversation; try again in a moment.",
                retry_after_s=RETRY_AFTER_S,
            )
        await self._take(lease)

    async def _take(self, lease: Lease) -> None:
        """Recover a conversation that was taken; it counts as held when that is done."""
        if self._recovery is not None:
            await self._recovery.recover(lease)
        self._epochs[lease.conversation_id] = lease.epoch

    def note(self, turn: Turn) -> None:
        """Note the epoch of a turn that was accepted."""
        self._epochs[turn.conversation_id] = turn.epoch

    def forget(self, conversation_id: ConversationId) -> None:
        """Forget a conversation that was deleted."""
        self._epochs.pop(conversation_id, None)

    def lose(self, conversation_id: ConversationId) -> None:
        """Note that another server holds a conversation, and stop its turns here."""
        self.forget(conversation_id)
        self.on_lost(conversation_id)

    async def run(self) -> None:
        """Beat until cancelled. A beat that cannot be stored is followed by the next one."""
        while True:
            await anyio.sleep(_BEAT_S)
            try:
                await self.beat()
            except StoreUnavailable as exc:  # the log of events reports the disk
                _log.warning("heart_not_beating", extra={"reason": str(exc)})

    async def beat(self) -> None:
        """Keep what is held, and take over from the dead; if the beat came too late, find out what
        others took and stop it.
        """
        beat = await self._leases.beat(self.node, ttl_ms=_TTL_MS)
        if beat == "in_time":
            await self.adopt()
            return
        _log.warning("heart_beat_late", extra={"beat": beat})
        held = (
            {}
            if beat == "gone"
            else {
                lease.conversation_id: lease.epoch for lease in await self._leases.held(self.node)
            }
        )
        for conversation_id, epoch in list(self._epochs.items()):
            if held.get(conversation_id) != epoch:
                self.lose(conversation_id)

    async def drain(self, keep: Collection[ConversationId]) -> None:
        """Take nothing more, and let other servers have all but what is to be kept."""
        try:
            await self._leases.drain(self.node, keep=keep)
        except StoreUnavailable as exc:
            _log.warning("leases_not_released", extra={"reason": str(exc)})

    async def release(self, conversation_id: ConversationId) -> None:
        """Let other servers have a conversation."""
        try:
            await self._leases.release(self.node, conversation_id)
        except StoreUnavailable as exc:
            _log.warning("leases_not_released", extra={"reason": str(exc)})

    async def end(self) -> None:
        """Release everything; bounded by what the store takes. A failure leaves it to expire."""
        try:
            await self._leases.leave(self.node)
        except StoreUnavailable as exc:
            _log.warning("leases_not_released", extra={"reason": str(exc)})


async def join(leases: LeaseStore, node_id: NodeId) -> Ownership:
    """Let this process join as a node; what its last process held is anyone's then."""
    ownership = Ownership(leases, Node(id=node_id, incarnation=new_incarnation()))
    await ownership.begin()
    return ownership


def stopping(lanes: Lanes, pool: ClientPool, tasks: TaskGroup) -> OnLost:
    """Return what stops a conversation that another server runs now, and kills its agent."""

    def stop(conversation_id: ConversationId) -> None:
        lanes.lose(conversation_id)
        tasks.start_soon(pool.discard, conversation_id)

    return stop
