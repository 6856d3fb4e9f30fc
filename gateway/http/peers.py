"""Which user of this machine is at the other end of a loopback connection.

All users of a machine share its loopback addresses, so without tokens an address proves nothing.
Linux knows the owner of each socket: it answers questions about one (sock_diag(7)), and lists all
in `/proc/net/tcp` and `tcp6` (proc(5)), which takes milliseconds and serves where questions are
forbidden. The user who runs the server is served, and root, who can read the server's memory
anyway. Every other user is refused, and so is a peer that is not found or has no inode: no process
holds that socket any more, and its owner reads as root.
"""

import ipaddress
import logging
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio.to_thread import run_sync
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import Forbidden

_log = logging.getLogger(__name__)

Endpoint: TypeAlias = tuple[str, int]
"""An address and a port."""
OwnerLookup: TypeAlias = Callable[[Endpoint, Endpoint], int | None]
"""Returns the uid of the first one's socket, which is connected to the second; None if it finds
none."""

_SOCK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
"""Netlink's protocol, the type of a question and its answer, its flag, and the type of an error."""
_UID, _INODE = 7, 9
"""Columns of a row."""
_ROOT = 0
_ATTEMPTS = 3
"""The kernel writes the tables while sockets come and go, and can leave a row out."""
_READERS = 2
"""Threads that read the tables at once, so that many strangers cannot take all threads."""


def ask_kernel(peer: Endpoint, own: Endpoint) -> int | None:
    """Return what `find_owner` does, for the sockets of this machine; never waits.

    Raise `OSError` or `AttributeError` if the system does not answer, `ValueError` as `find_owner`
    does.
    """
    source, target = (ipaddress.ip_address(host) for host, _ in (peer, own))
    family = socket.AF_INET6 if source.version == 6 else socket.AF_INET  # noqa: PLR2004  IP's version
    head = struct.pack(
        "=IHHIIBBxxi", 72, _BY_FAMILY, _REQUEST, 0, 0, family, socket.IPPROTO_TCP, -1
    )
    ports = struct.pack("!HH", peer[1], own[1])
    ends = struct.pack("16s16s", source.packed, target.packed)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(0)
        kernel.send(head + ports + ends + struct.pack("=Iq", 0, -1))
        answer = kernel.recv(4096)
    if struct.unpack_from("=4xH", answer)[0] == _ERROR:
        return None
    uid, inode = struct.unpack_from("=II", answer, 80)
    # a socket that listens there answers for a connection that is gone
    return int(uid) if inode and answer[20:24] == ports else None


def read_table(path: Path, peer: Endpoint, own: Endpoint) -> int | None:
    """Return what `find_owner` does, from a file; blocking. Raise as it does, and `OSError`."""
    return find_owner(path.read_text(encoding="ascii", errors="replace"), peer, own)


_LOOKUPS: tuple[OwnerLookup, ...] = (
    ask_kernel,
    *(partial(read_table, Path(f"/proc/net/{name}")) for name in ("tcp", "tcp6")),
)


def find_owner(table: str, peer: Endpoint, own: Endpoint) -> int | None:
    """Return the uid of the socket that connects `peer` to `own` in the text of `/proc/net/tcp*`.

    None: no row has it, or no process holds it. Raise `ValueError` if `peer` or `own` is not an IP
    address.
    """
    ends = f" {_spell(peer)} {_spell(own)} "
    row = next((line.split() for line in table.splitlines() if ends in line), [])
    return int(row[_UID]) if len(row) > _INODE and row[_INODE] != "0" else None


def _spell(endpoint: Endpoint) -> str:
    """Return an address as the kernel prints it: 32-bit words in the machine's byte order."""
    packed = ipaddress.ip_address(endpoint[0]).packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{endpoint[1]:04X}"


@dataclass(frozen=True, slots=True)
class LocalUsers:
    """The users of this machine who are served."""

    uids: frozenset[int]
    lookups: tuple[OwnerLookup, ...] = _LOOKUPS

    def serves_blocking(self, peer: Endpoint, own: Endpoint) -> bool:
        """Return whether one of them owns the peer's socket; blocking."""
        for _ in range(_ATTEMPTS):
            owner = self.owner_blocking(peer, own)
            if owner is not None:
                return owner in self.uids
        return False

    def owner_blocking(self, peer: Endpoint, own: Endpoint) -> int | None:
        """Return the uid of the peer's socket, None if it is not found; blocking."""
        for look_up in self.lookups:
            with suppress(OSError, ValueError, AttributeError):
                if (owner := look_up(peer, own)) is not None:
                    return owner
        return None


def local_users_blocking(lookups: tuple[OwnerLookup, ...] = _LOOKUPS) -> LocalUsers | None:
    """Return this server's user and root; None if the system does not list the owners of sockets.

    Tries it with a connection to itself, because some systems have empty tables. Blocking.
    """
    if not hasattr(os, "getuid"):
        return None
    users = LocalUsers(frozenset({os.getuid(), _ROOT}), lookups)
    with (
        suppress(OSError),
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
    ):
        if users.owner_blocking(client.getsockname(), listener.getsockname()) == os.getuid():
            return users
    _log.warning("peers_not_checked")
    return None


class PeerGuard:
    """Refuses connections that `serves_blocking` does not accept; it is asked once a connection.

    A request that another server has shown its secret for was looked at there.
    """

    def __init__(
        self, app: ASGIApp, *, serves_blocking: Callable[[Endpoint, Endpoint], bool]
    ) -> None:
        self._app = app
        self._serves_blocking = serves_blocking
        self._readers = anyio.CapacityLimiter(_READERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the requests of served peers."""
        if scope["type"] == "http" and not scope["state"].get("is_from_node"):
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
