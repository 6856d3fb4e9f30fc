"""The program that kills the agents of a silent server."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gateway.engine.watchdog import watch_blocking

OWNER = "owner"


class Watched:
    """A server whose words the watchdog reads, and the ends of its agents."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self.ends: list[str] = []
        self.ended = threading.Event()

    def end(self, owner: str) -> int:
        self.ends.append(owner)
        self.ended.set()
        return 1

    def say(self, text: str) -> None:
        os.write(self._pipe, text.encode())


@contextmanager
def watched() -> Iterator[Watched]:
    read, write = os.pipe()
    server = Watched(write)
    watchdog = threading.Thread(target=watch_blocking, args=(read, OWNER, server.end))
    watchdog.start()
    try:
        yield server
    finally:
        with suppress(OSError):
            os.close(write)
        watchdog.join(30)
        os.close(read)
    assert not watchdog.is_alive()


def test_a_server_that_falls_silent_loses_its_agents_once_for_each_silence() -> None:
    with watched() as server:
        for silences in (1, 2):
            server.say("100\n-0.5")
            server.say("\n")
            assert server.ended.wait(30)
            server.ended.clear()
            time.sleep(0.05)
            assert server.ends == [OWNER] * silences
    assert server.ends == [OWNER] * 3, "the end of its words is the end of the server"


def test_a_server_that_speaks_keeps_its_agents() -> None:
    with watched() as server:
        for _ in range(5):
            server.say("60\n")
        time.sleep(0.1)
        assert server.ends == []
    assert server.ends == [OWNER]
