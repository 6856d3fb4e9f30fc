"""Which user of this machine is at the other end of a loopback connection.

All users of a machine share its loopback addresses, so without tokens an address proves nothing. Linux
lists the owner of each socket in `/proc/net/tcp` and `tcp6` (proc(5)). The user who runs the server is
served, and root, who can read the server's memory anyway. Every other user is refused, and so is a peer
in no row, or in one without an inode: no process holds that socket any more, and its owner reads as root.
"""

import ipaddress
import logging
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import Forbidden

_log = logging.getLogger(__name__)

Endpoint: TypeAlias = tuple[str, int]
"""An address and a port."""

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_UID, _INODE = 7, 9
"""Columns of a row."""
_ROOT = 0
_ATTEMPTS = 3
"""The kernel writes the tables while sockets come and go, and can leave a row out."""
_READERS = 2
"""Threads that read the tables at once, so that many strangers cannot take all threads."""


def find_owner(table: str, peer: Endpoint, own: Endpoint) -> int | None:
    """Return the uid of the socket that connects `peer` to `own` in the text of `/proc/net/tcp*`.

    None: no row has it, or no process holds it. Raise `ValueError` if `peer` or `own` is not an IP address.
    """
    for mapped in (False, True):
        pair = f" {_spell(peer, mapped=mapped)} {_spell(own, mapped=mapped)} "
        before, found, after = table.partition(pair)
        row = f"{before.rpartition(chr(10))[2]}{found}{after.partition(chr(10))[0]}".split()
        if found and len(row) > _INODE and row[_INODE] != "0":
            return int(row[_UID])
    return None


def _spell(endpoint: Endpoint, *, mapped: bool) -> str:
    """Return an address as the kernel prints it: 32-bit words in the machine's byte order.

    `mapped` prints an IPv4 address as an IPv6 socket shows it.
    """
    address = ipaddress.ip_address(endpoint[0])
    if mapped and isinstance(address, ipaddress.IPv4Address):
        address = ipaddress.IPv6Address(f"::ffff:{address}")
    words = struct.unpack(f"={len(address.packed) // 4}I", address.packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{endpoint[1]:04X}"


@dataclass(frozen=True, slots=True)
class LocalUsers:
    """The users of this machine who are served."""

    uids: frozenset[int]
    tables: tuple[Path, ...] = _TABLES

    def serves_blocking(self, peer: Endpoint, own: Endpoint) -> bool:
        """Return whether one of them owns the peer's socket; blocking."""
        for _ in range(_ATTEMPTS):
            owner = self.owner_blocking(peer, own)
            if owner is not None:
                return owner in self.uids
        return False

    def owner_blocking(self, peer: Endpoint, own: Endpoint) -> int | None:
        """Return the uid of the peer's socket, None if no table has it; blocking."""
        for path in self.tables:
            try:
                owner = find_owner(path.read_text(encoding="ascii", errors="replace"), peer, own)
            except (OSError, ValueError):
                continue
            if owner is not None:
                return owner
        return None


def local_users_blocking(tables: tuple[Path, ...] = _TABLES) -> LocalUsers | None:
    """Return this server's user and root; None if the system does not list the owners of sockets.

    Tries it with a connection to itself, because some systems have empty tables. Blocking.
    """
    if not hasattr(os, "getuid"):
        return None
    users = LocalUsers(frozenset({os.getuid(), _ROOT}), tables)
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.create_connection(listener.getsockname()) as client,
        ):
            if users.owner_blocking(client.getsockname(), listener.getsockname()) == os.getuid():
                return users
    except OSError:
        pass
    _log.warning("peers_not_checked")
    return None


class PeerGuard:
    """Refuses connections that `serves_blocking` does not accept; it is asked once a connection."""

    def __init__(
        self, app: ASGIApp, *, serves_blocking: Callable[[Endpoint, Endpoint], bool]
    ) -> None:
        self._app = app
        self._serves_blocking = serves_blocking
        self._readers = anyio.CapacityLimiter(_READERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the requests of served peers."""
        if scope["type"] == "http":
            # lives as long as the connection
            known: dict[str, bool] = scope["state"].get("connection", {})
            if "is_served" not in known:
                known["is_served"] = await self._serves(scope.get("client"), scope.get("server"))
            if not known["is_served"]:
                raise Forbidden(
                    "Another user of this machine sent this request, and without tokens only the"
                    " user who started the server is served."
                )
        await self._app(scope, receive, send)

    async def _serves(self, peer: Endpoint | None, own: Endpoint | None) -> bool:
        if peer is None or own is None or own[1] is None:
            return False
        ends = (peer[0], peer[1]), (own[0], own[1])
        return await run_sync(self._serves_blocking, *ends, limiter=self._readers)
