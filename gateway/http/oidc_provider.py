"""An OpenID provider, by Authlib: the code flow with PKCE.

Nothing of the provider is kept between sign-ins, neither its addresses nor its keys, so that what
it changes counts from the next one on. What is not exactly right refuses the sign-in. Imported only
if there is a provider, since Authlib takes a moment.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import certifi
import httpx2
from authlib.common.errors import AuthlibBaseError  # type: ignore[import-untyped]
from authlib.integrations.starlette_client import OAuth  # type: ignore[import-untyped]
from joserfc.errors import JoseError

from gateway.http.oidc import (
    CALLBACK,
    OidcPlan,
    ProviderUnavailable,
    SentAway,
    SignedIn,
    SignInRefused,
    signed_in,
)

_DISCOVERY: Final = "/.well-known/openid-configuration"
_SIGNATURES: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384")
"""With a key that the provider alone has: neither none nor a shared secret."""
_TIMEOUT_S: Final = 10.0
_LEEWAY_S: Final = 30
_KEPT: Final = ("nonce", "code_verifier")


class AuthlibProvider:
    """See `Provider`."""

    def __init__(self, plan: OidcPlan) -> None:
        """Read the certificates of this machine and the web's; blocking."""
        self.plan = plan
        self._certificates = ssl.create_default_context()
        self._certificates.load_verify_locations(certifi.where())
        httpx2.AsyncClient(verify=self._certificates)  # imports what it needs, which takes a moment

    async def send_away(self) -> SentAway:
        with _translating_errors():
            app = await self._open()
            made = await app.create_authorization_url(self.plan.public_url + CALLBACK)
        return SentAway(
            url=made["url"], state=made["state"], kept={name: made[name] for name in _KEPT}
        )

    async def user_of(self, code: str, kept: Mapping[str, str]) -> SignedIn:
        with _translating_errors():
            app = await self._open()
            token = await app.fetch_access_token(
                redirect_uri=self.plan.public_url + CALLBACK,
                code=code,
                code_verifier=kept["code_verifier"],
            )
            claims = await app.parse_id_token(
                token,
                nonce=kept["nonce"],
                claims_options={
                    "iss": {"essential": True, "value": app.server_metadata["issuer"]},
                    "aud": {"essential": True, "value": self.plan.client_id},
                },
                leeway=_LEEWAY_S,
            )
            if claims is None:
                raise SignInRefused("The provider sent no identity.")
            told = await self._told_further(app, token, claims)
        return signed_in(told, self.plan)

    async def _told_further(
        self, app: Any, token: Mapping[str, Any], claims: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the claims, with those that the provider keeps for its second answer.

        Many put names and groups only there. What the signed identity says goes over it.
        """
        wanted = {self.plan.user_claim, "email_verified", self.plan.groups_claim}
        if wanted <= claims.keys() or "userinfo_endpoint" not in app.server_metadata:
            return claims
        further = await app.userinfo(token=token)
        if further.get("sub") != claims["sub"]:
            raise SignInRefused("The provider speaks of another user than it signed in.")
        return {**further, **claims}

    async def _open(self) -> Any:
        """Return Authlib's client, with what the provider says of itself now."""
        app = OAuth().register(
            "provider",
            client_id=self.plan.client_id,
            client_secret=self.plan.client_secret,
            server_metadata_url=self.plan.issuer + _DISCOVERY,
            client_kwargs={
                "scope": "openid profile email",
                "code_challenge_method": "S256",
                "timeout": _TIMEOUT_S,
                "verify": self._certificates,
                "trust_env": False,
            },
        )
        told = await app.load_server_metadata()
        if str(told.get("issuer")).rstrip("/") != self.plan.issuer:
            raise SignInRefused("The provider calls itself by another name than the settings.")
        signs = told.get("id_token_signing_alg_values_supported") or ["RS256"]
        told["id_token_signing_alg_values_supported"] = [
            name for name in signs if name in _SIGNATURES
        ] or ["RS256"]
        return app


@contextmanager
def _translating_errors() -> Iterator[None]:
    try:
        yield
    except (JoseError, AuthlibBaseError) as exc:
        raise SignInRefused(
            "The sign-in was refused, because what the provider sent is not valid here."
        ) from exc
    except (
        httpx2.HTTPError,
        httpx2.InvalidURL,
        ValueError,
        KeyError,
        TypeError,
        RuntimeError,
    ) as exc:
        raise ProviderUnavailable(
            "The sign-in service does not answer as it should; try again in a moment.",
            retry_after_s=5,
        ) from exc
