"""Users whom a proxy has signed in and names in a header; only listed proxies are believed.

So OAuth2 Proxy, Authelia or an ingress with single sign-on can stand in front. Whoever can connect
from a listed address can be any user, so nothing but the proxy may.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from gateway.errors import SettingsError, Unauthorized
from gateway.ids import LOCAL_USER, UserId
from gateway.settings import Settings
from gateway.users.model import USER_NAME, USER_NAME_FORM

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class IdentityProxies:
    """Where the proxies are, and which header names the user."""

    header: str
    networks: tuple[Network, ...]

    def user_of(self, scope: Scope) -> UserId | None:
        """Return the user whom a listed proxy names; None: it names none, or it is not listed.

        Raise `Unauthorized` if what it names cannot be a user, or is the local one, to whom belongs
        what was written while nobody signed in.
        """
        given = Headers(scope=scope).getlist(self.header)
        if not given or not self._is_listed(str((scope.get("client") or ("",))[0])):
            return None
        is_user = len(given) == 1 and USER_NAME.fullmatch(given[0]) is not None
        if not is_user or given[0] == LOCAL_USER:
            raise Unauthorized(
                f"The proxy in front of this server named no user that it takes: {USER_NAME_FORM},"
                f" and not `{LOCAL_USER}`."
            )
        return UserId(given[0])

    def _is_listed(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in self.networks)


def identity_proxies(settings: Settings) -> IdentityProxies | None:
    """Return whom the settings believe; None: nobody. Raise `StartError` if half is missing."""
    if bool(settings.identity_header) != bool(settings.identity_proxies):
        raise SettingsError(
            "CANDOR_IDENTITY_HEADER and CANDOR_IDENTITY_PROXIES belong together: the header that"
            " names the user, and the addresses of the proxies that set it."
        )
    if settings.identity_header is None:
        return None
    return IdentityProxies(settings.identity_header, tuple(_networks(settings.identity_proxies)))


def _networks(told: Iterable[str]) -> Iterable[Network]:
    return (ipaddress.ip_network(network, strict=False) for network in told)
