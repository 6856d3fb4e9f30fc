"""Roads to servers that can be cut, held in one direction or both, delayed and closed."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

import anyio
from anyio.abc import ByteStream, SocketStream

Way: TypeAlias = Literal["there", "back"]
Connect: TypeAlias = Callable[[], Awaitable[ByteStream]]
_BROKEN = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


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

    async def carry(self, near: SocketStream) -> None:
        """Carry one connection until either side ends it, or it is cut."""
        async with near:
            far = None if self.is_closed else await self._connect()
            if far is None:
                _reset(near)
                return
            async with far, anyio.create_task_group() as tasks:
                self._open.add(tasks.cancel_scope)
                try:
                    tasks.start_soon(self._carry, near, far, "there", tasks.cancel_scope)
                    await self._carry(far, near, "back", tasks.cancel_scope)
                finally:
                    self._open.discard(tasks.cancel_scope)

    async def _connect(self) -> ByteStream | None:
        self._turn += 1
        for number in range(len(self._targets)):
            connect = self._targets[(self._turn + number) % len(self._targets)]
            try:
                return await connect()
            except OSError:
                continue
        return None

    async def _carry(
        self, source: ByteStream, target: ByteStream, way: Way, scope: anyio.CancelScope
    ) -> None:
        try:
            while True:
                piece = await source.receive()
                if self.delay_s:
                    await anyio.sleep(self.delay_s)
                await self._ways[way].wait()
                await target.send(piece)
        except _BROKEN:
            scope.cancel()


def _reset(stream: SocketStream) -> None:
    raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


@asynccontextmanager
async def open_road(*targets: Connect) -> AsyncIterator[Road]:
    """Open a road on loopback while the block runs."""
    road = Road(targets)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    road.port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, road.carry)
        yield road
        tasks.cancel_scope.cancel()
