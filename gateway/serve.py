"""The server's life: sockets, signals, and the order of start and stop.

Start: directories, workspace, socket, agents, lock and database; then the address is announced.
Stop, on SIGTERM or Ctrl-C: no new turns; running ones get a bounded time and an honest end, sent to
connected clients; then connections and agents close. A second signal skips all waiting.
"""

import contextlib
import errno
import gc
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import httpx
import uvicorn
from anyio.abc import TaskStatus
from fastapi import FastAPI

from gateway.agent_setup import AgentPlan
from gateway.agents import open_agents, plan_agents
from gateway.application import create_app
from gateway.assemble import open_services
from gateway.chat.schedule_runner import ServesUser
from gateway.errors import StartError, start_error
from gateway.files.upload_journal import JOURNALS, undo_cut_uploads_blocking
from gateway.http.auth import check_exposure, served_users
from gateway.http.connections import SEND_BUFFER_BYTES, Connections, limits_from_system
from gateway.http.forwarding import new_transport
from gateway.http.hosts import address_of
from gateway.http.peers import local_users_blocking
from gateway.instance import InstanceLock
from gateway.lost_data import refuse_lost_database_blocking
from gateway.memory import require_model_blocking
from gateway.observability.trace_plan import plan_traces
from gateway.private_files import make_directories_blocking
from gateway.rules import load_policy_blocking
from gateway.services import Services
from gateway.settings import Settings
from gateway.storage import where_to_look
from gateway.trust import OWN_SKILLS
from gateway.users.accounts import Accounts
from gateway.version import VERSION
from gateway.web_fetch.tools import web_tools
from gateway.workspace import prepare_users_blocking, prepare_workspace_blocking
from gateway.workspaces import load_workspaces_blocking
from memory.background import keep_running
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

_DRAIN_S = 3
"""For connections that are still open after the turns have ended."""

_WAITING_CONNECTIONS = 512

_LAST_WORDS_S = 0.5
"""The same after a second signal: sent results leave the server."""


_SWITCH_S = 0.0005
"""How long a computing thread may keep the loop waiting, at each socket that the loop writes: with
the default of 5 ms all streams stall when many turns end together. A fifth of this costs 60 streams
a sixth more processor time, and no piece comes sooner."""


def prepare_blocking(settings: Settings) -> str | None:
    """Create the directories and check that this server may use them; return what is odd about
    them, as a sentence for the operator.

    Raise `StartError` if the policy file holds a mistake or lacks the hosts that a setting needs,
    users cannot have workspaces as the settings ask, a directory cannot be made or written, another
    server uses it, or its database was lost.
    """
    web_tools(settings, load_policy_blocking(settings))
    workspaces = load_workspaces_blocking(settings)
    try:
        make_directories_blocking(settings)
        _probe(settings.data_dir)
        # a full disk there is reported with each turn and does not stop the server
        _probe(settings.log_dir, errno.ENOSPC, errno.EDQUOT)
    except OSError as exc:
        raise start_error(
            f"The directory {exc.filename} cannot be made or written ({exc.strerror}); "
            "set CANDOR_DATA_DIR and CANDOR_LOG_DIR to places that can.",
            exc,
        ) from exc
    with contextlib.closing(InstanceLock(settings.data_dir)):  # `open_services` takes it again
        warning = refuse_lost_database_blocking(settings)
        undo_cut_uploads_blocking(settings.data_dir / JOURNALS)
    if workspaces.is_per_user:
        prepare_users_blocking(workspaces.own.root)
    else:
        prepare_workspace_blocking(settings.workspace, OWN_SKILLS)
    return warning


def _probe(directory: Path, *harmless: int) -> None:
    """Raise `OSError` if a directory cannot be written, unless its number is in `harmless`."""
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as exc:
        if exc.errno not in harmless:
            raise OSError(exc.errno, exc.strerror, str(directory)) from exc


def listen_blocking(settings: Settings) -> socket.socket:
    """Open the socket. Raise `StartError` if the port is taken or not ours to use."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family)
    except OSError as exc:
        # without what Python adds to the system's text
        reason = os.strerror(exc.errno) if exc.errno and exc.errno > 0 else exc.strerror
        raise start_error(
            f"Port {settings.port} on {settings.host} cannot be used ({reason}); "
            "set CANDOR_PORT to another, or to 0 for a free one.",
            exc,
        ) from exc
    # asyncio sets this only on sockets that it opens; otherwise each small answer waits 40 ms
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return listener


def with_port(settings: Settings, port: int) -> Settings:
    """Put the port that the server listens on into a `node_url` with port 0."""
    if settings.node_url is None or httpx.URL(settings.node_url).port != 0:
        return settings
    return replace(settings, node_url=str(httpx.URL(settings.node_url).copy_with(port=port)))


def home_of(environ: Mapping[str, str]) -> Path:
    """Return the home directory; `/` if the system knows none, as for a container's user."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(environ.get("HOME") or "/")


async def serve(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    announce: Callable[[str, AgentPlan], None],
) -> None:
    """Serve until a signal stops the server. Raise `StartError` if the server cannot start, or not
    go on.
    """
    sys.setswitchinterval(_SWITCH_S)
    check_exposure(settings)
    await anyio.to_thread.run_sync(require_model_blocking, settings)
    plan = plan_agents(settings, environ, home_of(environ))
    if warning := await anyio.to_thread.run_sync(prepare_blocking, settings):
        _log.warning("database_begun_anew", extra={"reason": warning})
    with listen_blocking(settings) as listener:
        settings = with_port(settings, listener.getsockname()[1])
        try:
            await _open_and_serve(settings, environ, plan, listener, announce)
        except (BaseExceptionGroup, StoreUnavailable) as exc:
            raise _alone(exc, settings) from exc


def _alone(exc: BaseException, settings: Settings) -> BaseException:
    """Unwrap single exceptions of groups; a failed database becomes a `StartError`."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    if isinstance(exc, StoreUnavailable):
        return StartError(f"{exc} {where_to_look(settings)}")
    return exc


class _Stop:
    """What signals have requested so far."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.at_once = anyio.Event()
        self.server: uvicorn.Server | None = None
        """Set once the server is up."""


async def _open_and_serve(
    settings: Settings,
    environ: Mapping[str, str],
    plan: AgentPlan,
    listener: socket.socket,
    announce: Callable[[str, AgentPlan], None],
) -> None:
    stop, traces = _Stop(), plan_traces(environ)
    if traces.fault is not None:
        _log.warning("traces_off", extra={"reason": traces.fault})
    async with anyio.create_task_group() as tasks:
        await tasks.start(_handle_signals, stop, tasks.cancel_scope)
        async with (
            open_agents(settings, environ, plan) as (make_engine, access),
            open_services(settings, make_engine, access, open_tracer=traces.opener) as services,
        ):
            tasks.start_soon(_cut_short, services, stop)
            bound, port = listener.getsockname()[:2]
            address = address_of("localhost" if settings.host == "localhost" else bound, port)

            def announce_address() -> None:
                _log.info(
                    "serving", extra={"address": address, "version": VERSION, "demo": plan.demo}
                )
                announce(address, plan)

            await _serve_until_stopped(services, listener, stop, announce_address)
        _log.info("stopped")
        tasks.cancel_scope.cancel()


async def _handle_signals(
    stop: _Stop, everything: anyio.CancelScope, *, task_status: TaskStatus[None]
) -> None:
    """Handle signals until the process ends; one before the server is up cancels the start."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for number in signals:
            again = stop.asked.is_set()
            name = signal.Signals(number).name
            _log.info("stopping_at_once" if again else "stopping", extra={"signal": name})
            stop.asked.set()
            if again:
                stop.at_once.set()
            if stop.server is None:
                everything.cancel()


async def _serve_until_stopped(
    services: Services, listener: socket.socket, stop: _Stop, announce: Callable[[], None]
) -> None:
    local_users = None
    if services.settings.tokens_file is None:
        local_users = await anyio.to_thread.run_sync(local_users_blocking)
    async with contextlib.AsyncExitStack() as opened:
        between_nodes = None
        if services.settings.node_url is not None:
            between_nodes = await opened.enter_async_context(new_transport())
        app = create_app(services, local_users=local_users, between_nodes=between_nodes)
        await _serve_app(app, services, listener, stop, announce)


async def _serve_app(
    app: FastAPI,
    services: Services,
    listener: socket.socket,
    stop: _Stop,
    announce: Callable[[], None],
) -> None:
    metrics = services.metrics
    connections = Connections(
        limits_from_system(), metrics.counting(metrics.connections_dropped_total)
    )
    metrics.watch("http_buffered_bytes", lambda: connections.buffered_bytes)
    server = stop.server = _Server(connections.server_config(app, drain_s=_DRAIN_S))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_go_down, services, server, stop)
        tasks.start_soon(_freeze_garbage_collector, services)
        failed = metrics.counting(metrics.background_failures_total)
        if app.state.tokens is not None:
            tasks.start_soon(keep_running, "tokens", app.state.tokens.watch, failed)
        accounts = services.accounts if services.settings.users == "on" else None
        if accounts is not None:
            tasks.start_soon(keep_running, "users", accounts.watch, failed)
        if services.settings.schedules == "on":
            serves = served_users(services.settings, app.state.tokens, accounts)
            run_schedules = partial(_run_schedules, services, serves, accounts)
            tasks.start_soon(keep_running, "schedules", run_schedules, failed)
        announce()
        await server.serve([listener])
        tasks.cancel_scope.cancel()


async def _run_schedules(services: Services, serves: ServesUser, accounts: Accounts | None) -> None:
    """Run what is due, first what was missed, once it is known whose schedules run."""
    if accounts is not None:
        await accounts.looked.wait()
    await services.chat.schedules.runner.run(serves)


async def _freeze_garbage_collector(services: Services) -> None:
    """Exclude objects that live as long as the server from garbage collection.

    A full collection visits the 180 000 objects of all modules, and all streams wait meanwhile.
    """
    gc.freeze()
    if services.memory is not None and services.memory.vectors is not None:
        await services.memory.vectors.wait_settled()  # imports its modules when it opens
        gc.freeze()


class _Server(uvicorn.Server):
    """Uvicorn without signal handlers, so that turns end before connections."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen with a longer queue than the number of connections accepted at once."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_WAITING_CONNECTIONS)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `_handle_signals`."""
        yield


async def _go_down(services: Services, server: uvicorn.Server, stop: _Stop) -> None:
    await stop.asked.wait()
    await services.end_turns()
    # the SDK would log the end of each agent as a fatal error
    logging.getLogger("claude_agent_sdk").setLevel(logging.CRITICAL)
    server.should_exit = True


async def _cut_short(services: Services, stop: _Stop) -> None:
    await stop.at_once.wait()
    await services.cut_short()
    if stop.server is not None:
        stop.server.should_exit = True
        await anyio.sleep(_LAST_WORDS_S)
        stop.server.force_exit = True
