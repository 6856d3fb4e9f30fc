"""The session of a browser: begun through the provider, held by a cookie, ended by the user."""

import math
from datetime import timedelta
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from gateway.errors import Forbidden
from gateway.http.hosts import SAFE_METHODS
from gateway.http.networks import TooManyAttempts, network_of
from gateway.http.oidc import Provider, SignedIn, SignInRefused
from gateway.ids import UserId
from gateway.rate_limit import RateLimit
from gateway.users.accounts import Accounts
from gateway.users.model import Act, Session, User, digest_of, new_secret
from memory.clock import Now
from memory.items.ids import opaque_id

_MAX_ADDRESSES: Final = 4096
_WAY: Final = timedelta(minutes=10)
"""How long a browser may be away at the provider."""
_AGAIN: Final = "This sign-in was not begun in this browser, or it took too long; begin it again."


class TooManySignIns(TooManyAttempts, code="too_many_attempts", retryable=True):
    """Too many sign-ins were begun from one address; another one is taken a moment later."""


class Cookies:
    """The cookies of this server.

    The session's is sent by no other site's page (`SameSite=Strict`), and kept from scripts. That
    of a sign-in comes back from the provider, whose page is another site's.
    """

    def __init__(self, *, is_secure: bool) -> None:
        self._is_secure = is_secure
        self.session = "__Host-candor_session" if is_secure else "candor_session"
        self.state = "__Host-candor_sign_in" if is_secure else "candor_sign_in"

    def set_session(self, response: Response, secret: str, max_age_s: int) -> None:
        """Set the cookie of a session."""
        response.set_cookie(
            self.session,
            secret,
            max_age=max_age_s,
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="strict",
        )

    def set_state(self, response: Response, state: str) -> None:
        """Set the cookie with the state of a sign-in."""
        response.set_cookie(
            self.state,
            state,
            max_age=int(_WAY.total_seconds()),
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="lax",
        )

    def drop(self, response: Response, name: str) -> None:
        """Delete a cookie."""
        response.delete_cookie(name, path="/", secure=self._is_secure, httponly=True)


class SignIns:
    """Begins and ends the sessions of browsers."""

    def __init__(
        self,
        provider: Provider,
        accounts: Accounts,
        *,
        hours: int,
        listed_origins: frozenset[str],
        now: Now,
    ) -> None:
        """`listed_origins` are the pages elsewhere that may use the server, with a token."""
        self._provider = provider
        self._accounts = accounts
        self._lasts = timedelta(hours=hours)
        self._listed = listed_origins
        self._now = now
        # wide, because behind a proxy all browsers have one address
        self._begun: RateLimit[str] = RateLimit(burst=100, every_s=0.2, max_keys=_MAX_ADDRESSES)
        self._refused: RateLimit[str] = RateLimit(burst=10, every_s=6.0, max_keys=_MAX_ADDRESSES)
        self.cookies = Cookies(is_secure=provider.plan.is_secure)
        self.home = f"{provider.plan.public_url}/"

    async def begin(self, request: Request) -> tuple[str, str]:
        """Return where the browser is sent, and the state that it must bring back.

        Raises as `Provider.send_away` does, and `TooManySignIns`.
        """
        network = network_of(request.scope)
        if not self._begun.take(network):
            raise TooManySignIns(
                "Too many sign-ins were begun from this address; try again in a moment.",
                retry_after_s=math.ceil(self._begun.wait_s(network)),
            )
        sent, at = await self._provider.send_away(), self._now()
        await self._accounts.sessions.begin(
            digest_of(sent.state), sent.kept, at=at, expires_at=at + _WAY
        )
        return sent.url, sent.state

    async def finish(self, request: Request) -> tuple[str, int]:
        """Start the session of a browser that comes back; return its secret and its seconds.

        Raise `ProviderUnavailable`, or `SignInRefused`, which is recorded unless many were lately:
        strangers can cause it.
        """
        try:
            user = await self._user_of(request)
            await self._admit(user)
        except SignInRefused as exc:
            network = network_of(request.scope)
            if self._refused.take(network):
                await self._accounts.record("", "sign_in.refused", network, reason=_reason(exc))
            raise
        secret, at = new_secret(), self._now()
        session = Session(
            id=opaque_id("ses"), user_id=user.user_id, created_at=at, expires_at=at + self._lasts
        )
        act = Act(by=user.user_id, at=at)
        await self._accounts.sessions.start(session, digest_of(secret), act)
        return secret, int(self._lasts.total_seconds())

    async def _user_of(self, request: Request) -> SignedIn:
        state, code = request.query_params.get("state", ""), request.query_params.get("code", "")
        if not state or request.cookies.get(self.cookies.state) != state:
            raise SignInRefused(_AGAIN)
        kept = await self._accounts.sessions.take(digest_of(state), self._now())
        if kept is None:
            raise SignInRefused(_AGAIN)
        issuer = request.query_params.get("iss", self._provider.plan.issuer)
        if issuer.rstrip("/") != self._provider.plan.issuer:  # RFC 9207
            raise SignInRefused("This sign-in comes from another provider.")
        if not code:
            raise SignInRefused("The provider did not sign you in.")
        return await self._provider.user_of(code, kept)

    async def _admit(self, user: SignedIn) -> None:
        """Add or update the user. Raise `SignInRefused` if they are disabled."""
        users, act = self._accounts.users, Act(by=f"provider:{user.user_id}", at=self._now())
        new = User(id=user.user_id, role=user.role or "user", created_at=act.at)
        if not await users.add(new, act) and user.role is not None:
            await users.set_role(user.user_id, user.role, act)
        known = await users.get(user.user_id)
        if known is None or known.disabled_at is not None:
            raise SignInRefused("An administrator of this server has disabled this user.")

    def secret_of(self, scope: Scope) -> str | None:
        """Return the session's secret of a request; None if it has none.

        Raise `Forbidden` if another site's page may have caused it.
        """
        secret = Request(scope).cookies.get(self.cookies.session)
        if not secret:
            return None
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        tells = origin is not None or "sec-fetch-site" in headers  # `HostGuard` has checked both
        if origin in self._listed or not (tells or scope["method"] in SAFE_METHODS):
            raise Forbidden("This request does not come from this server's own page.")
        return secret

    async def end(self, secret: str, user_id: UserId) -> None:
        """End a session."""
        act = Act(by=user_id, at=self._now())
        await self._accounts.sessions.end(digest_of(secret), act)


def _reason(exc: SignInRefused) -> str:
    """Return why a sign-in was refused, with the name of a claim and never its value."""
    cause = exc.__cause__
    if cause is None:
        return exc.message
    name, claim = type(cause).__name__, getattr(cause, "claim", None)  # joserfc's `ClaimError`
    return name if claim is None else f"{name}: {claim}"
