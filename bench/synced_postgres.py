"""The tests' PostgreSQL server, with its commits on the disk, and what it costs."""

from contextlib import suppress

import psutil
import psycopg

from tests.support import postgres


def sync_commits() -> None:
    """Configure the server to sync what it commits; call it before the server is started."""
    postgres._SHELL = postgres._SHELL.replace("fsync='off'", "fsync='on'")  # noqa: SLF001


def server_s() -> float:
    """Return the processor's time of all processes of the server, also of those that ended."""
    with psycopg.connect(postgres.server_url()) as connection:
        parent = psutil.Process(connection.info.backend_pid).parent()
    assert parent is not None
    spent_s = float(sum(parent.cpu_times()[:4]))
    for child in parent.children():
        with suppress(psutil.NoSuchProcess):  # it ended just now
            spent_s += sum(child.cpu_times()[:2])
    return spent_s
