"""Servers of one gateway on one database, and what breaks them: the parts of the fault suite.

Each server reaches PostgreSQL by a road of its own, and is reached by one; clients use a third, which
takes the next server for each connection. The servers' clocks differ.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import psycopg

from tests.support.live_server import LiveServer, start_server
from tests.support.ports import lasting_port
from tests.support.postgres import new_database_blocking, restart_blocking, socket_directory
from tests.support.program import ROOT
from tests.support.roads import Connect, Road, open_road

WRITERS = """
CREATE TABLE candor.history_events (conversation_id TEXT, seq BIGINT, epoch BIGINT, writer TEXT);
CREATE FUNCTION candor.note_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO candor.history_events
    SELECT new.conversation_id, new.seq, l.epoch, current_setting('history.writer', true)
    FROM candor.leases l WHERE l.conversation_id = new.conversation_id;
  RETURN NULL;
END $$;
CREATE TRIGGER event_noted AFTER INSERT ON candor.events
  FOR EACH ROW EXECUTE FUNCTION candor.note_event();
"""
"""Notes for each event the epoch of the lease and the server's process that wrote it."""
SKEWED_APP = ROOT / "tests" / "support" / "skewed_app.py"
NAMES = "abc"
Rows = Callable[..., list[Any]]
"""Asks the database a query with values."""


@dataclass(slots=True, kw_only=True)
class ClusterNode:
    """One server, through all its starts."""

    name: str
    port: int
    skew_s: int
    """How much its clock is wrong."""
    to_database: Road
    door: Road
    """From its clients and the other servers."""
    database: str
    later_versions: Sequence[str] = ()
    """The versions after this one, up to its own; see `later_versions`."""
    server: LiveServer | None = None
    starts: int = 0
    ended: list[LiveServer] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.door.port}"


class Cluster:
    """Servers that have the same workspace and database."""

    def __init__(self, root: Path, database_url: str, settings: dict[str, Any]) -> None:
        self._root = root
        self.database_url = database_url
        self._settings = {"workspace": root / "workspace", **settings}
        self.nodes: list[ClusterNode] = []
        self.front: Road

    @property
    def workspace(self) -> Path:
        return self._root / "workspace"

    async def start(self, node: ClusterNode) -> None:
        """Start a server, again with what it left."""
        node.starts += 1
        writer = f"-c%20history.writer%3D{node.name}{node.starts}"
        address = f"candor@127.0.0.1:{node.to_database.port}/{node.database}?options={writer}"
        shared: dict[str, Any] = {"node_url": node.url} if len(self.nodes) > 1 else {}
        start = partial(
            start_server,
            self._root / node.name,
            program=SKEWED_APP,
            environ={
                "CLOCK_SKEW_S": str(node.skew_s),
                "LATER_VERSIONS": " ".join(node.later_versions),
            },
            port=node.port,
            database_url=f"postgresql://{address}",
            **shared,
            **self._settings,
        )
        if node.server is not None:
            node.ended.append(node.server)
        node.server = await anyio.to_thread.run_sync(start)

    async def restart_database(self, how: signal.Signals) -> None:
        """Restart PostgreSQL; `SIGQUIT` is a crash."""
        await anyio.to_thread.run_sync(restart_blocking, "QUIT" if how is signal.SIGQUIT else "INT")

    def rows(self, query: str, *values: object) -> list[Any]:
        """Return the rows of a query, asked past all roads."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def one_moment(self) -> Iterator[Rows]:
        """Ask as `rows` does; all answers are of one moment."""
        with psycopg.connect(self.database_url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield lambda query, *values: connection.execute(query, values).fetchall()

    def execute(self, statement: str) -> None:
        """Run a statement past all roads."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(statement)


@asynccontextmanager
async def open_cluster(
    root: Path, clocks: Sequence[int], **settings: Any
) -> AsyncIterator[Cluster]:
    """Run a server for each clock, which is wrong by so many seconds, while the block does.

    At the end each stops by itself, without agents.
    """
    async with AsyncExitStack() as stack:
        url = stack.enter_context(new_database_blocking("x"))
        cluster = Cluster(root, url, settings)
        for name, skew_s in zip(NAMES, clocks, strict=False):
            port = lasting_port()
            path = str(socket_directory() / ".s.PGSQL.5432")
            roads = [
                await stack.enter_async_context(open_road(connect))
                for connect in (partial(asyncio.open_unix_connection, path), _to(port))
            ]
            node = ClusterNode(
                name=name,
                port=port,
                skew_s=skew_s,
                to_database=roads[0],
                door=roads[1],
                database=urlsplit(url).path.removeprefix("/"),
            )
            cluster.nodes.append(node)
        fronts = (_to(node.door.port) for node in cluster.nodes)
        cluster.front = await stack.enter_async_context(open_road(*fronts))
        try:
            for node in cluster.nodes:
                await cluster.start(node)
                if node is cluster.nodes[0]:
                    await anyio.to_thread.run_sync(cluster.execute, WRITERS)
            yield cluster
            await _stop_all(cluster)
        finally:
            for node in cluster.nodes:
                if node.server is not None:
                    node.server.signal(signal.SIGCONT)
                    node.server.kill()


def _to(port: int) -> Connect:
    return partial(asyncio.open_connection, "127.0.0.1", port)


async def _stop_all(cluster: Cluster) -> None:
    for node in cluster.nodes:
        assert node.server is not None
        code = await anyio.to_thread.run_sync(node.server.stop)
        assert code == 0, node.server.err_file.read_text("utf-8")
        assert not node.server.agents(), "agents were left"
