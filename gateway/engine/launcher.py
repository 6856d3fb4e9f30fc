"""The program that the server starts as its agent; it sets up the sandbox and becomes the agent.

It is run by the script that `launch_script_blocking` writes and never imported by the gateway. It
uses little of the standard library, because each start of an agent pays for it. It gives the agent
a session of its own, so that Ctrl-C at the server's terminal reaches the server only; asks the
kernel (Linux) to end the agent when the server dies; and applies the kernel's sandbox to the agent
and its children. `gateway.engine.sandbox` computes what the sandbox allows; this program makes the
system calls for it:

    writable:PATH         mounted writable for the agent; everything else is mounted read-only
    handle:FS:NET:SCOPES  what Landlock forbids, as bit masks
    path:RIGHTS:PATH      an exception below a path
    port:RIGHTS:PORT      an exception for a port

The agent keeps the variables that `KEEPS` lists. If a step fails, the agent is not started.
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
"""The first five capabilities concern files and their owners; a workspace may belong to another
user."""
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
"""Execute, write, read, truncate, ioctl: the kernel accepts the others for directories only."""
_NO_TCP_HERE = 97
"""EAFNOSUPPORT: the kernel has no TCP, so no rule for a port is needed."""

_libc = ctypes.CDLL(None, use_errno=True)


def _done(result: int, what: str) -> int:
    """Return the result of a system call. Raise `OSError` if the call failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def _call(number: int, *arguments: object) -> int:
    return _done(_libc.syscall(number, *arguments), f"system call {number}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:  # noqa: PTH123  pathlib costs start-up time
        file.write(text)


def _leave_for_own_mounts() -> None:
    """Create a mount namespace; without root this needs a user namespace that maps
    the same user.
    """
    if (uid := os.getuid()) == 0:
        _done(_libc.unshare(_CLONE_NEWNS), "unshare")
        return
    gid = os.getgid()
    _done(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWUSER), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def _mount_read_only(writable: Sequence[str]) -> None:
    """Mount everything read-only for this process, except these directories.

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
    """Drop the capabilities that an agent does not need: some of them bypass Landlock.

    If dropping is not permitted, they were dropped before.
    """
    if os.getuid() == 0:
        for power in range(_POWERS_KEPT, _MOST_POWERS):
            _libc.prctl(_PR_CAPBSET_DROP, power, 0, 0, 0)


def _let_path(rules: int, rights: int, path: str) -> None:
    """Allow these rights below a path; a path that does not exist needs no rule."""
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
    """Restrict this process and its children with Landlock, permanently."""
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
    """Apply the sandbox; the mounts come first, because Landlock forbids mounting."""
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
    """Become the agent. Arguments: the server's pid, the sandbox's words, `--`, the program and its
    arguments.
    """
    end = arguments.index("--")
    server_pid, *words = arguments[:end]
    program = list(arguments[end + 1 :])
    if os.getpgid(0) != os.getpid():  # a group leader cannot create a session
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
