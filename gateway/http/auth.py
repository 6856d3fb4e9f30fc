"""The user of a request, found before anything of the request is read.

The paths that need no user are listed here; every other path needs one.
"""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import SettingsError, Unauthorized
from gateway.http.hosts import is_loopback
from gateway.http.identity import IdentityProxies, identity_proxies
from gateway.http.networks import TooManyAttempts, network_of
from gateway.http.oidc import BEGIN, CALLBACK, oidc_plan
from gateway.http.sign_in import SignIns
from gateway.http.tokens import TokenFile
from gateway.ids import LOCAL_USER, UserId
from gateway.rate_limit import RateLimit
from gateway.settings import Settings
from gateway.users.accounts import Accounts
from gateway.users.model import Role
from gateway.version import COMMAND

_OPEN_PATHS = frozenset({"/", "/healthz", "/healthz/ready", BEGIN, CALLBACK})
_OPEN_FOLDER = "/static/"
_SCHEME = "bearer"
_KEY_HEADER = "x-api-key"
"""Where clients of other services put their key."""

SignedInBy = Literal["nothing", "proxy", "token", "session"]
_TOKEN: SignedInBy = "token"  # noqa: S105  a word
_SESSION: SignedInBy = "session"

_NOTHING_SENT: Final = "This server needs a token: send `Authorization: Bearer …`."
_NOT_KNOWN: Final = (
    "This token is not, or no longer, known to this server: ask its administrator for another one."
)
"""The same for a token that never was, was revoked or expired, and for one of a disabled user."""

_BURST: Final = 10
_EVERY_S: Final = 6.0
_MAX_ADDRESSES: Final = 4096


def check_exposure(settings: Settings) -> TokenFile | None:
    """Return the configured tokens; None without them. Blocking.

    Unless users sign in every client, on loopback, is the local user. Raise `StartError` if other
    machines can reach the server then, the tokens cannot be read, or what is said of proxies or of
    the provider is not whole.
    """
    proxies = identity_proxies(settings)
    oidc_plan(settings)
    if settings.tokens_file is not None:
        return TokenFile(settings.tokens_file)
    if proxies is None and settings.users == "off" and not is_loopback(settings.host):
        raise SettingsError(
            f"CANDOR_HOST={settings.host} can be reached from other machines: set"
            f" CANDOR_TOKENS_FILE to a file made with `{COMMAND} token NAME`, or CANDOR_USERS=on,"
            " or listen on 127.0.0.1."
        )
    return None


def served_users(
    settings: Settings, tokens: TokenFile | None, accounts: Accounts | None = None
) -> Callable[[UserId], bool]:
    """Return what tells whether a user may be served: one who has a token, one whom a proxy may
    name, or if nobody signs in the local user. With `accounts` one who is enabled there, too.

    Only the proxy knows whom it no longer signs in.
    """
    is_named = identity_proxies(settings) is not None

    def serves(user_id: UserId) -> bool:
        if is_named:
            return user_id != LOCAL_USER
        if accounts is not None and accounts.is_enabled(user_id):
            return True
        if tokens is not None:
            return tokens.has_user(user_id)
        return accounts is None and user_id == LOCAL_USER

    def serves_enabled(user_id: UserId) -> bool:
        return serves(user_id) and (accounts is None or not accounts.is_disabled(user_id))

    return serves_enabled


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caller:
    """Who sends a request."""

    user_id: UserId
    role: Role = "user"
    signed_in_by: SignedInBy
    wait_revoked: Callable[[], Awaitable[None]] = anyio.sleep_forever
    """Returns when it is no longer theirs to ask. Raises `StoreUnavailable` if nobody can tell."""


class TokenGuard:
    """Puts the user's id into the request's state; refuses requests without a known token.

    A user whom a listed proxy names needs none. If nobody signs in everybody is the local user, who
    is an administrator.

    Unknown tokens are rate-limited by address. A known token always passes: behind a proxy all
    users have one address, and a token of 256 bits cannot be guessed.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: TokenFile | None,
        proxies: IdentityProxies | None = None,
        accounts: Accounts | None = None,
        sign_ins: SignIns | None = None,
    ) -> None:
        """`accounts` None: users and tokens of the database do not count. `sign_ins` None: sessions
        do not, either.
        """
        self._app = app
        self._tokens = tokens
        self._proxies = proxies
        self._accounts = accounts
        self._sign_ins = sign_ins
        self._unknown: RateLimit[str] = RateLimit(
            burst=_BURST, every_s=_EVERY_S, max_keys=_MAX_ADDRESSES
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request with its user."""
        path = scope["path"] if scope["type"] == "http" else "/"
        if path not in _OPEN_PATHS and not path.startswith(_OPEN_FOLDER):
            caller = await self._identify(scope)
            scope["state"].update(
                user_id=caller.user_id,
                role=caller.role,
                signed_in_by=caller.signed_in_by,
                wait_revoked=caller.wait_revoked,
            )
        await self._app(scope, receive, send)

    async def _identify(self, scope: Scope) -> _Caller:
        named = self._proxies.user_of(scope) if self._proxies is not None else None
        if named is not None:
            return await self._known(_Caller(user_id=named, signed_in_by="proxy"))
        if self._tokens is not None or self._accounts is not None:
            return await self._holder(scope)
        if self._proxies is not None:
            raise Unauthorized("Ask through the proxy in front of this server; it signs you in.")
        return _Caller(user_id=LOCAL_USER, role="admin", signed_in_by="nothing")

    async def _holder(self, scope: Scope) -> _Caller:
        token = _token_of(scope)
        user_id = self._tokens.user_of(token) if self._tokens is not None else None
        if self._tokens is not None and user_id is not None:
            wait_revoked = partial(self._tokens.wait_revoked, token)
            of_file = _Caller(user_id=user_id, signed_in_by="token", wait_revoked=wait_revoked)
            try:
                return await self._known(of_file)
            except Unauthorized:
                await self._refuse(token, network_of(scope))
                raise
        if self._accounts is not None:
            caller = await self._by_token_or_session(self._accounts, token, scope)
            if caller is not None:
                return caller
        await self._refuse(token, network_of(scope))
        raise Unauthorized(
            _NOT_KNOWN if token else _NOTHING_SENT,
            details={} if self._sign_ins is None else {"sign_in": BEGIN},
        )

    async def _by_token_or_session(
        self, accounts: Accounts, token: str, scope: Scope
    ) -> _Caller | None:
        """Return who signs in by the database; None: nobody. A token goes before a session."""
        find, way = partial(accounts.holder, token), _TOKEN
        if not token and self._sign_ins is not None:
            secret = self._sign_ins.secret_of(scope)
            find, way = partial(accounts.session_holder, secret or ""), _SESSION
        user = await find()
        if user is None:
            return None
        wait_revoked = partial(accounts.wait_ended, find, user.id)
        return _Caller(user_id=user.id, role=user.role, signed_in_by=way, wait_revoked=wait_revoked)

    async def _known(self, caller: _Caller) -> _Caller:
        """Return a user who has signed in elsewhere, with what the database knows of them.

        Raise `Unauthorized` if an administrator disabled the user.
        """
        if self._accounts is None:
            return caller
        user = await self._accounts.users.get(caller.user_id)
        if user is not None and user.disabled_at is not None:
            raise Unauthorized("An administrator of this server has disabled this user.")
        wait_revoked = partial(self._accounts.wait_disabled, caller.user_id, caller.wait_revoked)
        role: Role = "user" if user is None else user.role
        return replace(caller, role=role, wait_revoked=wait_revoked)

    async def _refuse(self, token: str, network: str) -> None:
        """Note a token that signs nobody in. Raise `TooManyAttempts` if too many came."""
        if not token:
            return
        if not self._unknown.take(network):
            raise TooManyAttempts(
                "Too many unknown tokens came from this address.",
                retry_after_s=math.ceil(self._unknown.wait_s(network)),
            )
        if self._accounts is not None:
            await self._accounts.refused(network)


def _token_of(scope: Scope) -> str:
    """Return the request's token; empty if it has none, or several."""
    headers = Headers(scope=scope)
    given, keys = headers.getlist("authorization"), headers.getlist(_KEY_HEADER)
    if not given and len(keys) == 1:
        return keys[0].strip()
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == _SCHEME else ""
