"""`app.py` with a clock that is wrong by `CLOCK_SKEW_S` seconds, given in the environment.

All of the server's wall clock is `memory.clock.utc_now`; what its deadlines and its heart go by has
no time of day.
"""

import os
from datetime import datetime, timedelta, tzinfo
from typing import Self

from memory import clock

_SKEW = timedelta(seconds=float(os.environ["CLOCK_SKEW_S"]))


class SkewedDatetime(datetime):
    """A `datetime` whose present is wrong."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Return the wrong present."""
        return super().now(tz) + _SKEW


clock.datetime = SkewedDatetime  # type: ignore[attr-defined]

if __name__ == "__main__":
    from app import HERE
    from gateway import cli

    cli.run(HERE)
