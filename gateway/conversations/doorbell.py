"""Tells the servers that share a database that there is something to read there.

A ring names conversations and carries nothing of them. It follows the commit and is not part of it,
so that no other transaction waits for this one's disk. A ring that is lost is made up for by those
who read: see `FeedFollower`.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Protocol

import anyio
from pydantic import TypeAdapter, ValidationError

from gateway.ids import ConversationId, NodeId, TurnId
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

MAX_NAMED: Final = 150
"""Conversations that a ring names; of more it has the others look at all that they read."""
_MAX_OTHERS: Final = 20
"""Deletions, and changed results, of a ring."""
_PAUSE_S: Final = 0.01
"""Between two rings of a server: what is stored meanwhile is in one."""
_RETRY_S: Final = 0.5


class Notifications(Protocol):
    """Carries short texts between the servers that listen at that moment."""

    async def send(self, payload: str) -> None:
        """Send a text to all that listen. Raise `StoreUnavailable` if it may not have been sent."""

    async def listen(
        self, on_payload: Callable[[str], None], on_listening: Callable[[], None]
    ) -> None:
        """Call `on_payload` with each text that is sent from the call of `on_listening` on.

        Ends with `StoreUnavailable` alone, when the connection is lost.
        """

    async def close(self) -> None:
        """Close what `send` has opened; idempotent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """What a server has stored."""

    node: NodeId
    """The server."""
    stored: set[ConversationId] | None = field(default_factory=set)
    """Conversations with new events; None: perhaps any."""
    deleted: set[ConversationId] = field(default_factory=set)
    changed: set[tuple[ConversationId, TurnId]] = field(default_factory=set)
    """Results that changed after their turns had ended."""

    def payload(self) -> str:
        """Return the ring as a text."""
        return _RING.dump_json(self).decode()


_RING: Final = TypeAdapter(Ring)


def read_ring(payload: str) -> Ring | None:
    """Return the ring of a text; None if it is none that this version knows."""
    try:
        return _RING.validate_json(payload)
    except ValidationError:
        return None


class Doorbell:
    """Rings for what this server stores, and hears the others. `run` must be running."""

    def __init__(
        self,
        notifications: Notifications,
        node: NodeId,
        holds: Callable[[ConversationId], bool],
        *,
        pause_s: float = _PAUSE_S,
    ) -> None:
        """Initialise; `holds` tells whether this server alone writes a conversation now."""
        self._notifications = notifications
        self._node = node
        self.holds = holds
        self._pause_s = pause_s
        self._stored: set[ConversationId] = set()
        self._deleted: set[ConversationId] = set()
        self._changed: set[tuple[ConversationId, TurnId]] = set()
        self._is_failing = False
        self._work = anyio.Event()

    def stored(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Ring soon for conversations that got events."""
        self._stored.update(conversation_ids)
        self._work.set()

    def deleted(self, conversation_id: ConversationId) -> None:
        """Ring soon for a conversation that is gone."""
        self._deleted.add(conversation_id)
        self._work.set()

    def changed(self, conversation_id: ConversationId, turn_id: TurnId) -> None:
        """Ring soon for a turn whose stored result changed after its end."""
        self._changed.add((conversation_id, turn_id))
        self._work.set()

    async def run(self) -> None:
        """Ring until cancelled. What cannot be sent is sent later."""
        try:
            while True:
                await self._work.wait()
                self._work = anyio.Event()
                pause_s = self._pause_s if await self._ring(self._next_ring()) else _RETRY_S
                await anyio.sleep(pause_s)
        finally:
            with anyio.CancelScope(shield=True):
                await self._notifications.close()

    def _next_ring(self) -> Ring:
        """Return what waits; if it is too much for one ring, the rest is for the next."""
        stored, self._stored = self._stored, set()
        deleted = set(islice(self._deleted, _MAX_OTHERS))
        changed = set(islice(self._changed, _MAX_OTHERS))
        self._deleted -= deleted
        self._changed -= changed
        if self._deleted or self._changed:
            self._work.set()
        return Ring(
            node=self._node,
            stored=stored if len(stored) <= MAX_NAMED else None,
            deleted=deleted,
            changed=changed,
        )

    async def _ring(self, ring: Ring) -> bool:
        try:
            await self._notifications.send(ring.payload())
        except StoreUnavailable as exc:
            if not self._is_failing:
                _log.warning("doorbell_not_ringing", extra={"reason": str(exc)})
            self._is_failing = True
            self._stored.update(ring.stored or ())  # of any, the others find out themselves
            self._deleted.update(ring.deleted)
            self._changed.update(ring.changed)
            self._work.set()
            return False
        self._is_failing = False
        return True

    async def hear(self, on_ring: Callable[[Ring], None], on_hearing: Callable[[], None]) -> None:
        """Call `on_ring` with what other servers store from the call of `on_hearing` on.

        Ends with `StoreUnavailable` alone, when the connection is lost.
        """

        def take(payload: str) -> None:
            ring = read_ring(payload)
            if ring is not None and ring.node != self._node:
                on_ring(ring)

        await self._notifications.listen(take, on_hearing)
