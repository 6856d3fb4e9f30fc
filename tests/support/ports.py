"""Ports that stay free while nobody listens: for a server that is told its port, or comes back to it.

A port that the kernel chose may be the next connection's own as soon as its listener is closed.
"""

import random
import socket
from contextlib import suppress

_CHOSEN = range(20_000, 30_000)
"""Below those that the kernel gives to connections and to listeners without a port of their own."""


def lasting_port() -> int:
    """Return a free port that no other program gets without asking for it."""
    for port in random.sample(_CHOSEN, len(_CHOSEN)):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")
