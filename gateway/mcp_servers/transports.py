"""The two ways to an MCP server: a process's pipes, and HTTP. Both bound what a server can send.

The process is started by its guardian, in its box; see `plan`. The pipes are the gateway's own
instead of the library's, which reads a line of any length and keeps no standard error.
"""

import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import anyio
import httpx2
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from gateway.engine.processes import MARK, kill_client_blocking
from gateway.mcp_servers.messages import MAX_MESSAGE_BYTES, is_readable
from gateway.mcp_servers.plan import ServerPlan
from policies.secrets import mask_secrets

_log = logging.getLogger(__name__)

_CLOSE_S: Final = 1.0
"""How long a server gets to end by itself when its standard input is closed."""
_KILL_S: Final = 2.0
_MAX_STDERR_BYTES: Final = 4096
_STDERR_LINES: Final = 5
"""The last lines that are logged when the server ends."""
_EVENT_ENDS: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")
_HTTP_TIMEOUT: Final = httpx2.Timeout(30, read=300)

_Messages = MemoryObjectSendStream[SessionMessage | Exception]
_OnLost = Callable[[], None]
"""Called when the server can send nothing any more."""


def transport_of(plan: ServerPlan, on_lost: _OnLost) -> Transport:
    """Return the transport to a server; it is opened once."""
    return _over_pipes(plan, on_lost) if plan.command else _over_http(plan)


@asynccontextmanager
async def _over_pipes(plan: ServerPlan, on_lost: _OnLost) -> AsyncIterator[Any]:
    process = await anyio.open_process(
        list(plan.command),
        env=dict(plan.environment),
        cwd=plan.directory,
        start_new_session=True,  # Ctrl-C at the gateway's terminal must not reach it
    )
    assert process.stdout is not None
    assert process.stderr is not None
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
    last_words: deque[str] = deque(maxlen=_STDERR_LINES)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, process.stdout, received, on_lost)
        tasks.start_soon(_send, process, sent, on_lost)
        tasks.start_soon(_listen, process.stderr, last_words)
        try:
            async with incoming, outgoing:
                yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process, plan.environment[MARK])
            tasks.cancel_scope.cancel()
    told = mask_secrets("\n".join(last_words), known=tuple(plan.secrets))
    _log.info("mcp_server_ended", extra={"server": plan.name, "said": told})


async def _receive(stream: ByteReceiveStream, received: _Messages, on_lost: _OnLost) -> None:
    """Pass each line that is a message on; drop all that follows one that is not readable."""
    lines = BufferedByteReceiveStream(stream)
    with contextlib.suppress(
        anyio.EndOfStream,
        anyio.IncompleteRead,
        anyio.DelimiterNotFound,
        anyio.BrokenResourceError,
        anyio.ClosedResourceError,
    ):
        async with received:
            while True:
                line = await lines.receive_until(b"\n", MAX_MESSAGE_BYTES)
                if not is_readable(line):
                    break
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:  # what it prints besides
                    continue
                await received.send(SessionMessage(message))
    on_lost()
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for _ in stream:  # until its end is seen, the process counts as running
            pass


async def _send(
    process: Process, sent: MemoryObjectReceiveStream[SessionMessage], on_lost: _OnLost
) -> None:
    assert process.stdin is not None
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async with sent:
            async for item in sent:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode() + b"\n")
            return
    on_lost()


async def _listen(stream: ByteReceiveStream, last_words: deque[str]) -> None:
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for chunk in stream:
            words = chunk[-_MAX_STDERR_BYTES:].decode("utf-8", "replace")
            last_words.extend(line[:500] for line in words.splitlines() if line.strip())


async def _end(process: Process, mark: str) -> None:
    """End a server: its input is closed, then its guardian ends it, then it is killed."""
    assert process.stdin is not None
    with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    for limit_s, ask in ((_CLOSE_S, process.terminate), (_KILL_S, process.kill)):
        with anyio.move_on_after(limit_s):
            await process.wait()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                ask()
    try:
        await anyio.to_thread.run_sync(partial(kill_client_blocking, mark))
    except OSError:
        _log.exception("mcp_server_not_ended")
    with anyio.move_on_after(_KILL_S):
        await process.aclose()


@asynccontextmanager
async def _over_http(
    plan: ServerPlan,
) -> AsyncIterator[Any]:
    headers = {"Accept-Encoding": "identity", **plan.headers}
    transport = await anyio.to_thread.run_sync(_BoundedHttp)  # it reads certificates
    client = httpx2.AsyncClient(headers=headers, timeout=_HTTP_TIMEOUT, transport=transport)
    async with client, streamable_http_client(str(plan.config.url), http_client=client) as streams:
        yield streams


class _BoundedHttp(httpx2.AsyncHTTPTransport):
    """HTTP whose answers are bounded; the library bounds each event of a stream alone."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError("The answer is compressed.", request=request)
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, _EVENT_ENDS if is_stream else ())
        return response


class _Bounded(httpx2.AsyncByteStream):
    """Passes on what is readable: the whole answer, or what it has up to one of `ends`."""

    def __init__(self, stream: httpx2.AsyncByteStream, ends: Sequence[bytes]) -> None:
        self._stream = stream
        self._ends = ends

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held = bytearray()
        longest = max(map(len, self._ends), default=0)
        async for chunk in self._stream:
            unread = max(0, len(held) - longest)  # what was held before has no whole mark
            held += chunk
            places = ((held.rfind(mark, unread), mark) for mark in self._ends)
            end = max((place + len(mark) for place, mark in places if place >= 0), default=0)
            if end or len(held) > MAX_MESSAGE_BYTES:
                yield _checked(held[:end] or held)
                del held[:end]
        yield _checked(held)

    async def aclose(self) -> None:
        await self._stream.aclose()


def _checked(message: bytearray) -> bytes:
    if not is_readable(message):
        raise httpx2.ReadError("The answer is too long or has too many parts.")
    return bytes(message)
