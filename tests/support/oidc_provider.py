"""An OpenID provider from the package index, in threads, whose answers a test can change on their way.

It signs with a key of its own (RS256) and signs anybody in who gives a name. What it does not do is check PKCE, so
`exchanges` keeps what it was sent.
"""

import base64
import hmac
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from joserfc import jwk, jwt

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it imports what Authlib deprecates
    import flask
    import oidc_provider_mock  # type: ignore[import-untyped]
    from oidc_provider_mock._server import _threaded_server  # type: ignore[import-untyped]
    from oidc_provider_mock._storage import storage  # type: ignore[import-untyped]

Claims = dict[str, Any]
Sign = Callable[[Claims, Any], str]


def sign_rightly(claims: Claims, key: Any) -> str:
    return str(jwt.encode({"alg": "RS256", "kid": key.kid}, claims, key))


def sign_with_another_key(claims: Claims, key: Any) -> str:
    return str(jwt.encode({"alg": "RS256", "kid": key.kid}, claims, new_key()))


def sign_not_at_all(claims: Claims, key: Any) -> str:
    return f"{_unsigned('none', claims, key)}."


def sign_with_the_public_key_as_secret(claims: Claims, key: Any) -> str:
    text = _unsigned("HS256", claims, key)
    signature = hmac.digest(key.as_pem(private=False), text.encode(), "sha256")
    return f"{text}.{_base64(signature)}"


def _unsigned(alg: str, claims: Claims, key: Any) -> str:
    header = {"alg": alg, "kid": key.kid}
    return ".".join(_base64(json.dumps(one).encode()) for one in (header, claims))


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def new_key() -> Any:
    """Make a key with an id of its own."""
    return jwk.RSAKey.generate_key(2048, auto_kid=True)


@dataclass
class Provider:
    """The provider, and what is changed in its answers."""

    url: str = ""
    user: Claims = field(default_factory=dict)
    """Further claims of everybody."""
    change: Callable[[Claims], Claims] = lambda claims: claims
    sign: Sign = sign_rightly
    further: Claims = field(default_factory=dict)
    """What it says of everybody beside the identity."""
    metadata: Claims = field(default_factory=dict)
    """Replaces what it says of itself."""
    key: Any = None
    """Signs, and is published; None: its own."""
    is_broken: bool = False
    sends_identity: bool = True
    exchanges: list[dict[str, str]] = field(default_factory=list)
    """The forms that its token endpoint was sent."""

    async def sign_in(self, url: str, name: str, *, deny: bool = False) -> str:
        """Do what a person does on its page; return where the browser is sent then."""
        async with httpx.AsyncClient(trust_env=False) as browser:
            form = {"action": "deny"} if deny else {"sub": name}
            answer = await browser.post(url, data=form)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def _token(self, told: Claims) -> Claims:
        if not self.sends_identity:
            return {name: value for name, value in told.items() if name != "id_token"}
        key = self.key or jwk.RSAKey.import_key(storage.jwk.as_dict(is_private=True))
        payload = told["id_token"].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return {**told, "id_token": self.sign(self.change({**claims, **self.user}), key)}

    def changed(self, path: str, told: Claims) -> Claims:
        """Return an answer as it leaves."""
        if path == "/oauth2/token" and "id_token" in told:
            return self._token(told)
        if path == "/.well-known/openid-configuration":
            return {**told, **self.metadata}
        if path == "/userinfo":
            return {**told, **self.further}
        if path == "/jwks" and self.key is not None:
            return {"keys": [self.key.as_dict(private=False)]}
        return told


@contextmanager
def running_provider() -> Iterator[Provider]:
    """Run the provider until the block ends."""
    provider = Provider()
    app = oidc_provider_mock.app()

    @app.before_request  # type: ignore[untyped-decorator]
    def note() -> Any:
        if provider.is_broken:
            return flask.Response("Bad gateway", 502)
        if flask.request.path == "/oauth2/token":
            provider.exchanges.append(flask.request.form.to_dict())
        return None

    @app.after_request  # type: ignore[untyped-decorator]
    def change(response: Any) -> Any:
        if response.is_json:
            told = provider.changed(flask.request.path, response.get_json())
            response.set_data(json.dumps(told))
        return response

    with _threaded_server(app, host="127.0.0.1", poll_interval=0.01) as server:
        provider.url = f"http://127.0.0.1:{server.server_port}"
        yield provider


def in_the_past(claims: Claims) -> Claims:
    """Make a token that has expired an hour ago."""
    return {**claims, "iat": int(time.time()) - 7200, "exp": int(time.time()) - 3600}
