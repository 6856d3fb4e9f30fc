"""A schedule comes due in a process that is killed at each of its writes: it has run once, and knows it."""

import sys
from pathlib import Path

import pytest

from tests.fault.schedule_program import kill_at_each_write
from tests.support.child_programs import command, run_blocking

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]


def test_a_due_time_is_one_turn_wherever_the_kill_comes(tmp_path: Path) -> None:
    lines = run_blocking(command(kill_at_each_write, tmp_path))
    kills, ends = [one["killed"] for one in lines[::2]], lines[1::2]
    assert kills == [True] * (len(kills) - 1) + [False]
    assert len(kills) > 2, "the acceptance and its note"
    for end in ends:
        assert end["turns"] == [end["last"]]
        assert (end["missed"], end["following"]) == (1, 14)
