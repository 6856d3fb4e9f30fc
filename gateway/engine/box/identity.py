"""Gives up root for a user of the box's own, to whom the workspace belongs by a mapped mount.

The kernel does not limit root's processes, and what root owns it lets root change. So a broker that
was started as root mounts the workspace in a mount namespace of its own so that what belongs to its
owner on the disk belongs to `UID` there, and the other way round; then it becomes that user. It
takes Linux 5.12, and a file system that can be mapped.
"""

import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

UID: Final = 61_000
"""Of no user of the system: between the ranges that systemd describes."""

_PLACE: Final = "/sys"
"""Covered in the broker's namespace by the mapped mounts; nothing in the box needs it."""

# linux/mount.h, linux/sched.h, linux/prctl.h; the numbers are the same on every architecture
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_CLONE_NEWNS, _CLONE_NEWUSER = 0x2_0000, 0x1000_0000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 0x2, 0x4, 0x4000, 0x4_0000
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH, _MOUNT_ATTR_IDMAP = 1, 4, 0x10_0000
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38

_libc = ctypes.CDLL(None, use_errno=True)


def take_identity_blocking(folders: Sequence[Path]) -> dict[Path, Path]:
    """Become the user of the box; return where each folder is found afterwards.

    Raise `OSError` if that is impossible; the process must end then. An ordinary user stays.
    """
    places = {folder: folder for folder in folders}
    if os.getuid() == 0:
        _done(_libc.unshare(_CLONE_NEWNS), "unshare")
        _done(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mount")
        trees = [_mapped_tree(folder) for folder in folders]
        flags = _MS_NOSUID | _MS_NODEV
        _done(_libc.mount(b"none", _PLACE.encode(), b"tmpfs", flags, b"mode=755"), "mount")
        for number, (folder, tree) in enumerate(zip(folders, trees, strict=True)):
            place = f"{_PLACE}/{number}"
            os.mkdir(place)  # noqa: PTH102
            _call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, place.encode(), _MOVE_MOUNT_F_EMPTY_PATH)
            os.close(tree)
            places[folder] = Path(place)
        os.setgroups([])
        os.setresgid(UID, UID, UID)
        os.setresuid(UID, UID, UID)  # without root no capability is left
        _done(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")  # else /proc/self is root's
    _done(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    return places


def _mapped_tree(folder: Path) -> int:
    """Return a mount of a folder, nowhere yet, on which its owner is the user of the box."""
    owner = folder.stat()
    users = _user_namespace(owner.st_uid, owner.st_gid)
    try:
        path = os.fsencode(folder)
        tree = _call(_OPEN_TREE, _AT_FDCWD, path, _OPEN_TREE_CLONE | _AT_RECURSIVE)
        attributes = struct.pack("=QQQQ", _MOUNT_ATTR_IDMAP, 0, 0, users)
        how = _AT_EMPTY_PATH | _AT_RECURSIVE
        _call(_MOUNT_SETATTR, tree, b"", how, attributes, len(attributes))
    finally:
        os.close(users)
    return tree


def _user_namespace(uid: int, gid: int) -> int:
    """Return a namespace in which this user and group are those of the box."""
    ready, told = os.pipe()
    wait, done = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(done)
        if _libc.unshare(_CLONE_NEWUSER) == 0:
            os.write(told, b"1")
            os.read(wait, 1)
        os._exit(0)
    try:
        os.close(told)
        if not os.read(ready, 1):
            raise OSError(1, "no user namespace")
        for kind, number in (("uid_map", uid), ("gid_map", gid)):
            Path(f"/proc/{child}/{kind}").write_text(f"{number} {UID} 1", encoding="ascii")
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for fd in (ready, wait, done):
            os.close(fd)
        os.waitpid(child, 0)


def _done(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _call(number: int, *arguments: object) -> int:
    return _done(_libc.syscall(number, *arguments), f"system call {number}")
