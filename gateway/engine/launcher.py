"""Stands between the server and the agent process for the blink of its start, then becomes it.

Run as a program by the script that `launch_script_blocking` writes, never imported by the gateway:
the standard library alone, and little of it, because every agent pays for it. It gives the agent a
session of its own, so that Ctrl-C at the server's terminal reaches the server only and running turns
can end honestly; asks the kernel (Linux) to end the agent when the server dies; and raises the
kernel's wall around the agent and all that it will start. What the wall lets through is worked out
by `gateway.engine.sandbox`: here are the system calls alone, made as the words say:

    writable:PATH         in the agent's own view everything is mounted read-only but these
    handle:FS:NET:SCOPES  what Landlock forbids from here on, as bit masks
    path:RIGHTS:PATH      but not this, below the path
    port:RIGHTS:PORT      nor this

Of the server's environment the agent keeps the variables that `KEEPS` lists, and no other.

What cannot be done ends the start: an agent runs behind the whole wall or not at all.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Sequence

KEEPS = "AGENT_KEEPS_OF_CANDOR"
"""Names, separated by one space; the same as in `gateway.engine.environment`, which explains it."""

_SIGTERM = 15
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38  # linux/prctl.h
_POWERS_KEPT = 5
"""The first five capabilities are about files and their owners; a workspace may be another user's."""
_MOST_POWERS = 64

# the same numbers on every architecture
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446

_CLONE_NEWNS, _CLONE_NEWUSER = 0x2_0000, 0x1000_0000
_MS_REC, _MS_PRIVATE = 0x4000, 0x4_0000
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 1, 4
_MOUNT_ATTR_RDONLY = 1

_PATH_BENEATH, _NET_PORT = 1, 2
_RIGHTS_OF_FILES = 0b1100_0000_0000_0111
"""Execute, write, read, truncate, ioctl: the kernel refuses the others for what is no directory."""
_NO_TCP_HERE = 97
"""EAFNOSUPPORT: where the kernel has no TCP, no leave is needed for a port."""

_libc = ctypes.CDLL(None, use_errno=True)


def _done(result: int, what: str) -> int:
    """Give a system call's result.

    Raises:
        OSError: it failed.
    """
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def _call(number: int, *arguments: object) -> int:
    return _done(_libc.syscall(number, *arguments), f"system call {number}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:  # noqa: PTH123  pathlib costs start-up time
        file.write(text)


def _leave_for_own_mounts() -> None:
    """Get mounts of our own; who is not root needs a user namespace for it, as the same user."""
    if (uid := os.getuid()) == 0:
        _done(_libc.unshare(_CLONE_NEWNS), "unshare")
        return
    gid = os.getgid()
    _done(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWUSER), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def _mount_read_only(writable: Sequence[str]) -> None:
    """Make everything read-only in this process's own view, but these directories.

    Landlock lets modes, owners and dates be changed anywhere; on a read-only mount they cannot be.
    """
    here = os.getcwd()  # noqa: PTH109  as above
    _leave_for_own_mounts()
    _done(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mount")
    kept = [
        (path, _call(_OPEN_TREE, _AT_FDCWD, path, _OPEN_TREE_CLONE | _AT_RECURSIVE))
        for path in map(os.fsencode, writable)
    ]
    attributes = struct.pack("=QQQQ", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    _call(_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, attributes, len(attributes))
    for path, tree in kept:
        _call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, path, _MOVE_MOUNT_F_EMPTY_PATH)
        os.close(tree)
    os.chdir(here)  # through the new mounts


def _give_up_powers() -> None:
    """Take from root what an agent has no use for: the right to look into processes goes past Landlock.

    Where that is not allowed, somebody took root's powers away already.
    """
    if os.getuid() == 0:
        for power in range(_POWERS_KEPT, _MOST_POWERS):
            _libc.prctl(_PR_CAPBSET_DROP, power, 0, 0, 0)


def _let_path(rules: int, rights: int, path: str) -> None:
    """Let everything below a path be used so; what is not there needs no leave."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= _RIGHTS_OF_FILES
    if rights:
        _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    os.close(place)


def _let_port(rules: int, rights: int, port: int) -> None:
    try:
        _call(_ADD_RULE, rules, _NET_PORT, struct.pack("=QQ", rights, port), 0)
    except OSError as exc:
        if exc.errno != _NO_TCP_HERE:
            raise


def _confine(handled: str, leaves: Sequence[str]) -> None:
    """Have Landlock forbid what is handled, but what there is leave for, from here on and for good."""
    attributes = struct.pack("=QQQ", *map(int, handled.split(":")))
    rules = _call(_CREATE_RULESET, attributes, len(attributes), 0)
    for word in leaves:
        kind, rights, what = word.split(":", 2)
        if kind == "path":
            _let_path(rules, int(rights), what)
        else:
            _let_port(rules, int(rights), int(what))
    _done(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _call(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _raise_wall(words: Sequence[str]) -> None:
    """Mounts first: behind Landlock nothing can be mounted."""
    if writable := [word.partition(":")[2] for word in words if word.startswith("writable:")]:
        _mount_read_only(writable)
    for word in words:
        if word.startswith("handle:"):
            _give_up_powers()
            _confine(
                word.partition(":")[2],
                [word for word in words if word.startswith(("path:", "port:"))],
            )


def _die_with_the_server(server_pid: int) -> None:
    if not sys.platform.startswith("linux"):
        return
    _libc.prctl(_PR_SET_PDEATHSIG, _SIGTERM)
    if os.getppid() != server_pid:  # it died before the kernel was asked
        sys.exit(1)


def _kept_environment() -> dict[str, str]:
    names = os.environ.get(KEEPS)  # noqa: TID251  a program of its own
    if names is None:
        sys.exit(f"{KEEPS} does not say what the agent may know; the agent is not started.")
    return {name: os.environ[name] for name in names.split(" ") if name in os.environ}  # noqa: TID251


def main(arguments: Sequence[str]) -> None:
    """Become an agent: the server's process id, the wall's words, `--`, the program and its own."""
    end = arguments.index("--")
    server_pid, *words = arguments[:end]
    program = list(arguments[end + 1 :])
    if os.getpgid(0) != os.getpid():  # who leads a group or a session already may not
        os.setsid()
    environment = _kept_environment()
    _die_with_the_server(int(server_pid))
    try:
        _raise_wall(words)
    except OSError as exc:
        sys.exit(f"The kernel's wall could not be raised ({exc}); the agent is not started.")
    os.execve(program[0], program, environment)  # noqa: S606  no shell is the point


if __name__ == "__main__":
    main(sys.argv[1:])
