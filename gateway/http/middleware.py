"""The outermost middleware: request ids, protective headers, and errors in one shape."""

import logging
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from gateway.http.exception_handlers import (
    ErrorWriter,
    error_response,
    to_gateway_error,
)
from gateway.ids import new_request_id
from gateway.observability.metrics import Metrics
from gateway.observability.tracing import INCOMING, Incoming

_log = logging.getLogger(__name__)

_HEADERS: Mapping[str, Mapping[str, str]] = tomllib.loads(
    Path(__file__).with_name("headers.toml").read_text(encoding="utf-8")
)
PROTECTION, DIAGRAMS = _HEADERS["every_response"], _HEADERS["diagrams"]
"""The headers of every response, and of the frame that draws diagrams."""

_TRACE_HEADERS = ("traceparent", "tracestate")
_VENDOR = "/anthropic/"
"""Paths whose clients look for the request id under the vendor's own name."""


class ResponseHeaders:
    """Adds a request id and the protective headers, and counts responses.

    A response without `Cache-Control` gets `no-store`.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with the headers added."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # a server that passes a request on has given it one
        request_id = scope.setdefault("state", {}).setdefault("request_id", new_request_id())

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                if scope["path"].startswith(_VENDOR):
                    headers["Request-ID"] = request_id
                for name, value in PROTECTION.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                template = getattr(scope.get("route"), "path", "none")
                self._metrics.count_http_request(template, scope["method"], message["status"])
            await send(message)

        await self._app(scope, receive, send_with_headers)


class IncomingTrace:
    """Tells the turn that a request begins of its caller's trace. Added only if traces are made."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]
        }
        caller = {name: headers[name] for name in _TRACE_HEADERS if name in headers}
        token = INCOMING.set(Incoming(caller=caller, came_s=anyio.current_time()))
        try:
            await self._app(scope, receive, send)
        finally:
            INCOMING.reset(token)


class ErrorMiddleware:
    """Turns every exception into the error shape that `writer_of` gives for its path.

    After the response has begun the connection is cut instead.
    """

    def __init__(self, app: ASGIApp, *, writer_of: Callable[[str], ErrorWriter]) -> None:
        self._app = app
        self._writer_of = writer_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond, with an error if one is raised."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id: str = scope["state"]["request_id"]
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            with bound_contextvars(request_id=request_id):
                await self._app(scope, receive, watched)
        except ClientDisconnect:
            _log.debug("client_left", extra={"request_id": request_id})
        except Exception as exc:  # noqa: BLE001  the outermost handler; logs what is unexpected
            error = to_gateway_error(exc, request_id)
            if not begun:
                write = self._writer_of(scope["path"])
                await error_response(error, request_id, write=write)(scope, receive, send)
