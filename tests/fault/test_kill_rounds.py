"""The server killed again and again in the middle of work: all that was accepted is there, or its loss is told."""

import sys
from pathlib import Path

import pytest

from tests.support.kill_rounds import KillRounds, schedule
from tests.support.seeds import drawn_seed

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX"),
]

IN_ORDINARY_RUN = 3
IN_SOAK = 200
HALF = range(40, 61)
"""So much of a hundred killed turns had completed, in a schedule that is spread as it should be."""


async def run_rounds(directory: Path, seed: int, count: int) -> float:
    """Run the rounds of a seed; return the share of the killed turns that had completed."""
    rounds = KillRounds(directory)
    checked = 0
    for round_ in schedule(seed, count):
        server = await rounds.start()
        try:
            await rounds.check(server, since=checked)
            checked = len(rounds.seen)
            await rounds.play(server, round_)
        finally:
            server.kill()
        assert not server.faults()
    server = await rounds.start()
    try:
        await rounds.check(server)
        assert server.stop() == 0
        assert not server.agents()
    finally:
        server.kill()
    main = [turn for turn in rounds.seen if turn.message == turn.round.message]
    assert len(main) == count
    return sum(turn.completed for turn in main) / count


async def test_nothing_is_lost_when_the_server_is_killed_again_and_again(tmp_path: Path) -> None:
    await run_rounds(tmp_path, 4, IN_ORDINARY_RUN)


@pytest.mark.soak
async def test_nothing_is_lost_in_many_kills(tmp_path: Path) -> None:
    share = await run_rounds(tmp_path, drawn_seed("kill rounds"), IN_SOAK)
    assert round(share * 100) in HALF
