"""Roads to servers that can be cut, held in one direction or both, delayed and closed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

import anyio

Way: TypeAlias = Literal["there", "back"]
Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect: TypeAlias = Callable[[], Awaitable[Ends]]
_PIECE_BYTES = 65_536


class Road:
    """Carries connections to the first of its targets that takes one, beginning with another one
    each time.
    """

    def __init__(self, targets: Sequence[Connect]) -> None:
        self._targets = list(targets)
        self._turn = 0
        self._open: set[anyio.CancelScope] = set()
        self._ways = {"there": anyio.Event(), "back": anyio.Event()}
        self.delay_s = 0.0
        """What each piece waits, in either direction."""
        self.is_closed = False
        """New connections are broken at once."""
        self.port = 0
        self.free()

    def hold(self, *ways: Way) -> None:
        """Carry nothing in these directions until `free`; nothing is lost."""
        for way in ways:
            self._ways[way] = anyio.Event()

    def free(self) -> None:
        """Carry everything again."""
        self.delay_s, self.is_closed = 0.0, False
        for way in self._ways.values():
            way.set()

    def cut(self) -> None:
        """Break all connections, with what is held."""
        for scope in self._open:
            scope.cancel()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side ends it, or it is cut."""
        far = None if self.is_closed else await self._connect()
        if far is not None:
            async with anyio.create_task_group() as tasks:
                self._open.add(tasks.cancel_scope)
                tasks.start_soon(self._carry, (reader, far[1]), "there", tasks.cancel_scope)
                await self._carry((far[0], writer), "back", tasks.cancel_scope)
            self._open.discard(tasks.cancel_scope)
            far[1].transport.abort()
        writer.transport.abort()

    async def _connect(self) -> Ends | None:
        self._turn += 1
        for number in range(len(self._targets)):
            connect = self._targets[(self._turn + number) % len(self._targets)]
            try:
                return await connect()
            except OSError:
                continue
        return None

    async def _carry(self, ends: Ends, way: Way, scope: anyio.CancelScope) -> None:
        source, target = ends
        try:
            while piece := await source.read(_PIECE_BYTES):
                await anyio.sleep(self.delay_s)
                await self._ways[way].wait()
                target.write(piece)
                await target.drain()
        except OSError:
            pass
        finally:
            scope.cancel()


@asynccontextmanager
async def open_road(*targets: Connect) -> AsyncIterator[Road]:
    """Open a road on loopback while the block runs."""
    road = Road(targets)
    server = await asyncio.start_server(road.carry, "127.0.0.1", 0)
    road.port = server.sockets[0].getsockname()[1]
    try:
        yield road
    finally:
        server.close()
        road.cut()
        await server.wait_closed()
