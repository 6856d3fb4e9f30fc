"""Who sits at the other end of a connection from this machine: the user whose socket it is.

Loopback is shared by everybody who is logged in here, so without tokens an address proves nothing.
Linux tells in `/proc/net/tcp` and `tcp6` to whom each socket belongs. The user who runs the server is
served, and root, who could read the server's memory anyway. Everybody else is refused, and so is a peer
that is in no row, or in one that no process holds any more: such a row names root, whoever sent it.
"""

import ipaddress
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import anyio
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import Forbidden

_log = logging.getLogger(__name__)

Endpoint: TypeAlias = tuple[str, int]
"""An address and a port."""
ByteOrder: TypeAlias = Literal["little", "big"]

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_UID, _INODE = 7, 9
"""Columns of a row."""
_ROOT = 0
_LOOKS = 3
"""The kernel writes the tables while sockets come and go, and can leave one out; a later look has it."""
_LOOKERS = 2
"""Threads that read the tables at once, so that a crowd of strangers cannot take all threads."""


def find_owner(
    table: str, peer: Endpoint, own: Endpoint, *, byteorder: ByteOrder = sys.byteorder
) -> int | None:
    """Give the uid of the socket that connects `peer` to `own`; `table` is the text of `/proc/net/tcp*`.

    None: no row has it, or none that a process still holds.

    Raises:
        ValueError: one of the two is no address.
    """
    for mapped in (False, True):
        ends = [_spell(end, byteorder, mapped=mapped) for end in (peer, own)]
        pair = f" {ends[0]} {ends[1]} "
        at = table.find(pair)
        if at < 0:
            continue
        row = table[table.rfind("\n", 0, at) + 1 :].partition("\n")[0].split()
        if len(row) > _INODE and row[_INODE] != "0":
            return int(row[_UID])
    return None


def _spell(endpoint: Endpoint, byteorder: ByteOrder, *, mapped: bool) -> str:
    """Write an address as the kernel does: words of four bytes, each in the machine's order.

    With `mapped`, an address of version 4 is written as a socket of version 6 has it.
    """
    address = ipaddress.ip_address(endpoint[0])
    if mapped and address.version == 4:  # noqa: PLR2004  a version
        address = ipaddress.IPv6Address(f"::ffff:{address}")
    packed = address.packed
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    spelt = b"".join(word[::-1] if byteorder == "little" else word for word in words)
    return f"{spelt.hex().upper()}:{endpoint[1]:04X}"


@dataclass(frozen=True, slots=True)
class LocalUsers:
    """Looks up whether a peer is a user who may be served."""

    uids: frozenset[int]
    tables: tuple[Path, ...] = _TABLES

    def hold_blocking(self, peer: Endpoint, own: Endpoint) -> bool:
        """Whether the peer's socket belongs to one of them; reads the tables, so blocking."""
        for _ in range(_LOOKS):
            owner = self.owner_blocking(peer, own)
            if owner is not None:
                return owner in self.uids
        return False

    def owner_blocking(self, peer: Endpoint, own: Endpoint) -> int | None:
        """Give the uid of the peer's socket, None where no table has it; blocking."""
        for path in self.tables:
            try:
                table = path.read_text(encoding="ascii", errors="replace")
                owner = find_owner(table, peer, own)
            except (OSError, ValueError):
                continue
            if owner is not None:
                return owner
        return None


def local_users_blocking(tables: Iterable[Path] = _TABLES) -> LocalUsers | None:
    """Give what looks peers up, or None where this system does not tell whose a socket is; blocking.

    Tried with a connection to ourselves: on some systems the tables are there and empty.
    """
    if not hasattr(os, "getuid"):
        return None
    users = LocalUsers(frozenset({os.getuid(), _ROOT}), tuple(tables))
    if _try_blocking(users, os.getuid()):
        return users
    _log.warning("peers_not_checked")
    return None


def _try_blocking(users: LocalUsers, uid: int) -> bool:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.create_connection(listener.getsockname()) as client,
        ):
            return users.owner_blocking(client.getsockname(), listener.getsockname()) == uid
    except OSError:
        return False


class PeerGuard:
    """Serves connections of this server's own user and of root; asked once for each connection."""

    def __init__(
        self, app: ASGIApp, *, hold_blocking: Callable[[Endpoint, Endpoint], bool]
    ) -> None:
        self._app = app
        self._hold_blocking = hold_blocking
        self._lookers = anyio.CapacityLimiter(_LOOKERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through from somebody who may be served."""
        if scope["type"] == "http":
            # what is known of a connection is kept as long as it is open
            known: dict[str, bool] = scope["state"].get("connection", {})
            if "is_ours" not in known:
                known["is_ours"] = await self._is_ours(scope.get("client"), scope.get("server"))
            if not known["is_ours"]:
                raise Forbidden(
                    "Another user of this machine sent this request, and without tokens only the"
                    " user who started the server is served."
                )
        await self._app(scope, receive, send)

    async def _is_ours(self, peer: Endpoint | None, own: Endpoint | None) -> bool:
        if peer is None or own is None or own[1] is None:
            return False
        ends = (peer[0], peer[1]), (own[0], own[1])
        return await run_sync(self._hold_blocking, *ends, limiter=self._lookers)
