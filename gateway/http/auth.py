"""The user of a request, found before anything of the request is read.

The paths that need no user are listed here; every other path needs one.
"""

import ipaddress
import math
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Final

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import GatewayError, StartError, Unauthorized
from gateway.http.hosts import is_loopback
from gateway.http.identity import IdentityProxies, identity_proxies
from gateway.http.tokens import TokenFile
from gateway.ids import LOCAL_USER, UserId
from gateway.rate_limit import RateLimit
from gateway.settings import Settings
from gateway.version import COMMAND

_OPEN_PATHS = frozenset({"/", "/healthz"})
_OPEN_FOLDER = "/static/"
_SCHEME = "bearer"
_KEY_HEADER = "x-api-key"
"""Where clients of other services put their key."""

_BURST: Final = 10
_EVERY_S: Final = 6.0
_MAX_ADDRESSES: Final = 4096
_NETWORK_BITS: Final = 64
"""Of an IPv6 address; a client that has one address of such a network has all."""


class TooManyAttempts(GatewayError, code="too_many_attempts", status=HTTPStatus.TOO_MANY_REQUESTS):
    """Too many unknown tokens came from one address."""


def check_exposure(settings: Settings) -> TokenFile | None:
    """Return the configured tokens; None without them. Blocking.

    Without tokens and proxies that name users every client, on loopback, is the local user. Raise
    `StartError` if other machines can reach the server and neither is configured, the tokens cannot
    be read, or what is said of proxies is not whole.
    """
    proxies = identity_proxies(settings)
    if settings.tokens_file is not None:
        return TokenFile(settings.tokens_file)
    if proxies is None and not is_loopback(settings.host):
        raise StartError(
            f"CANDOR_HOST={settings.host} can be reached from other machines: set"
            f" CANDOR_TOKENS_FILE to a file made with `{COMMAND} token NAME`,"
            " or listen on 127.0.0.1."
        )
    return None


def served_users(settings: Settings, tokens: TokenFile | None) -> Callable[[UserId], bool]:
    """Return what tells whether a user may be served: one who has a token, one whom a proxy may
    name, or without both the local user.

    Only the proxy knows whom it no longer signs in.
    """
    if identity_proxies(settings) is not None:
        return lambda user_id: user_id != LOCAL_USER
    return (lambda user_id: user_id == LOCAL_USER) if tokens is None else tokens.has_user


class TokenGuard:
    """Puts the user's id into the request's state; refuses requests without a known token.

    A user whom a listed proxy names needs none. Without tokens and proxies everybody is the local
    user.

    Unknown tokens are rate-limited by address. A known token always passes: behind a proxy all
    users have one address, and a token of 256 bits cannot be guessed.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: TokenFile | None,
        proxies: IdentityProxies | None = None,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._proxies = proxies
        self._unknown: RateLimit[str] = RateLimit(
            burst=_BURST, every_s=_EVERY_S, max_keys=_MAX_ADDRESSES
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request with its user."""
        path = scope["path"] if scope["type"] == "http" else "/"
        if path not in _OPEN_PATHS and not path.startswith(_OPEN_FOLDER):
            user_id, wait_revoked = self._identify(scope)
            scope["state"].update(user_id=user_id, wait_revoked=wait_revoked)
        await self._app(scope, receive, send)

    def _identify(self, scope: Scope) -> tuple[UserId, Callable[[], Awaitable[None]]]:
        """Return the user, and what waits until it is no longer theirs to ask."""
        named = self._proxies.user_of(scope) if self._proxies is not None else None
        if named is not None:
            return named, anyio.sleep_forever
        if self._tokens is not None:
            token = _token_of(scope)
            user_id = self._user(self._tokens, token, _network(scope))
            return user_id, partial(self._tokens.wait_revoked, token)
        if self._proxies is not None:
            raise Unauthorized("Ask through the proxy in front of this server; it signs you in.")
        return LOCAL_USER, anyio.sleep_forever

    def _user(self, tokens: TokenFile, token: str, network: str) -> UserId:
        user_id = tokens.user_of(token)
        if user_id is not None:
            return user_id
        if token and not self._unknown.take(network):
            raise TooManyAttempts(
                "Too many unknown tokens came from this address.",
                retry_after_s=math.ceil(self._unknown.wait_s(network)),
            )
        raise Unauthorized("This server needs a token: send `Authorization: Bearer …`.")


def _token_of(scope: Scope) -> str:
    """Return the request's token; empty if it has none, or several."""
    headers = Headers(scope=scope)
    given, keys = headers.getlist("authorization"), headers.getlist(_KEY_HEADER)
    if not given and len(keys) == 1:
        return keys[0].strip()
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == _SCHEME else ""


def _network(scope: Scope) -> str:
    host = str((scope.get("client") or ("",))[0])
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    return str(ipaddress.ip_network((int(address), _NETWORK_BITS), strict=False))
