"""Servers and a conversation for all tests of a worker that need none of their own: an agent costs a second.

With `CANDOR_TEST_NODES` set, what these tests take for a server is two behind a proxy.
"""

import os
from collections.abc import Iterator

import pytest

from tests.support import live_server
from tests.support.live_nodes import started_nodes
from tests.support.live_server import LiveServer

if os.environ.get("CANDOR_TEST_NODES"):  # before the tests' modules import it
    live_server.started_server = started_nodes
_start = live_server.started_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with its default settings."""
    with _start(tmp_path_factory.mktemp("server"), demo_cadence_ms=0) as server:
        yield server


@pytest.fixture(scope="session")
def conversation(server: LiveServer) -> str:
    """A conversation: however a turn of it ends, the next one is answered."""
    return server.new_conversation()


@pytest.fixture(scope="session")
def asking_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that asks a person about each call that changes something."""
    with _start(tmp_path_factory.mktemp("asking"), approvals="on") as server:
        yield server


@pytest.fixture(scope="session")
def asking_conversation(asking_server: LiveServer) -> str:
    """A conversation of that server."""
    return asking_server.new_conversation()
