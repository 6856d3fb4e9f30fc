"""What breaks a server of a cluster, or its way to the database, for a while."""

import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import psutil

from gateway.engine.processes import MARK
from tests.support.fault_cluster import Cluster, ClusterNode
from tests.support.roads import Way

Fault: TypeAlias = Callable[[ClusterNode], Awaitable[None]]
LONG = {"paused", "held"}
"""Kinds that last until other servers have taken over."""
LONG_S = 8.0
"""How long those last: longer than a lease."""
_SHORT_S = 0.5
_DELAY_S = 0.03
_ENDS_AGENTS_S = 5.0
"""What a server may take to end the agents of conversations that it lost while it was paused."""


@dataclass(slots=True, kw_only=True)
class Faults:
    """The faults of one cluster."""

    cluster: Cluster
    _excused: dict[str, float] = field(default_factory=dict)
    """By the mark of a paused server's agents, the time until which they may be there: while the
    server stands, an agent of it can begin nothing, for each of its calls asks the server."""

    _migrations: int = 0

    def kinds(self) -> Mapping[str, Fault]:
        """Return all kinds by their names. Each ends when the fault is over."""
        return {
            "nothing": self._nothing,
            "killed": self._killed,
            "drained": self._drained,
            "paused": partial(self._paused, for_s=LONG_S),
            "paused_briefly": partial(self._paused, for_s=_SHORT_S),
            "cut": self._cut,
            "closed": self._closed,
            "held": partial(self._held, ways=("there", "back"), for_s=LONG_S),
            "held_briefly": partial(self._held, ways=("there", "back"), for_s=_SHORT_S),
            "answers_lost": partial(self._held, ways=("back",), for_s=_SHORT_S, is_cut=True),
            "delayed": self._delayed,
            "database_restarted": partial(self._restarted, how=signal.SIGINT),
            "database_crashed": partial(self._restarted, how=signal.SIGQUIT),
            "unreachable": self._unreachable,
            "silent": self._silent,
            "migrated": self._migrated,
            "upgraded": self._upgraded,
        }

    def acting(self, label: str) -> list[dict[str, Any]]:
        """List the agents that run a command that names `label`. Blocks."""
        found: dict[str, dict[str, Any]] = {}
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if not any(label in word for word in process.cmdline()):
                    continue
                mark = process.environ().get(MARK, "")
                owner = mark.partition(":")[0]
                for node in self.cluster.nodes:
                    server = node.server
                    is_excused = self._excused.get(owner, 0) > time.monotonic()
                    if server is not None and server.owner == owner and not is_excused:
                        found[mark] = {"pid": process.pid, "node": node.name, "agent": mark}
        return list(found.values())

    async def _nothing(self, _: ClusterNode) -> None:
        await anyio.sleep(_SHORT_S)

    async def _killed(self, node: ClusterNode) -> None:
        assert node.server is not None
        await anyio.to_thread.run_sync(node.server.kill)
        await self.cluster.start(node)

    async def _drained(self, node: ClusterNode) -> None:
        assert node.server is not None
        node.server.signal(signal.SIGTERM)
        assert await node.server.wait_ended() == 0
        await self.cluster.start(node)

    async def _paused(self, node: ClusterNode, *, for_s: float) -> None:
        assert node.server is not None
        self._excused[node.server.owner] = float("inf")
        node.server.signal(signal.SIGSTOP)
        await anyio.sleep(for_s)
        node.server.signal(signal.SIGCONT)
        self._excused[node.server.owner] = time.monotonic() + _ENDS_AGENTS_S

    async def _cut(self, node: ClusterNode) -> None:
        node.to_database.cut()
        await anyio.sleep(_SHORT_S)

    async def _closed(self, node: ClusterNode) -> None:
        node.to_database.is_closed = True
        node.to_database.cut()
        await anyio.sleep(_SHORT_S)
        node.to_database.free()

    async def _held(
        self, node: ClusterNode, *, ways: Sequence[Way], for_s: float, is_cut: bool = False
    ) -> None:
        """Hold what is on its way; then it arrives, however late, or is lost."""
        node.to_database.hold(*ways)
        await anyio.sleep(for_s)
        if is_cut:
            node.to_database.cut()
        node.to_database.free()

    async def _delayed(self, node: ClusterNode) -> None:
        node.to_database.delay_s = _DELAY_S
        await anyio.sleep(_SHORT_S * 4)
        node.to_database.free()

    async def _restarted(self, _: ClusterNode, *, how: signal.Signals) -> None:
        await self.cluster.restart_database(how)

    async def _unreachable(self, node: ClusterNode) -> None:
        node.door.is_closed = True
        node.door.cut()
        await anyio.sleep(_SHORT_S * 4)
        node.door.free()

    async def _silent(self, node: ClusterNode) -> None:
        node.door.hold("there", "back")
        await anyio.sleep(_SHORT_S * 4)
        node.door.cut()
        node.door.free()

    async def _upgraded(self, node: ClusterNode) -> None:
        """Replace a server by one of the next version, which migrates the database of the others."""
        known = max((one.later_versions for one in self.cluster.nodes), key=len)
        node.later_versions = (*known, str(len(known) + 1))
        await self._drained(node)

    async def _migrated(self, _: ClusterNode) -> None:
        """Change the tables as the first step of a newer version may, while the servers run."""
        self._migrations += 1
        for table in ("conversations", "turns", "events", "leases", "nodes", "approvals"):
            statement = f"ALTER TABLE candor.{table} ADD COLUMN later_{self._migrations} TEXT"
            await anyio.to_thread.run_sync(self.cluster.execute, statement)
