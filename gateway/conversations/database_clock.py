"""The time of a database that several servers share, without a round trip for each look."""

import time
from datetime import UTC, datetime

from gateway.conversations.sql.leases import Clock, clock_of
from memory.stores.database import Connection, SqlDatabase

_STEP_MS = 1000.0
"""A clock that differs by more was set."""


class DatabaseClock:
    """Reads the database's time as a `Clock`, and from then on goes by the machine's monotonic one.

    The store of leases reads it with each beat, so that servers agree on what is due, however wrong
    their own clocks are.
    """

    def __init__(self, database: SqlDatabase, clock: Clock | None = None) -> None:
        self._read = clock or clock_of(database)
        self._zero_ms: float | None = None
        """The database's time when the monotonic clock was 0."""

    def __call__(self, connection: Connection) -> int:
        """Ask the database for its time in milliseconds since 1970."""
        now_ms = self._read(connection)
        zero_ms = now_ms - time.monotonic() * 1000
        known_ms = self._zero_ms
        if known_ms is None or abs(zero_ms - known_ms) > _STEP_MS:
            self._zero_ms = zero_ms
        else:
            self._zero_ms = max(known_ms, zero_ms)  # an answer may come late, and never early
        return now_ms

    def now(self) -> datetime:
        """Return the database's time, as far as this server can tell. Ask the database first."""
        assert self._zero_ms is not None, "ask the database first"
        return datetime.fromtimestamp(self._zero_ms / 1000 + time.monotonic(), UTC)
