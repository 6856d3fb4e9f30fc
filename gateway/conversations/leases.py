"""Which server runs the turns of a conversation, where several share one database.

A node is one server. It holds a conversation by a lease with an epoch, which rises with each owner
and never falls. A lease ends when its node releases it, or is dead: its heart has not beaten for
the time it was given, by the clock of the database, or its process was started again. Whoever has
the epoch alone may write for the conversation: each write of an owner compares it in its own
transaction, so that one who was taken for dead, and is not, stores nothing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, Protocol

from gateway.ids import ConversationId, NodeId
from memory.errors import StoreUnavailable

NOBODY: Final[Mapping[ConversationId, int]] = MappingProxyType({})
"""The epochs of conversations that nobody has ever held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A server, from the start of its process to its end."""

    id: NodeId
    """The same after a restart, so that it need not wait until its former self has expired."""
    incarnation: str
    """New with each start."""
    url: str | None = None
    """Where other nodes reach it; None: nowhere."""
    secret: str | None = field(default=None, repr=False)
    """What a node shows it with a request that it passes on, new with each start."""
    process: str | None = None
    """Names its process to nodes of the same machine; None if nothing tells them of its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """That a node runs the turns of a conversation."""

    conversation_id: ConversationId
    epoch: int
    """From 1. Of a conversation that nobody has ever held: 0."""
    last_seq: int
    """The `seq` of the last event that was stored before this owner; 0 if there was none."""


Beat = Literal["in_time", "late", "gone"]
"""Of a heart. `late`: the node had expired; it lives again, but others may have taken what it held
(see `held`). `gone`: it has left, or a later incarnation has joined; nothing was changed."""


class LeaseLost(StoreUnavailable):
    """Nothing was stored: another node holds the conversation, or has held it meanwhile."""


class LeaseStore(Protocol):
    """Nodes, and the leases that they hold. Leases go with their conversation."""

    async def join(self, node: Node, *, ttl_ms: int) -> None:
        """Add a node that is alive for `ttl_ms` from now; leases of its earlier incarnations end.

        It takes conversations again, if it was draining.
        """

    async def beat(self, node: Node, *, ttl_ms: int) -> Beat:
        """Keep a node, and with it all its leases, alive for `ttl_ms` from now.

        A cut of the power may lose it.
        """

    async def drain(self, node: Node, *, keep: Collection[ConversationId]) -> None:
        """Mark a node as draining, and release everything it holds except `keep`."""

    async def leave(self, node: Node) -> None:
        """Release all leases of a node and remove it; idempotent."""

    async def take(self, node: Node, conversation_id: ConversationId) -> Lease | None:
        """Take a conversation that no living node holds; return a lease that the node has already.

        None if a living node has it, there is no such conversation, or `node` itself is draining or
        has left. A cut of the power may lose it, with what was written under it.
        """

    async def take_unfinished(self, node: Node) -> Sequence[Lease]:
        """Take all conversations with queued or running turns that no living node holds."""

    async def release(self, node: Node, conversation_id: ConversationId) -> None:
        """End a lease that the node holds; its epoch stays. No error if it does not hold it."""

    async def held(self, node: Node) -> Sequence[Lease]:
        """List the leases of a node, by conversation."""

    async def holder(self, conversation_id: ConversationId) -> Node | None:
        """Return the living node that holds a conversation; None if there is none."""

    async def living(self, *, takes_turns: bool = False) -> Sequence[Node]:
        """List the living nodes, by id; with `takes_turns` those that do not drain."""

    async def lock(self, node: Node, name: str) -> bool:
        """Take a lock that no other living node has; return False if one has it. A cut of the power
        may lose it.
        """

    async def unlock(self, node: Node, name: str) -> None:
        """Give a lock back. No error if the node does not have it."""

    async def bury(self, node: Node) -> None:
        """Note that a node's process has ended: what it holds can be taken at once."""
