"""Which server runs the turns of a conversation, where several share one database.

A node is one server. It holds a conversation by a lease with an epoch, which rises with each owner
and never falls. A lease ends when its node releases it, or is dead: its heart has not beaten for
the time it was given, by the clock of the database, or its process was started again. Whoever has
the epoch alone may write for the conversation: each write of an owner compares it in its own
transaction, so that one who was taken for dead, and is not, stores nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

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
    was_let_go: bool = False
    """The last owner lives, and had to let it go with its turns."""


Beat = Literal["in_time", "late", "gone"]
"""Of a heart. `late`: the node had expired; it lives again, but others may have taken what it held
(see `held`). `gone`: it has left, or a later incarnation has joined; nothing was changed."""


class LeaseLost(StoreUnavailable):
    """Nothing was stored: another node holds the conversation, or has held it meanwhile."""
