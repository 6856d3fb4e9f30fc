"""The session with one MCP server: opened, watched, and opened again when it is lost.

One task owns the session; calls of all conversations go through it, each with a deadline. Nothing
that a server sends is evaluated here but as values: its schemas are not used to check anything.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client import Transport
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    ToolListChangedNotification,
)

from gateway.engine.events import MAX_WHOLE_CHARS
from gateway.engine.own_tools import OwnAnswer
from gateway.jsonsafe import clean_text, json_text
from gateway.mcp_servers.definitions import MAX_TOOLS, ToolDefinition
from gateway.mcp_servers.plan import ServerPlan
from gateway.version import VERSION
from policies.secrets.known import mask_known

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_RAN_WELL_S: Final = 30.0
_LOOK_AGAIN_S: Final = 60.0
"""How often the list of tools is read while nothing happens; it is a sign of life, too."""
_LIST_S: Final = 5.0
_LIST_PAUSE_S: Final = 1.0
_WAIT_S: Final = 10.0
"""How long a call waits for a server that is being started."""
_MAX_PAGES: Final = 20
_MAX_FAULT_CHARS: Final = 500
_OTHER_KINDS: Final = {"image": "a picture", "audio": "a sound", "resource_link": "a link"}

State = Literal["starting", "running", "down"]
OpenTransport = Callable[[ServerPlan, Callable[[], None]], Transport]
OnListed = Callable[[Sequence[ToolDefinition]], None]


class McpConnection:
    """One server. `run` must be running."""

    def __init__(
        self, plan: ServerPlan, open_transport: OpenTransport, on_listed: OnListed
    ) -> None:
        """Initialise; `on_listed` is called with each list of the server's tools."""
        self.state: State = "starting"
        self.fault: str | None = None
        """Why it does not run, as a sentence for everybody."""
        self.tried = anyio.Event()
        """Set when the first attempt has ended in one way or the other."""
        self._plan = plan
        self._open_transport = open_transport
        self._on_listed = on_listed
        self._client: Client | None = None
        self._lost = anyio.Event()
        self._news = anyio.Event()
        self._changed = anyio.Event()
        self._wanted = anyio.Event()
        self._callers = 0
        """Calls that wait for the session."""
        self._in_flight = 0
        self._is_look_due = False
        """True if the list of tools was to be read while the server had a call."""

    async def run(self) -> None:
        """Keep the session open until cancelled."""
        pause_s = _FIRST_PAUSE_S
        while True:
            began = anyio.current_time()
            fault = "It has ended; it is started again."
            try:
                await self._serve()
            except Exception as exc:  # noqa: BLE001  the gateway outlives whatever a server does
                fault = self._describe(exc)
                _log.warning("mcp_server_failed", extra={"server": self._plan.name, "fault": fault})
            self._set_state("down", fault)
            ran_s = anyio.current_time() - began
            pause_s = _FIRST_PAUSE_S if ran_s > _RAN_WELL_S else min(pause_s * 2, _LONGEST_PAUSE_S)
            await self._pause(pause_s)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Call a tool; a failure is an answer, too."""
        name, call_s = self._plan.name, self._plan.config.call_s
        client = await self._ready_client()
        if client is None:
            return _failed(f"The MCP server {name} does not run. It is started again meanwhile.")
        request = CallToolRequest(
            params=CallToolRequestParams(name=tool, arguments=dict(arguments))
        )
        is_answered = False
        self._in_flight += 1
        try:
            with anyio.fail_after(call_s):
                # not `call_tool`, which evaluates the server's own schema on its answer
                result = await client.session.send_request(request, CallToolResult)
            is_answered = True
            text = await anyio.to_thread.run_sync(self._safe, _text_of(result))
            return OwnAnswer(text, is_error=bool(result.is_error))
        except TimeoutError:
            return _failed(f"The MCP server {name} did not answer in {call_s:g} s.")
        except MCPError as exc:
            if exc.error.code == CONNECTION_CLOSED:
                return _failed(
                    f"The MCP server {name} ended; what it did of its work is not known."
                )
            said = self._safe(exc.error.message)[:_MAX_FAULT_CHARS]
            return _failed(f"The MCP server {name} refused the call: {said}")
        except Exception:  # noqa: BLE001  closed streams, an answer that is none, a lost connection
            _log.warning("mcp_call_failed", extra={"server": name, "tool": tool}, exc_info=True)
            return _failed(f"The MCP server {name} gave no answer that can be used.")
        finally:  # a call that was given up may still keep the server busy
            self._in_flight -= 1
            if not self._in_flight and (self._is_look_due or not is_answered):
                self._client = None if self._client is client else self._client
                self._news.set()

    async def _serve(self) -> None:
        """Open the session and watch it until it is lost. Raise any exception."""
        self._lost, self._news = anyio.Event(), anyio.Event()
        name, start_s = self._plan.name, self._plan.config.start_s
        self._set_state("starting", self.fault)
        with anyio.CancelScope(deadline=anyio.current_time() + start_s) as scope:
            async with Client(
                self._open_transport(self._plan, self._lose),
                client_info=Implementation(name="candor", version=VERSION),
                message_handler=self._heed,
                cache=None,
            ) as client:
                await self._list(client)
                scope.deadline = math.inf
                self._client = client
                self._set_state("running", None)
                _log.info("mcp_server_runs", extra={"server": name, "box": self._plan.box})
                try:
                    await self._watch(client)
                finally:
                    self._client = None
        if scope.cancelled_caught:
            raise TimeoutError

    async def _watch(self, client: Client) -> None:
        """List the tools again at each news and each minute, until the session is lost.

        A server may take one call at a time, so it is not asked while it has one. Calls wait for
        the list: it shows whether the server still answers.
        """
        while True:
            with anyio.move_on_after(_LOOK_AGAIN_S):
                await self._news.wait()
            if self._lost.is_set():
                return
            self._news = anyio.Event()
            self._is_look_due = bool(self._in_flight)
            if self._is_look_due:
                continue
            self._client = None
            with anyio.fail_after(_LIST_S):
                await self._list(client)
            self._client = client
            self._set_state("running", None)
            with anyio.move_on_after(_LIST_PAUSE_S):  # it may have news all the time
                await self._lost.wait()

    async def _list(self, client: Client) -> None:
        found: list[ToolDefinition] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            found += [
                ToolDefinition.read(
                    tool.name, clean_text(tool.description or ""), tool.input_schema
                )
                for tool in page.tools
            ]
            cursor = page.next_cursor
            if cursor is None or len(found) > MAX_TOOLS:
                break
        self._on_listed(found[:MAX_TOOLS])

    async def _heed(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._news.set()

    def _lose(self) -> None:
        self._lost.set()
        self._news.set()

    async def _ready_client(self) -> Client | None:
        """Return the session; wait for one within a bound, and have it opened soon."""
        self._callers += 1
        self._wanted.set()
        try:
            with anyio.move_on_after(_WAIT_S):
                while self._client is None:
                    await self._changed.wait()
        finally:
            self._callers -= 1
        return self._client

    async def _pause(self, pause_s: float) -> None:
        """Wait before the next attempt; less if a call wants the server."""
        await anyio.sleep(_FIRST_PAUSE_S)
        if self._callers:
            return
        self._wanted = anyio.Event()
        with anyio.move_on_after(pause_s - _FIRST_PAUSE_S):
            await self._wanted.wait()

    def _set_state(self, state: State, fault: str | None) -> None:
        self.state, self.fault = state, fault
        if state != "starting":
            self.tried.set()
        self._changed.set()
        self._changed = anyio.Event()

    def _safe(self, text: str) -> str:
        """Return a text from outside without the server's own secrets."""
        return mask_known(clean_text(text), tuple(self._plan.secrets)).text

    def _describe(self, exc: BaseException) -> str:
        """Return a failure as a sentence that names no path and no address."""
        while isinstance(exc, BaseExceptionGroup):
            exc = exc.exceptions[0]
        _log.info("mcp_server_fault", extra={"detail": self._safe(repr(exc))[:_MAX_FAULT_CHARS]})
        if isinstance(exc, TimeoutError):
            return "It does not answer in time; it is tried again."
        if isinstance(exc, OSError | httpx2.TransportError):
            return "It cannot be started or reached; it is tried again."
        return "It ended or does not speak MCP; it is tried again."


def _failed(text: str) -> OwnAnswer:
    return OwnAnswer(text, is_error=True)


def _text_of(result: CallToolResult) -> str:
    """Return an answer as text; what is none is named."""
    parts = [_block_text(block.model_dump(by_alias=True)) for block in result.content]
    text = "\n".join(part for part in parts if part)
    if not text and result.structured_content is not None:
        text = json_text(result.structured_content)
    return text[:MAX_WHOLE_CHARS] or "The tool returned nothing."


def _block_text(block: Mapping[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str() as text}:
            return text
        case {"type": "resource", "resource": {"text": str() as text}}:
            return text
        case {"type": "resource_link", "uri": uri}:
            return f"[a link to {uri}]"
        case {"type": str() as kind}:
            return f"[{_OTHER_KINDS.get(kind, 'something')} that is not text; it is left out]"
        case _:
            return ""
