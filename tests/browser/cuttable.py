"""A road to a server that can be cut: at once, or after so many bytes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PIECE_BYTES = 4096


class CuttableRoad:
    """Forwards connections to a server of this machine, each in two threads, until they are cut."""

    def __init__(self, url: str) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._cuts_left = 0
        self._max_bytes = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def is_safe(self) -> bool:
        """All ordered cuts have been made."""
        return self._cuts_left == 0

    def cut_again(self, *, times: int, after_bytes: int) -> None:
        """Break all connections now, and the next ones after so many bytes of answers."""
        self._max_bytes = after_bytes
        self._cuts_left = times
        self._cut()

    def _cut(self) -> None:
        with self._lock:
            doomed, self._open = self._open, set()
        for connection in doomed:
            _break(connection)

    def close(self) -> None:
        """Take no more connections, and cut those there are."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._cut()

    def serve(self) -> None:
        """Take connections until `close`."""
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                with self._lock:
                    self._open |= {near, far}
                for pair in ((near, far, False), (far, near, True)):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:  # noqa: FBT001  a thread's arguments
        carried = 0
        with suppress(OSError):
            while piece := source.recv(_PIECE_BYTES):
                carried += len(piece) if is_answer else 0
                target.sendall(piece)
                if self._cuts_left and carried > self._max_bytes:
                    self._cuts_left -= 1
                    break
        for end in (source, target):
            with self._lock:
                self._open.discard(end)
            _break(end)


def _break(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextmanager
def cuttable_road(url: str) -> Iterator[CuttableRoad]:
    """Open a road to a server while the block runs."""
    road = CuttableRoad(url)
    thread = threading.Thread(target=road.serve, daemon=True)
    thread.start()
    try:
        yield road
    finally:
        road.close()
        thread.join(5)
