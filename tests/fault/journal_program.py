"""Programs that keep a journal while something happens to it; run by `test_journal_disk.py`."""

import os
import resource
import signal
from datetime import UTC, datetime
from pathlib import Path

import anyio

from gateway.journal.writer import Journal, TurnJournal
from tests.support.child_programs import say

AT = datetime(2026, 11, 20, tzinfo=UTC)


async def fill_a_full_disk(journal: Journal, turn: TurnJournal, directory: Path) -> None:
    """The directory is on a disk of 256 KiB: fill it, make room, go on; then make it read-only."""
    assert await journal.ping() is None
    ballast = directory.parent / "ballast"
    ballast.write_bytes(b"x" * 150_000)
    for n in range(400):
        turn.write("message", n=n, text="x" * 1000)
    turn.write("response", outcome="answered")
    in_time = await turn.close()
    ping_when_full = await journal.ping()
    ballast.unlink()
    again = journal.open("cnv_c", "trn_again", AT)
    again.write("request")
    say(
        in_time=in_time,
        lost=turn.lost,
        ping_when_full=ping_when_full,
        again=await again.close(),
        ping_after=await journal.ping(),
    )
    mount = directory.parent
    await anyio.run_process(["mount", "-o", "remount,ro", str(mount)])
    last = journal.open("cnv_c", "trn_last", AT)
    last.write("request")
    say(read_only=await last.close(), lost=last.lost, ping=await journal.ping())


async def reach_a_size_limit(journal: Journal, turn: TurnJournal, directory: Path) -> None:
    """No file may grow beyond 10 000 bytes for a while: a write stops in mid-line."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    for n in range(30):
        turn.write("message", n=n, text="x" * 700)
    flushed = await turn.flush()
    lost = turn.lost
    size = (directory / turn.log_file).stat().st_size
    small = journal.open("cnv_c", "trn_small", AT)
    small.write("message", text="x" * 20_000)
    small.write("tool")
    small.write("response", outcome="answered")
    await small.close()
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    turn.write("response", outcome="answered")
    say(
        flushed=flushed,
        closed=await turn.close(),
        lost_then=lost,
        lost=turn.lost,
        size=size,
        small=small.lost,
    )


async def run_out_of_files(journal: Journal, turn: TurnJournal, directory: Path) -> None:
    """No file can be opened for a while."""
    turn.write("request")
    assert await turn.flush()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    turn.write("message")
    flushed, ping = await turn.flush(), await journal.ping()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    turn.write("response", outcome=directory.name)
    say(flushed=flushed, ping=ping, closed=await turn.close(), lost=turn.lost)


async def write_until_killed(_journal: Journal, turn: TurnJournal, _directory: Path) -> None:
    """Report after each flush how many lines are safe."""
    written = 0
    while True:
        for _ in range(50):
            turn.write("message", text="x" * 2000)
        written += 50
        await turn.flush()
        say(written=written)


async def write_then_die(_journal: Journal, turn: TurnJournal, _directory: Path) -> None:
    """Die by the strongest signal straight after `close` said that all is kept."""
    for n in range(1000):
        turn.write("message", n=n)
    say(closed=await turn.close())
    os.kill(os.getpid(), signal.SIGKILL)


async def keep_journal(what: str, directory: str) -> None:
    """Keep a journal and one turn's in it, to which the function of that name does something."""
    journal = Journal(Path(directory), mask=str)
    async with anyio.create_task_group() as tasks:
        await tasks.start(journal.run)
        turn = journal.open("cnv_c", "trn_a", AT)
        await globals()[what](journal, turn, Path(directory))
        tasks.cancel_scope.cancel()
