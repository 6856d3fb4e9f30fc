"""Keeps the relay's process running, and tells it which agents it serves."""

import asyncio
import contextlib
import json
import logging
import math
import secrets
import socket
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import anyio
from pydantic import TypeAdapter

from gateway.relay.reports import ModelCall, OnReport, ServiceReport
from gateway.relay.upstream import Target

_log = logging.getLogger(__name__)

_ROOT = Path(__file__).resolve().parents[2]
_RAN_WELL_S = 5.0
_LONGEST_PAUSE_S = 5.0
_FIRST_PAUSE_S = 0.1
_BACKLOG = 512
_CHECK_S = 2.0
"""How often the process is asked for a sign of life."""
_TRY_S = 0.5
_TRIES = 10
"""How often it is asked, waiting `_TRY_S` each time, before it counts as hung: the server itself
may have been held up during a try.
"""
_FIRST_TRIES = 120
_PRIVATE = ("ANTHROPIC_", "CLAUDE_", "CANDOR_", "OTEL_", "PYTHON")
_FAILURE, _CALL = TypeAdapter(ServiceReport), TypeAdapter(ModelCall)


@dataclass(slots=True)
class _Client:
    id: str
    token: str
    on_report: OnReport
    state: dict[str, object] = field(
        default_factory=lambda: {"mark": None, "held": False, "has_tools": True}
    )
    """As in the orders of `program`."""

    @property
    def orders(self) -> list[Mapping[str, object]]:
        """The orders that make a new process know the client."""
        told = [{"client": self.id, name: value} for name, value in self.state.items()]
        return [{"admit": self.token, "client": self.id}, *told]


class RelayProcess:
    """The relay; agents reach it at `url` with the token that `admit` returns."""

    def __init__(self, target: Target, environ: Mapping[str, str], listener: socket.socket) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.pid: int | None = None
        """The process id; None while none runs."""
        self.down_since = anyio.current_time()
        """Clock time since which no process has given a sign of life; infinite while a process
        serves.
        """
        self._listener = listener
        self._target = target
        self._environ = {
            name: value
            for name, value in environ.items()
            if not name.startswith(_PRIVATE) and not name.lower().endswith("_proxy")
        }
        self._clients: dict[str, _Client] = {}
        self._stdin: asyncio.StreamWriter | None = None
        self._heard = anyio.Event()

    def admit(self, client_id: str, on_report: OnReport) -> str:
        """Return the token of a new agent; its calls are served until it is revoked."""
        client = _Client(client_id, secrets.token_urlsafe(32), on_report)
        self._clients[client_id] = client
        self._send(client.orders[0])
        return client.token

    def revoke(self, client_id: str) -> None:
        """Serve an agent no more. Idempotent."""
        client = self._clients.pop(client_id, None)
        if client is not None:
            self._send({"revoke": client.token})

    def set_warm_up(self, client_id: str, mark: str | None) -> None:
        """Make the relay itself answer the client's requests that hold a mark; None ends this."""
        self._change(client_id, "mark", mark)

    def hold(self, client_id: str, *, is_held: bool) -> None:
        """Hold the client's requests back until it is released.

        This holds for each request that the agent makes because of anything that it is sent
        afterwards.
        """
        self._change(client_id, "held", is_held)

    def offer_tools(self, client_id: str, *, has_tools: bool) -> None:
        """Set whether the model may call tools; holds for requests as `hold` does."""
        self._change(client_id, "has_tools", has_tools)

    def _change(self, client_id: str, name: str, value: object) -> None:
        client = self._clients.get(client_id)
        if client is not None and client.state[name] != value:
            client.state[name] = value
            self._send({"client": client_id, name: value})

    def _send(self, order: Mapping[str, object]) -> None:
        """Write an order at once; a new process gets all of them."""
        if self._stdin is not None:
            self._stdin.write(json.dumps(order).encode() + b"\n")

    async def ping(self) -> str | None:
        """Return None if the process serves, else a sentence."""
        return (
            None
            if self.down_since == math.inf
            else "The model relay does not run; it is started again."
        )

    async def run(self) -> None:
        """Run the process until cancelled, and start it again when it ends.

        Agents that connect meanwhile wait, because the socket stays open.
        """
        pause_s = _FIRST_PAUSE_S
        while True:
            started = anyio.current_time()
            try:
                await self._run_once()
            except Exception:  # noqa: BLE001  the server outlives whatever happens to its relay
                _log.exception("relay_failed")
            self._tell_clients_of_end()
            ran_s = anyio.current_time() - started
            pause_s = _FIRST_PAUSE_S if ran_s > _RAN_WELL_S else min(pause_s * 2, _LONGEST_PAUSE_S)
            _log.warning("relay_ended", extra={"ran_s": round(ran_s, 1)})
            await anyio.sleep(pause_s)

    async def _run_once(self) -> None:
        start = (
            f"import sys; sys.path[:] = {[str(_ROOT), *sys.path]!r}; "
            f"from gateway.relay.program import main; main({self._listener.fileno()})"
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-c", start),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environ,
            pass_fds=[self._listener.fileno()],
            start_new_session=True,  # Ctrl-C at the server's terminal must not reach it
        )
        self.pid, self._stdin = process.pid, process.stdin
        orders = [order for client in self._clients.values() for order in client.orders]
        self._send({"target": asdict(self._target), "orders": orders})
        try:
            assert process.stdout is not None
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._check, process)
                await self._read(process.stdout)
                tasks.cancel_scope.cancel()
        finally:
            self._stdin = None
            with anyio.CancelScope(shield=True):
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    def _tell_clients_of_end(self) -> None:
        """Report the end of a process, unless none had started."""
        if self.pid is None:
            return
        self.pid = None
        self.down_since = min(self.down_since, anyio.current_time())
        for client in list(self._clients.values()):
            _report(client, ServiceReport(kind="relay_lost"))

    async def _check(self, process: Process) -> None:
        """Ask the process for signs of life until it gives none; kill it then."""
        tries = _FIRST_TRIES  # it is starting
        while await self._gives_sign(tries):
            tries = _TRIES
            await anyio.sleep(_CHECK_S)
        _log.warning("relay_hung")
        with contextlib.suppress(ProcessLookupError):
            process.kill()

    async def _gives_sign(self, tries: int) -> bool:
        self._heard = anyio.Event()
        for _ in range(tries):
            self._send({"ping": True})
            with anyio.move_on_after(_TRY_S):
                await self._heard.wait()
                return True
        return False

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await lines.readline()
            except ValueError:  # longer than any report, and dropped
                line = b"a line that is too long\n"
            if not line:
                return
            self._take(line)

    def _take(self, line: bytes) -> None:
        """Pass a report on; what is no report is an error of the process."""
        self._heard.set()
        try:
            report = read_report(line)
        except ValueError:
            _log.warning("relay_fault", extra={"line": line.decode(errors="replace").rstrip()})
            return
        self.down_since = math.inf
        client = self._clients.get(report[0]) if report else None
        if report and client:
            _report(client, report[1])


def read_report(line: bytes) -> tuple[str, ServiceReport] | None:
    """Return the client's id and the report of a line; None for a sign of life.

    Raise `ValueError` if the line is neither.
    """
    try:
        fields = json.loads(line)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    if fields == {}:
        return None
    client_id = fields.pop("client", None) if isinstance(fields, dict) else None
    if not client_id or not isinstance(client_id, str):
        raise ValueError("a report names its client")
    kind = _CALL if fields.get("kind") == "called" else _FAILURE
    return client_id, kind.validate_json(json.dumps(fields))  # strict, and yet of an object


def _report(client: _Client, report: ServiceReport) -> None:
    """Pass a report to a client; an error of one client affects no other."""
    try:
        client.on_report(report)
    except Exception:  # noqa: BLE001  any callable; its failure must not end the relay
        _log.exception("relay_report_failed", extra={"kind": report.kind})


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
