"""Work that only one of the nodes of a database does at a time."""

from typing import Protocol

from gateway.conversations.leases import Node


class DutyStore(Protocol):
    """Which node has which duty. One of a dead node can be taken by any other.

    Raises `StoreUnavailable`.
    """

    async def take(self, node: Node, duty: str) -> int:
        """Take a duty that no other living node has, or keep it; return for how many milliseconds
        the node lives without a further beat.

        0 if another node has it, or `node` is dead or has left.
        """

    async def release(self, node: Node, duty: str) -> None:
        """Let others have a duty. No error if the node does not have it."""
