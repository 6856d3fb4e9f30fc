"""Requests about a conversation that another server holds are passed on to that server, and so are
messages that a full or closing server does not take.

    client → this server → HeldElsewhere → the server that holds it → its answer, as it comes

A request is found to be another server's before anything has happened here. Where that server does
not answer and holds the conversation no longer, the request is served here after all, with a key
under which a message that it had stored is not taken twice. Where it cannot be served here, either,
that key tells whether the message was stored, and is withdrawn if it was not: the message is
answered from the database, or is refused and will not run.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Final
from urllib.parse import quote

import anyio
import httpx
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.conversations.leases import Node
from gateway.errors import Overloaded
from gateway.turns.ownership import ClosedHere, FullHere, HeldElsewhere, Ownership
from gateway.turns.requests import RETRY_AFTER_S
from memory.errors import StoreUnavailable

_log = logging.getLogger(__name__)

SECRET, TO, CLIENT, REQUEST, KEY = (
    "x-candor-node",
    "x-candor-to",
    "x-candor-client",
    "x-candor-request",
    "x-candor-key",
)
"""Headers between servers: the secret and the start of the one that is asked, the client's address,
the request's id, and the key of a message without one."""
_OWN: Final = frozenset({SECRET, TO, CLIENT, REQUEST, KEY})
_OF_ONE_HOP: Final = frozenset(
    {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect"}
)
_CONNECT_S: Final = 2.0
_LONGER_S: Final = 2.0
"""How much longer than its lease lasts a silent server is waited for."""
_LOOK_S: Final = 0.25
"""How often it is asked whether a silent server still holds the conversation."""
_LOOK_AGAIN_S: Final = 2.0
"""How often it is asked whether a server that answers still lives; more than two of its beats."""
_STREAM: Final = "text/event-stream"
_SILENT: Final = (
    "The server that runs this conversation does not answer. Whether it took the request shows in"
    " the conversation; try again in a moment."
)


_TIMEOUT: Final = httpx.Timeout(None, connect=_CONNECT_S).as_dict()


def new_transport() -> httpx.AsyncHTTPTransport:
    """Return the connections to other servers; close it.

    Without a client around it, which would keep cookies of one user's answer for the requests of
    others, and add headers of its own.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    return httpx.AsyncHTTPTransport(limits=limits, trust_env=False)


class NodeGuard:
    """Believes what another server says of a request that it passes on; from everybody else the
    headers between servers are removed. A request that was meant for a third server, whose URL
    leads here, is passed on no further: it would go round without end.
    """

    def __init__(self, app: ASGIApp, *, node: Node) -> None:
        self._app = app
        self._secret = (node.secret or "").encode()
        self._incarnation = node.incarnation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the request."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if any(name in headers for name in _OWN):
                scope = self._read(dict(scope), headers)
        await self._app(scope, receive, send)

    def _read(self, scope: Scope, headers: Headers) -> Scope:
        scope["headers"] = [
            (name, value) for name, value in scope["headers"] if name.decode("latin-1") not in _OWN
        ]
        given = headers.get(SECRET, "").encode()
        if self._secret and compare_digest(given, self._secret):
            scope["client"] = (headers.get(CLIENT, ""), 0)
            scope["state"] = {
                **scope.get("state", {}),
                "request_id": headers.get(REQUEST, ""),
                "forward_key": headers.get(KEY, ""),
                "is_forwarded": True,
                "is_from_node": True,
            }
        elif headers.get(TO, self._incarnation) != self._incarnation:
            scope["state"] = {**scope.get("state", {}), "is_forwarded": True}
        return scope


class Forwarder:
    """Passes a request on to the server that holds its conversation. A request that was passed on
    already is refused for a moment instead.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        ownership: Ownership,
        transport: httpx.AsyncBaseTransport,
        wait_stopped: Callable[[], Awaitable[None]],
    ) -> None:
        """`wait_stopped` returns when this server's turns have ended because it shuts down."""
        self._app = app
        self._ownership = ownership
        self._transport = transport
        self._wait_stopped = wait_stopped

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request here or there."""
        if scope["type"] != "http" or scope["state"].get("is_forwarded"):
            await self._app(scope, receive, send)
            return
        body = _Body(receive)
        state = scope["state"]
        while True:
            try:
                await self._app(scope, body.again(), send)
            except HeldElsewhere as exc:
                if exc.node.url is None:
                    raise
                if state.get("is_in_doubt"):
                    raise Overloaded(_SILENT, retry_after_s=RETRY_AFTER_S) from exc
                answers = partial(self._pass_on, exc)
            except (FullHere, ClosedHere):
                node = await self._ownership.another()
                if node is None or state.get("is_in_doubt"):
                    raise
                answers = partial(self._pass_to_others, node)
            else:
                return
            state["forward_key"] = state.get("forward_key") or f"forward:{token_urlsafe()}"
            if await answers(scope, body, send):
                return

    async def _pass_to_others(
        self, node: Node | None, scope: Scope, body: "_Body", send: Send
    ) -> bool:
        """Offer a message to one server after another; mark it as in doubt, and return False, if
        none answers.
        """
        asked: set[str] = set()
        while node is not None:
            answer = await self._relay(HeldElsewhere(None, node), scope, body, send)
            if answer.has_begun:
                return True
            asked.add(node.incarnation)
            node = await self._ownership.another(asked)
        scope["state"]["is_in_doubt"] = True
        return False

    async def _pass_on(self, held: HeldElsewhere, scope: Scope, body: "_Body", send: Send) -> bool:
        """Pass the request to the other server; return False if it holds the conversation no
        longer, or does not answer for longer than its lease lasts.
        """
        answer = await self._relay(held, scope, body, send)
        if not answer.has_begun:
            await self._wait_released(held, scope)
        return answer.has_begun

    async def _relay(
        self, held: HeldElsewhere, scope: Scope, body: "_Body", send: Send
    ) -> "_Answer":
        """Pass on a request, and the answer until it ends or nothing more is to be expected.

        Raise `ClientDisconnect` if the client has gone before it began.
        """
        answer = _Answer(self._transport, _request(held.node, scope, body), send)
        async with anyio.create_task_group() as tasks:
            for wait in (partial(self._lost, held, answer), body.wait_left, self._wait_stopped):
                tasks.start_soon(_cancel_after, wait, tasks.cancel_scope)
            await answer.relay()
            tasks.cancel_scope.cancel()
        if answer.failure is not None:
            raise answer.failure
        if answer.has_begun:
            await answer.end()
        elif body.is_left:
            raise ClientDisconnect
        return answer

    async def _lost(self, held: HeldElsewhere, answer: "_Answer") -> None:
        """Return when nothing more is to be expected of a server."""
        while True:
            await anyio.sleep(_LOOK_S)
            if answer.has_begun:
                break
            if not await self._may_answer(held):
                return
        while True:
            await anyio.sleep(_LOOK_AGAIN_S)
            if not self._ownership.is_living(held.node):
                return

    async def _may_answer(self, held: HeldElsewhere) -> bool:
        """Return whether a silent server may still answer: a lease goes before the answer to a
        deletion does.
        """
        if await self._holds(held):
            return True
        where = held.conversation_id
        if where is None or self._ownership.holds(where):
            return False
        try:
            is_free = await self._ownership.elsewhere(where) is None
            return is_free and await self._ownership.lives(held.node)
        except StoreUnavailable:
            return True

    async def _holds(self, held: HeldElsewhere) -> bool:
        if held.conversation_id is None:
            return self._ownership.is_living(held.node)
        try:
            holder = await self._ownership.elsewhere(held.conversation_id)
        except StoreUnavailable:
            return True
        return holder is not None and holder.incarnation == held.node.incarnation

    async def _wait_released(self, held: HeldElsewhere, scope: Scope) -> None:
        """Wait until a server that does not answer holds the conversation no longer, or mark the
        request as in doubt, at once if this server has ended its turns.
        """
        _log.warning("node_does_not_answer", extra={"node": held.node.id})
        scope["state"]["is_in_doubt"] = True
        with anyio.move_on_after(self._ownership.expires_s + _LONGER_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_after, self._wait_stopped, tasks.cancel_scope)
                while await self._holds(held):  # noqa: ASYNC110  only the database knows
                    await anyio.sleep(_LOOK_S)
                scope["state"]["is_in_doubt"] = False
                tasks.cancel_scope.cancel()


async def _cancel_after(wait: Callable[[], Awaitable[None]], scope: anyio.CancelScope) -> None:
    await wait()
    scope.cancel()


def _request(node: Node, scope: Scope, body: "_Body") -> httpx.Request:
    url = httpx.URL(node.url or "")
    path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    given = [(name, value) for name, value in scope["headers"] if name not in _OF_ONE_HOP]
    names = {name for name, _ in scope["headers"]}
    state = scope["state"]
    told = {
        SECRET: node.secret or "",
        TO: node.incarnation,
        CLIENT: str((scope.get("client") or ("",))[0]),
        REQUEST: state["request_id"],
        KEY: state["forward_key"],
    }
    return httpx.Request(
        scope["method"],
        url,
        headers=[*given, *((name.encode(), value.encode()) for name, value in told.items())],
        content=body.chunks() if names & {b"content-length", b"transfer-encoding"} else None,
        # as it came: a URL refuses some that servers take
        extensions={
            "target": url.raw_path.rstrip(b"/") + path + query,
            "timeout": _TIMEOUT,
        },
    )


class _Body:
    """The body of a request, kept as far as it has been read, so that it can be read again."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read: list[Message] = []
        self._is_whole = anyio.Event()
        self.is_left = False
        """True if the client has gone."""

    def again(self) -> Receive:
        """Return what receives the body from its beginning."""
        at = 0

        async def receive() -> Message:
            nonlocal at
            if at == len(self._read) and not self._is_whole.is_set():
                await self._next()
            if at < len(self._read):
                at += 1
                return self._read[at - 1]
            return await self._receive()

        return receive

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body from its beginning. Raise `ClientDisconnect` if the client goes."""
        receive, more = self.again(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            more = message.get("more_body", False)
            yield message.get("body", b"")

    async def wait_left(self) -> None:
        """Return when the client has gone after it has sent the body."""
        await self._is_whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.is_left = True

    async def _next(self) -> None:
        message = await self._receive()
        self._read.append(message)
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._is_whole.set()


class _Answer:
    """The answer of another server, passed on as it comes."""

    def __init__(
        self, transport: httpx.AsyncBaseTransport, request: httpx.Request, send: Send
    ) -> None:
        self._transport = transport
        self._request = request
        self._send = send
        self._is_stream = False
        self._is_whole = False
        self.has_begun = False
        self.failure: Exception | None = None

    async def relay(self) -> None:
        """Pass it on; returns without a word if the server cannot be reached, or breaks off.

        Another failure, such as of the request's body, is kept as `failure`.
        """
        try:
            await self._relay()
        except httpx.HTTPError:
            pass
        except Exception as exc:  # noqa: BLE001  raised where no other task runs
            self.failure = exc

    async def _relay(self) -> None:
        response = await self._transport.handle_async_request(self._request)
        try:
            await self._begin(response)
            async for chunk in response.aiter_raw():
                await self._send(_piece(chunk, more=True))
            self._is_whole = True
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _begin(self, response: httpx.Response) -> None:
        self.has_begun = True
        self._is_stream = response.headers.get("content-type", "").startswith(_STREAM)
        headers = [
            (name.lower(), value)
            for name, value in response.headers.raw
            if name.lower() not in _OF_ONE_HOP | {b"date"}
        ]
        start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
        await self._send(start)

    async def end(self) -> None:
        """End an answer that has begun. A stream that broke off ends as if it were whole, so that
        its reader follows it elsewhere; the connection of anything else is cut.
        """
        if self._is_whole or self._is_stream:
            await self._send(_piece(b"", more=False))


def _piece(chunk: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": chunk, "more_body": more}
