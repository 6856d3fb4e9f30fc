"""The OpenID provider of the settings, and the user whom its claims name."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from gateway.errors import GatewayError, SettingsError, Unauthorized
from gateway.http.hosts import is_loopback
from gateway.ids import LOCAL_USER, UserId
from gateway.settings import Settings
from gateway.users.model import USER_NAME, USER_NAME_FORM, Role

BEGIN: Final = "/auth/sign-in"
CALLBACK: Final = "/auth/callback"


class SignInRefused(Unauthorized, code="sign_in_refused"):
    """What the provider or the browser sent does not prove who the user is."""


class ProviderUnavailable(
    GatewayError,
    code="provider_unavailable",
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    retryable=True,
):
    """The provider cannot be reached, or does not answer as a provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcPlan:
    """The provider, and what is read from what it says of users."""

    issuer: str
    client_id: str
    client_secret: str | None
    public_url: str
    """Where browsers reach this server, without a slash at its end."""
    user_claim: str
    groups_claim: str
    admin_group: str | None
    """Whose members are administrators; None: roles are given by command."""

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach this server over TLS."""
        return self.public_url.startswith("https:")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentAway:
    """A browser that is sent to the provider."""

    url: str
    state: str
    kept: Mapping[str, str]
    """What `Provider.user_of` needs when it comes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """Whom the provider signed in."""

    user_id: UserId
    role: Role | None
    """None: the provider does not say."""


def oidc_plan(settings: Settings) -> OidcPlan | None:
    """Return the provider of the settings; None without one.

    Raise `StartError` if something is missing, or not protected by TLS on the way.
    """
    if settings.oidc_issuer is None:
        return None
    client_id, public_url = settings.oidc_client_id, settings.public_url
    if client_id is None or public_url is None or settings.users == "off":
        raise SettingsError(
            "CANDOR_OIDC_ISSUER needs CANDOR_OIDC_CLIENT_ID, CANDOR_PUBLIC_URL (where browsers"
            " reach this server) and CANDOR_USERS=on."
        )
    for name, url in (
        ("CANDOR_OIDC_ISSUER", settings.oidc_issuer),
        ("CANDOR_PUBLIC_URL", public_url),
    ):
        if not (url.startswith("https:") or is_loopback(urlsplit(url).hostname or "")):
            raise SettingsError(f"{name} must begin with https://, since sign-ins pass through it.")
    secret = settings.oidc_client_secret
    return OidcPlan(
        issuer=settings.oidc_issuer,
        client_id=client_id,
        client_secret=None if secret is None else secret.value,
        public_url=public_url,
        user_claim=settings.oidc_user_claim,
        groups_claim=settings.oidc_groups_claim,
        admin_group=settings.oidc_admin_group,
    )


class Provider(Protocol):
    """The provider, asked anew for each sign-in."""

    plan: OidcPlan

    async def send_away(self) -> SentAway:
        """Return where the browser is sent. Raise `ProviderUnavailable` if that is not known."""

    async def user_of(self, code: str, kept: Mapping[str, str]) -> SignedIn:
        """Return whom the provider signed in, who came back with a code.

        Raise `SignInRefused` if anything of it is wrong, `ProviderUnavailable` if the provider
        cannot be asked.
        """


def signed_in(claims: Mapping[str, Any], plan: OidcPlan) -> SignedIn:
    """Return the user of verified claims. Raise `SignInRefused` if they name none."""
    name = claims.get(plan.user_claim)
    if not isinstance(name, str) or USER_NAME.fullmatch(name) is None or name == LOCAL_USER:
        raise SignInRefused(f"The provider names no user that this server takes: {USER_NAME_FORM}.")
    if plan.user_claim == "email" and claims.get("email_verified") is not True:
        raise SignInRefused("The provider has not verified this e-mail address.")
    groups = claims.get(plan.groups_claim)
    is_admin = isinstance(groups, list) and plan.admin_group in groups
    role: Role | None = None
    if plan.admin_group is not None:
        role = "admin" if is_admin else "user"
    return SignedIn(user_id=UserId(name), role=role)
