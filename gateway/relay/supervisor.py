"""Keeps the relay's process running, and tells it which agents it serves."""

import contextlib
import json
import logging
import math
import secrets
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.streams.text import TextReceiveStream

from gateway.relay.reports import OnReport, ServiceReport
from gateway.relay.upstream import Target

_log = logging.getLogger(__name__)

_ROOT = Path(__file__).resolve().parents[2]
_RAN_WELL_S = 5.0
_LONGEST_PAUSE_S = 5.0
_FIRST_PAUSE_S = 0.1
_BACKLOG = 512
_PRIVATE = ("ANTHROPIC_", "CLAUDE_", "CANDOR_", "PYTHON")


@dataclass(frozen=True, slots=True)
class _Client:
    order: Mapping[str, Any]
    on_report: OnReport


class RelayProcess:
    """The relay; agents reach it at `url` with the token that `admit` returns."""

    def __init__(self, target: Target, environ: Mapping[str, str], listener: socket.socket) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.pid: int | None = None
        """The process id; None while none runs."""
        self._listener = listener
        self._target = target
        self._environ = {k: v for k, v in environ.items() if not k.startswith(_PRIVATE)}
        self._clients: dict[str, _Client] = {}
        self._marks: dict[str, Mapping[str, Any]] = {}
        self._orders: MemoryObjectSendStream[Mapping[str, Any]] | None = None

    def admit(self, client_id: str, on_report: OnReport) -> str:
        """Return the token of a new agent; its calls are served until it is revoked."""
        token = secrets.token_urlsafe(32)
        order = {"admit": token, "client": client_id}
        self._clients[client_id] = _Client(order, on_report)
        self._send(order)
        return token

    def revoke(self, client_id: str) -> None:
        """Serve an agent no more. Idempotent."""
        client = self._clients.pop(client_id, None)
        self._marks.pop(client_id, None)
        if client is not None:
            self._send({"revoke": client.order["admit"]})

    def set_warm_up(self, client_id: str, mark: str | None) -> None:
        """Have the relay itself answer the client's requests that hold a mark; None ends this."""
        order = {"client": client_id, "mark": mark}
        self._marks[client_id] = order
        if mark is None:
            del self._marks[client_id]
        self._send(order)

    def _send(self, order: Mapping[str, Any]) -> None:
        if self._orders is not None:
            self._orders.send_nowait(order)

    async def ping(self) -> str | None:
        """Return None if the process runs, else a sentence."""
        return None if self.pid else "The model relay does not run; it is started again."

    async def run(self) -> None:
        """Run the process until cancelled, and start it again when it ends.

        Agents that connect meanwhile wait, because the socket stays open.
        """
        pause_s = _FIRST_PAUSE_S
        while True:
            started = anyio.current_time()
            try:
                await self._run_once()
            except OSError:
                _log.exception("relay_not_started")
            ran_s = anyio.current_time() - started
            pause_s = _FIRST_PAUSE_S if ran_s > _RAN_WELL_S else min(pause_s * 2, _LONGEST_PAUSE_S)
            _log.warning("relay_ended", extra={"ran_s": round(ran_s, 1)})
            await anyio.sleep(pause_s)

    async def _run_once(self) -> None:
        start = (
            f"import sys; sys.path[:] = {[str(_ROOT), *sys.path]!r}; "
            f"from gateway.relay.program import main; main({self._listener.fileno()})"
        )
        process = await anyio.open_process(
            [sys.executable, "-I", "-c", start],
            stderr=subprocess.STDOUT,
            env=self._environ,
            pass_fds=[self._listener.fileno()],
            start_new_session=True,  # Ctrl-C at the server's terminal must not reach it
        )
        orders: MemoryObjectReceiveStream[Mapping[str, Any]]
        self._orders, orders = anyio.create_memory_object_stream[Mapping[str, Any]](math.inf)
        self.pid = process.pid
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write, process.stdin, orders)
                await self._read(process.stdout)
                tasks.cancel_scope.cancel()
        finally:
            self._orders.close()
            orders.close()
            self.pid, self._orders = None, None
            with anyio.CancelScope(shield=True):
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.aclose()

    async def _write(
        self, stdin: ByteSendStream, orders: MemoryObjectReceiveStream[Mapping[str, Any]]
    ) -> None:
        clients = [client.order for client in self._clients.values()]
        first = {"target": asdict(self._target), "orders": [*clients, *self._marks.values()]}
        try:
            await stdin.send(_line(first))
            async for order in orders:
                await stdin.send(_line(order))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # it has ended, which the reader notices

    async def _read(self, stdout: ByteReceiveStream) -> None:
        rest = ""
        async for text in TextReceiveStream(stdout, errors="replace"):
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                self._take(line)

    def _take(self, line: str) -> None:
        """Pass a report on; what is no report is an error of the process."""
        try:
            report = json.loads(line)
            client = self._clients.get(report.pop("client"))
            if client is not None:
                client.on_report(ServiceReport(**report))
        except (ValueError, TypeError, AttributeError, KeyError):
            _log.warning("relay_fault", extra={"line": line})


def _line(order: Mapping[str, Any]) -> bytes:
    return json.dumps(order).encode() + b"\n"


@asynccontextmanager
async def open_relay(target: Target, environ: Mapping[str, str]) -> AsyncIterator[RelayProcess]:
    """Run the relay on a free port of loopback while the block runs."""
    with socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) as listener:
        # asyncio sets this only on sockets that it opens
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        relay = RelayProcess(target, environ, listener)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(relay.run)
            try:
                yield relay
            finally:
                tasks.cancel_scope.cancel()
