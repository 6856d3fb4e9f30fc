"""The FastAPI application: guards from the outside in, then the routes.

    headers → errors → user of this machine → host and page → size of the body → user → route

Whatever a guard or a route raises leaves as the one error shape, with the headers. What the routes
call is opened and closed outside; the app owns nothing.
"""

from http import HTTPStatus
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from gateway.http.auth import TokenGuard, check_exposure
from gateway.http.bodies import BodyLimit
from gateway.http.context import AppState, HttpLimits, HttpServices
from gateway.http.exception_handlers import MethodNotAllowed, error_response, to_gateway_error
from gateway.http.hosts import HostGuard, own_hosts
from gateway.http.middleware import ErrorMiddleware, ResponseHeaders
from gateway.http.openapi import ERRORS
from gateway.http.peers import LocalUsers, PeerGuard
from gateway.http.routes import (
    approvals,
    cases,
    chat,
    conversations,
    events,
    health,
    logs,
    memory,
    page,
)
from gateway.ids import new_request_id
from gateway.version import VERSION

_METHODS = ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE")


WEB_DIR = Path(__file__).resolve().parent.parent / "web"


def create_app(
    services: HttpServices,
    *,
    limits: HttpLimits | None = None,
    web_dir: Path = WEB_DIR,
    local_users: LocalUsers | None = None,
) -> FastAPI:
    """Make the application; reads the tokens file, if there is one. Blocking.

    `local_users` are the users of this machine who are served where no tokens are configured; None:
    whoever can connect.

    Raises:
        StartError: see `check_exposure`.
    """
    settings = services.settings
    tokens = check_exposure(settings)
    app = FastAPI(
        title="Candor",
        version=VERSION,
        openapi_url=None,  # `/openapi.json` is a route of ours, behind the same guards; no pages show it
        redirect_slashes=False,
        responses=ERRORS,
        middleware=[
            Middleware(ResponseHeaders, metrics=services.metrics, new_request_id=new_request_id),
            Middleware(ErrorMiddleware),
            *_peer_guard(None if tokens else local_users),
            Middleware(HostGuard, own=own_hosts(settings.host)),
            Middleware(BodyLimit, max_bytes=settings.max_body_bytes),
            Middleware(TokenGuard, tokens=tokens),
        ],
        exception_handlers={HTTPException: _answer, RequestValidationError: _answer},
    )
    state = AppState(
        services=services,
        limits=limits or HttpLimits(),
        web_dir=web_dir,
    )
    services.metrics.watch("sse_readers", lambda: state.readers.count)
    app.state.gateway = state
    app.state.tokens = tokens
    for section in (chat, conversations, events, approvals, cases, memory, logs, health, page):
        app.include_router(section.router)
    return app


def _peer_guard(users: LocalUsers | None) -> list[Middleware]:
    if users is None:
        return []
    return [Middleware(PeerGuard, hold_blocking=users.hold_blocking)]


async def _answer(request: Request, exc: Exception) -> Response:  # noqa: RUF029  as Starlette wants
    request_id: str = request.state.request_id
    if isinstance(exc, HTTPException) and exc.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        fault = MethodNotAllowed("This route does not take this method.")
        return error_response(fault, request_id, {"Allow": ", ".join(_allowed(request))})
    return error_response(to_gateway_error(exc, request_id), request_id)


def _allowed(request: Request) -> list[str]:
    """List the methods that this path takes; a route by itself knows only its own."""
    return [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]
