"""A conversation's client in the pool: what it is, what it does, and how it came to be; the pool's
bounds.
"""

from dataclasses import dataclass
from typing import Literal

import anyio
import psutil

from gateway.engine.protocol import AgentClient
from gateway.settings import Settings

_MEMORY_SHARE = 0.6
_MEBIBYTE = 1024 * 1024

Origin = Literal["reused", "prewarmed", "connected", "woken"]
State = Literal["working", "idle", "leaving"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """The bounds of the pool."""

    max_live: int
    prewarmed: int
    idle_s: float
    stale_grace_s: float
    max_memory_bytes: int
    max_woken: int = 0
    """Clients that wait for a first message in a conversation that was only opened."""


def pool_limits(settings: Settings) -> PoolLimits:
    """Return the bounds that the settings give, by default those of this machine's memory."""
    bound = settings.max_live_mb * _MEBIBYTE or int(psutil.virtual_memory().total * _MEMORY_SHARE)
    return PoolLimits(
        max_live=settings.max_live_clients,
        prewarmed=settings.prewarmed_clients,
        idle_s=settings.idle_client_s,
        stale_grace_s=settings.stale_client_grace_s,
        max_memory_bytes=bound,
        max_woken=settings.prewarmed_clients if settings.wake_opened == "on" else 0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A client for one turn; end it with `release` or `discard`."""

    client: AgentClient
    origin: Origin
    session_lost: bool = False
    """The session no longer exists: the agent remembers nothing of the conversation."""
    client_died: bool = False
    """The conversation's last process died between the turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldProcess:
    """The agent process of a conversation, as it is now."""

    conversation_id: str
    state: State
    age_s: float
    memory_bytes: int
    """When it was last measured; 0 before that."""


class HeldClient:
    """A conversation's client and its state; busy at first."""

    def __init__(self, client: AgentClient, fingerprint: str) -> None:
        self.client = client
        self.fingerprint = fingerprint
        self.busy = True
        self.first_lease: Lease | None = None
        """For the first turn of a client that was woken before its message came; None otherwise."""
        self.started_at = anyio.current_time()
        self.idle_since = anyio.current_time()
        self.stale_since: float | None = None
        self.memory_bytes = 0
        self.is_ending = False
        self.ended = anyio.Event()

    @property
    def is_leaving(self) -> bool:
        """It is stale, or ending."""
        return self.stale_since is not None or self.is_ending

    @property
    def is_usable(self) -> bool:
        """Another turn may run on it."""
        return not self.is_leaving and self.client.is_alive()

    @property
    def is_over(self) -> bool:
        """No turn runs on it, and none will."""
        return not self.busy and not self.is_usable

    @property
    def is_unused(self) -> bool:
        """No turn has run on it, or is about to."""
        return self.first_lease is not None

    @property
    def has_died(self) -> bool:
        """It ended by itself, after a turn."""
        return not (self.is_leaving or self.is_unused or self.client.is_alive())

    @property
    def worth(self) -> tuple[bool, bool, float]:
        """The order in which idle clients are ended: stale, unused, then the
        least recently used.
        """
        return self.stale_since is None, not self.is_unused, self.idle_since

    @property
    def state(self) -> State:
        """What it does."""
        if self.is_leaving:
            return "leaving"
        return "working" if self.busy else "idle"

    def take(self) -> Lease:
        """Make it busy and return the lease for a turn."""
        lease = self.first_lease or Lease(client=self.client, origin="reused")
        self.busy, self.first_lease = True, None
        return lease

    def rest(self, first_lease: Lease | None = None) -> None:
        """Make it idle."""
        self.busy, self.first_lease = False, first_lease
        self.idle_since = anyio.current_time()

    def leave(self) -> None:
        """Make it stale; the first call counts."""
        if self.stale_since is None:
            self.stale_since = anyio.current_time()


class Claim:
    """A conversation that is getting a client."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.left = False
        self.has_begun = True
        """False while nothing was done for it yet, because the conversation was only opened."""
        self.done = anyio.Event()
