"""The outermost layers: a name for each request, headers that protect pages, errors in one shape."""

import logging
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.context import HttpMetrics
from gateway.http.exception_handlers import error_response, to_gateway_error
from gateway.observability.logging import bind_turn

_log = logging.getLogger(__name__)

PROTECTION = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""On every response, whatever it is: a page, an error, a stream."""


class ResponseHeaders:
    """Names each request and says so; adds the headers that every response has; counts answers.

    What says nothing of caching is not stored by anybody.
    """

    def __init__(
        self, app: ASGIApp, *, metrics: HttpMetrics, new_request_id: Callable[[], str]
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._new_request_id = new_request_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the headers added."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self._new_request_id()
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                headers.update(PROTECTION)
                headers.setdefault("Cache-Control", "no-store")
                self._metrics.count_http_request(
                    _template(scope), scope["method"], message["status"]
                )
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _template(scope: Scope) -> str:
    """Give the path of the route that answers, its parameters left open."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else "none"


class ErrorMiddleware:
    """Turns whatever is raised below into the one error shape.

    After the response has begun nothing can be said any more: the connection is cut instead.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, whatever happens below."""
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
            with bind_turn(request_id=request_id):
                await self._app(scope, receive, watched)
        except ClientDisconnect:
            _log.debug("client_left", extra={"request_id": request_id})
        except Exception as exc:  # noqa: BLE001  the edge: logged by `to_gateway_error`, told in the one shape
            fault = to_gateway_error(exc, request_id)
            if not begun:
                await error_response(fault, request_id)(scope, receive, send)
