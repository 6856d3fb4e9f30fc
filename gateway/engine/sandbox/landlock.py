"""The sandbox of a whole agent process, as words for the launcher: Landlock and read-only mounts.

Landlock covers every tool and every program that the agent starts, and needs no privileges. It
forbids mounting, so bubblewrap, which has to mount, fails inside it ("Failed to make / slave:
Operation not permitted"). The SDK's own sandbox and this one exclude each other; this one is
preferred because it covers the tools that write without a command.

It also restricts TCP to the model's ports (Linux 6.7), signals and abstract sockets to processes
inside (6.12), and hides environments and memory of other processes. Programs in the workspace
cannot be started. The read-only mounts, if the system allows them, protect modes, owners and dates
of files. Not covered: existence and size of a file with a known path; sockets in the file system
that this user may use, and UDP; command lines of other processes; protected files inside the
workspace, and the sessions of the server's other conversations.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from landlockpy import (
    AccessFS,
    AccessNet,
    LandlockError,
    Scope,
    abi_version,
    fs_for_abi,
    net_for_abi,
    scope_for_abi,
)

from gateway.engine.sandbox.places import DEVICES, PROGRAMS, READABLE, AgentPlaces

_READ = AccessFS.READ_FILE | AccessFS.READ_DIR
_RUN = _READ | AccessFS.EXECUTE
_DEVICE = AccessFS.READ_FILE | AccessFS.WRITE_FILE
_WRITE = (
    _READ
    | AccessFS.WRITE_FILE
    | AccessFS.TRUNCATE
    | AccessFS.REMOVE_FILE
    | AccessFS.REMOVE_DIR
    | AccessFS.MAKE_REG
    | AccessFS.MAKE_DIR
    | AccessFS.MAKE_SYM  # `cp -r` and `mv` of a folder that holds links
    | AccessFS.REFER
)
_CONNECT = AccessFS.RESOLVE_UNIX
"""To sockets that are files, which newer kernels can forbid."""
_OWN = _WRITE | AccessFS.MAKE_SOCK | AccessFS.MAKE_FIFO | _CONNECT


def landlock_version() -> int:
    """Return the kernel's version of Landlock; 0 for none."""
    try:
        return abi_version()
    except LandlockError:
        return 0


def landlock_words(places: AgentPlaces, version: int) -> list[str]:
    """Return the launcher's words for what Landlock forbids and allows."""
    handled = (
        fs_for_abi(version),
        net_for_abi(version) & (AccessNet.BIND_TCP | AccessNet.CONNECT_TCP),
        scope_for_abi(version) & (Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL),
    )
    paths = [f"path:{int(rights & handled[0])}:{path}" for rights, path in _rights(places)]
    ports = [f"port:{int(AccessNet.CONNECT_TCP)}:{port}" for port in places.ports]
    return [
        "handle:" + ":".join(str(int(mask)) for mask in handled),
        *paths,
        *(ports if handled[1] else ()),
    ]


def mount_words(places: AgentPlaces) -> list[str]:
    """Return the launcher's words for the writable mounts."""
    return [f"writable:{path}" for path in _written(places)]


def _written(places: AgentPlaces) -> Sequence[Path]:
    return (places.workspace, *places.own, *places.writable)


def _rights(places: AgentPlaces) -> Iterator[tuple[AccessFS, str | Path]]:
    for system in PROGRAMS:
        yield _RUN, system
    for system in READABLE:
        yield _READ, system
    for device in DEVICES:
        yield _DEVICE, device
    for path in (places.program, *places.programs):
        yield _RUN, path
    for path in places.runnable:
        yield _RUN | _CONNECT, path
    yield _WRITE, places.workspace
    for path in places.own:
        yield _OWN, path
    for path in places.readable:
        yield _READ, path
    for path in places.writable:
        yield _WRITE, path
