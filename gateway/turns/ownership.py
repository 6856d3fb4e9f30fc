"""The conversations whose turns this server runs, and the beat of its heart that keeps them."""

import logging
from collections.abc import Callable
from typing import Final

import anyio

from gateway.conversations.leases import Lease, LeaseStore, Node
from gateway.conversations.model import Turn
from gateway.errors import Overloaded
from gateway.ids import ConversationId
from gateway.turns.requests import RETRY_AFTER_S
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

_TTL_MS: Final = 15_000
"""A server that has been silent for so long is dead for the others."""
_BEAT_S: Final = 5.0


class Ownership:
    """What this server holds. `run` keeps it; a conversation is held until the server stops."""

    def __init__(self, leases: LeaseStore, node: Node) -> None:
        self._leases = leases
        self.node = node
        self._epochs: dict[ConversationId, int] = {}
        self.on_lost: Callable[[ConversationId], None] = lambda _: None
        """Called with a conversation that another server holds now; its turns must stop."""

    async def begin(self) -> None:
        """Let the server join; what its last process held is anyone's then."""
        await self._leases.join(self.node, ttl_ms=_TTL_MS)

    async def take_unfinished(self) -> None:
        """Take the conversations with unfinished turns whose servers are dead."""
        for lease in await self._leases.take_unfinished(self.node):
            self._note(lease)

    async def hold(self, conversation_id: ConversationId) -> int:
        """Return the epoch under which this server runs a conversation, which is taken if need be.

        Raise `Overloaded` if another server runs it, and `StoreUnavailable`.
        """
        known = self._epochs.get(conversation_id)
        if known is not None:
            return known
        lease = await self._leases.take(self.node, conversation_id)
        if lease is None:
            raise Overloaded(
                "Another server runs this conversation; try again in a moment.",
                retry_after_s=RETRY_AFTER_S,
            )
        return self._note(lease)

    def epoch_of(self, conversation_id: ConversationId) -> int:
        """Return the epoch of a conversation; 0 if this server does not hold it."""
        return self._epochs.get(conversation_id, 0)

    def note(self, turn: Turn) -> None:
        """Note the epoch of a turn that was accepted."""
        self._epochs[turn.conversation_id] = turn.epoch

    def _note(self, lease: Lease) -> int:
        self._epochs[lease.conversation_id] = lease.epoch
        return lease.epoch

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
        """Keep what is held; if that came too late, find out what others took and stop it."""
        beat = await self._leases.beat(self.node, ttl_ms=_TTL_MS)
        if beat == "in_time":
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

    async def end(self) -> None:
        """Release everything; bounded by what the store takes. A failure leaves it to expire."""
        try:
            await self._leases.leave(self.node)
        except StoreUnavailable as exc:
            _log.warning("leases_not_released", extra={"reason": str(exc)})
