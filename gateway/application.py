"""The FastAPI application: middleware from the outside in, then the routes.

    headers → listed pages → errors → local user → host and page → size of the body → token → route

Any exception becomes the one error shape, with the headers. The services are opened and closed
by the caller.
"""

from http import HTTPStatus

import httpx
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from gateway.doors.ag_ui.routes import router as ag_ui
from gateway.doors.anthropic.errors import write_anthropic_error
from gateway.doors.anthropic.routes import router as anthropic
from gateway.doors.mcp.routes import router as mcp
from gateway.doors.openai.conversations import router as openai_conversations
from gateway.doors.openai.files import router as openai_files
from gateway.doors.openai.responses import router as openai_responses
from gateway.doors.openai.routes import router as openai
from gateway.http.auth import TokenGuard, check_exposure
from gateway.http.bodies import BodyLimit
from gateway.http.context import AppState, HttpLimits
from gateway.http.exception_handlers import (
    ErrorWriter,
    MethodNotAllowed,
    error_response,
    to_gateway_error,
    write_error,
)
from gateway.http.forwarding import Forwarder, NodeGuard
from gateway.http.hosts import HostGuard, ListedOrigins, own_hosts
from gateway.http.identity import identity_proxies
from gateway.http.middleware import ErrorMiddleware, IncomingTrace, ResponseHeaders
from gateway.http.oidc import oidc_plan
from gateway.http.openapi import ERRORS
from gateway.http.peers import LocalUsers, PeerGuard
from gateway.http.routes import (
    approvals,
    audit,
    cases,
    chat,
    conversations,
    health,
    logs,
    mcp_servers,
    memory,
    page,
    schedules,
    sign_in,
    skills,
    webhooks,
    work_trees,
    workspace,
)
from gateway.http.sign_in import SignIns
from gateway.http.unread_body import UnreadBody
from gateway.services import Services
from gateway.settings import Settings
from gateway.users.accounts import Accounts
from gateway.version import VERSION

_METHODS = ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE")


def create_app(
    services: Services,
    *,
    limits: HttpLimits | None = None,
    local_users: LocalUsers | None = None,
    between_nodes: httpx.AsyncBaseTransport | None = None,
) -> FastAPI:
    """Return the application. Reads the tokens file, if there is one; blocking.

    `between_nodes` are the connections to the other servers of the database; None: there are none.

    If nobody signs in only `local_users` are served; None: every client is. Raises as
    `check_exposure` does.
    """
    settings = services.settings
    limits = limits or HttpLimits()
    tokens = check_exposure(settings)
    peer_guard = []
    proxies = identity_proxies(settings)
    sign_ins = _sign_ins_of(settings, services.accounts)
    if local_users is not None and not settings.needs_sign_in:
        peer_guard = [Middleware(PeerGuard, serves_blocking=local_users.serves_blocking)]
    first, last = _between_nodes(services, between_nodes)
    own = own_hosts(settings.host, settings.allowed_hosts, settings.allowed_origins)
    app = FastAPI(
        title="Candor",
        version=VERSION,
        openapi_url=None,  # `/openapi.json` is a route behind the same middleware
        redirect_slashes=False,
        responses=ERRORS,
        middleware=[
            *first,
            Middleware(
                UnreadBody,
                max_bytes=limits.discard_bytes,
                deadline_s=limits.discard_deadline_s,
            ),
            Middleware(ResponseHeaders, metrics=services.metrics),
            Middleware(ListedOrigins, origins=own.origins),
            Middleware(ErrorMiddleware, writer_of=_writer_of),
            *([Middleware(IncomingTrace)] if services.makes_traces else []),
            *peer_guard,
            Middleware(HostGuard, own=own),
            Middleware(
                BodyLimit,
                max_bytes=settings.max_body_bytes,
                max_upload_bytes=settings.max_upload_bytes,
            ),
            Middleware(
                TokenGuard,
                tokens=tokens,
                proxies=proxies,
                accounts=services.accounts if settings.users == "on" else None,
                sign_ins=sign_ins,
            ),
            *last,
        ],
        exception_handlers={HTTPException: _answer, RequestValidationError: _answer},
    )
    app.state.gateway = AppState(services=services, limits=limits, sign_ins=sign_ins)
    app.state.tokens = tokens
    work = (
        chat,
        conversations,
        schedules,
        approvals,
        cases,
        memory,
        workspace,
        work_trees,
        skills,
        mcp_servers,
        webhooks,
    )
    for section in (*work, sign_in, audit, logs, health, page):
        app.include_router(section.router)
    for door in (ag_ui, anthropic, openai, openai_responses, openai_conversations, openai_files):
        app.include_router(door)
    app.include_router(mcp)
    return app


def _between_nodes(
    services: Services, transport: httpx.AsyncBaseTransport | None
) -> tuple[list[Middleware], list[Middleware]]:
    """Return the outermost and the innermost middleware of a server that is not alone."""
    if transport is None:
        return [], []
    forwarder = Middleware(
        Forwarder,
        ownership=services.ownership,
        transport=transport,
        wait_stopped=services.chat.intake.wait_shut_down,
    )
    return [Middleware(NodeGuard, node=services.ownership.node)], [forwarder]


def _sign_ins_of(settings: Settings, accounts: Accounts) -> SignIns | None:
    plan = oidc_plan(settings)
    if plan is None:
        return None
    from gateway.http.oidc_provider import AuthlibProvider  # noqa: PLC0415  few servers need it

    return SignIns(
        AuthlibProvider(plan),
        accounts,
        hours=settings.session_hours,
        listed_origins=frozenset(settings.allowed_origins),
        now=accounts.now,
    )


async def _answer(request: Request, exc: Exception) -> Response:  # noqa: RUF029  as Starlette wants
    request_id: str = request.state.request_id
    write = _writer_of(request.url.path)
    if isinstance(exc, HTTPException) and exc.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        error = MethodNotAllowed("This route does not take this method.")
        return error_response(
            error, request_id, {"Allow": ", ".join(_allowed(request))}, write=write
        )
    return error_response(to_gateway_error(exc, request_id), request_id, write=write)


def _writer_of(path: str) -> ErrorWriter:
    return write_anthropic_error if path.startswith(anthropic.prefix) else write_error


def _allowed(request: Request) -> list[str]:
    """Return the methods that this path takes; Starlette's own list is that of one route."""
    return [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in request.app.routes
        )
    ]
