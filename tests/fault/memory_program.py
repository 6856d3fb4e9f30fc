"""Remember turns, or forget one, and die before a given statement; once for each that there is.

`python memory_program.py remember|forget DIRECTORY` makes `DIRECTORY/<n>` for n = 1, 2, …: each a copy of
the same memory, left by a process that was killed before its n-th statement: in `remember` turns
wait to be remembered, in `forget` they are, and what the first became is forgotten. It prints each n, and
`done` when a process came to its end.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.episodes.episode_worker import EpisodeWorker
from memory.episodes.writer import MemoryWriter
from memory.forgetting import Forgetting
from memory.ids import derived_id
from memory.intents.turns import ChronicleTurns
from memory.scope import Scope
from memory.stores.sqlite.chronicle import SqliteChronicle
from memory.stores.sqlite.database import Database
from tests.support.episodes import AT, open_memory, opened_on, recorder_on, turn_intents
from tests.support.killing import KillPoints, kill_at_each

COMMANDS = {
    "trn_1": "deploy the shop",
    "trn_2": "清理归档目录",
    "trn_3": "deploy the shop",  # the same again: merged, and only counted
    "trn_4": "rotate the keys of the ledger",
}


async def prepare(directory: Path) -> None:
    """Make a memory in which turns wait."""
    async with open_memory(directory) as database:
        for turn_id, command in COMMANDS.items():
            intents = turn_intents(turn_id, command=command, message=f"please {command}")
            await recorder_on(database).record_intents(intents)


async def remember(database: Database) -> int:
    """Remember whatever waits."""
    store = opened_on(database).store
    writer = MemoryWriter(store, deliver_to=["vector", "memu"], now=lambda: AT)
    return await EpisodeWorker(ChronicleTurns(SqliteChronicle(database)), writer, store).drain()


async def prepare_remembered(directory: Path) -> None:
    """Make a memory in which they are remembered."""
    await prepare(directory)
    async with open_memory(directory) as database:
        await remember(database)


async def forget(database: Database) -> bool:
    """Forget what the first turn became."""
    forgetting = Forgetting(
        database, backends=["vector"], recording=recorder_on(database).recording, now=lambda: AT
    )
    return await forgetting.forget(derived_id("epi", "trn_1"), Scope(owner_id="ann"))


WORK: Mapping[str, Callable[[Database], Awaitable[object]]] = {
    "remember": remember,
    "forget": forget,
}
PREPARE = {"remember": prepare, "forget": prepare_remembered}


async def work_until(what: str, directory: Path, points: KillPoints) -> None:
    """Do it, and be killed before a statement of the writer's."""
    async with open_memory(directory) as database:
        await database.write(points.watch)
        await WORK[what](database)


if __name__ == "__main__":
    task = sys.argv[1]
    kill_at_each(Path(sys.argv[2]), PREPARE[task], partial(work_until, task))
