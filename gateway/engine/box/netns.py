"""Listens inside the network of a box that has none, from outside of it."""

import ctypes
import fcntl
import os
import socket

from gateway.engine.box.plan import PROXY_PORT

_NS_GET_USERNS = 0xB701  # linux/nsfs.h
_CLONE_NEWUSER, _CLONE_NEWNET = 0x1000_0000, 0x4000_0000

_libc = ctypes.CDLL(None, use_errno=True)


def listen_inside_blocking(box: int) -> socket.socket:
    """Return a socket that listens on the loopback address of the box with this first process.

    A child of this process enters the box's network for it, and passes the socket out. Raise
    `OSError` if that fails.
    """
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            _send_listener(box, theirs)
        finally:
            os._exit(0)
    theirs.close()
    try:
        with ours:
            _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    finally:
        os.waitpid(child, 0)
    if not fds:
        raise OSError(1, "the network of the box cannot be entered")
    return socket.socket(fileno=fds[0])


def _send_listener(box: int, out: socket.socket) -> None:
    network = os.open(f"/proc/{box}/ns/net", os.O_RDONLY)
    users = fcntl.ioctl(network, _NS_GET_USERNS)
    for namespace, kind in ((users, _CLONE_NEWUSER), (network, _CLONE_NEWNET)):
        if _libc.setns(namespace, kind) != 0:
            return
    with socket.create_server(("127.0.0.1", PROXY_PORT)) as listener:
        socket.send_fds(out, [b"1"], [listener.fileno()])
