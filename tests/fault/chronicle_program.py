"""Record a turn's intents and die before a given statement; once for each statement that there is.

`python chronicle_program.py DIRECTORY` makes `DIRECTORY/<n>` for n = 1, 2, …: a memory left by a process that was
killed before the n-th statement of recording. It prints each n, and `done` when one came to its end.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.intents.intent import MemoryIntent
from tests.support.episodes import open_memory, recorder_on
from tests.support.intents import completed, cut_off, received, tool_result
from tests.support.killing import KillPoints, kill_at_each


def intents() -> list[MemoryIntent]:
    """Give a turn's intents: some are told, some wait, and the turn ends."""
    return [received("清理"), tool_result(), tool_result(status="error"), cut_off(), completed()]


async def record_until(directory: Path, points: KillPoints) -> None:
    """Record, and be killed before a statement of the writer's."""
    async with open_memory(directory) as database:
        await database.write(points.watch)
        await recorder_on(database).record_intents(intents())


async def prepare(directory: Path) -> None:
    """Make an empty memory."""
    async with open_memory(directory):
        pass


if __name__ == "__main__":
    kill_at_each(Path(sys.argv[1]), prepare, record_until)
