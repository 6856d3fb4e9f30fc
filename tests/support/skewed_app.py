"""`app.py` with a clock that is wrong by `CLOCK_SKEW_S` seconds, given in the environment, and as a
version with further migrations for PostgreSQL, if `LATER_VERSIONS` names them.

All of the server's wall clock is `memory.clock.utc_now`; what its deadlines and its heart go by has
no time of day.
"""

import os
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Self

from gateway import storage
from memory import clock
from memory.stores.sqlite.database import migrations_of
from tests.support.later_versions import STEPS

_LATER = os.environ.get("LATER_VERSIONS", "").split()
_SKEW = timedelta(seconds=float(os.environ["CLOCK_SKEW_S"]))


class SkewedDatetime(datetime):
    """A `datetime` whose present is wrong."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Return the wrong present."""
        return super().now(tz) + _SKEW


def later_migrations_of(package: str) -> Sequence[str]:
    """Return the migrations of a package, as a later version has them."""
    steps = [STEPS[package](name) for name in _LATER if package in STEPS]
    return [*migrations_of(package), *steps]


storage.migrations_of = later_migrations_of  # type: ignore[attr-defined]
clock.datetime = SkewedDatetime  # type: ignore[attr-defined]

if __name__ == "__main__":
    from app import HERE
    from gateway import cli

    cli.run(HERE)
