"""Where requests come from, as far as it bounds attempts."""

import ipaddress
from http import HTTPStatus
from typing import Final

from starlette.types import Scope

from gateway.errors import GatewayError

_NETWORK_BITS: Final = 64
"""Of an IPv6 address; a client that has one address of such a network has all."""


class TooManyAttempts(GatewayError, code="too_many_attempts", status=HTTPStatus.TOO_MANY_REQUESTS):
    """Too many unknown tokens, or sign-ins, came from one address."""


def network_of(scope: Scope) -> str:
    """Return the client's address, of IPv6 its network; empty if it is not known."""
    host = str((scope.get("client") or ("",))[0])
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    return str(ipaddress.ip_network((int(address), _NETWORK_BITS), strict=False))
