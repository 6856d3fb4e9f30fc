"""Which user a request is from: found before anything of it is read.

What needs no user is listed; a route that is added later needs one.
"""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import StartError, Unauthorised
from gateway.http.hosts import is_loopback
from gateway.http.tokens import Tokens, load_tokens
from gateway.ids import LOCAL_USER, UserId
from gateway.settings import Settings

_OPEN_PATHS = frozenset({"/", "/healthz"})
_OPEN_FOLDER = "/static/"
_SCHEME = "bearer"


def check_exposure(settings: Settings) -> Tokens | None:
    """Give the tokens that let people in; None: on loopback, everybody is the local user. Blocking.

    Raises:
        StartError: others can reach the server and no tokens are configured, or they cannot be read.
    """
    if settings.tokens_file is not None:
        return load_tokens(settings.tokens_file)
    if not is_loopback(settings.host):
        raise StartError(
            f"CANDOR_HOST={settings.host} can be reached from other machines: set"
            " CANDOR_TOKENS_FILE to a file made with `python app.py token NAME`,"
            " or listen on 127.0.0.1."
        )
    return None


class TokenGuard:
    """Puts the user's id into the request's state; refuses who has no token where one is needed."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens | None) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through with its user."""
        if scope["type"] == "http" and not _is_open(scope["path"]):
            scope["state"]["user_id"] = self._user(Headers(scope=scope).getlist("authorization"))
        await self._app(scope, receive, send)

    def _user(self, given: list[str]) -> UserId:
        if self._tokens is None:
            return LOCAL_USER
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        user_id = self._tokens.user_of(token.strip()) if scheme.lower() == _SCHEME else None
        if user_id is None:
            raise Unauthorised("This server needs a token: send `Authorization: Bearer …`.")
        return user_id


def _is_open(path: str) -> bool:
    return path in _OPEN_PATHS or path.startswith(_OPEN_FOLDER)
