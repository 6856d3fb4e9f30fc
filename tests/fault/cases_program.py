"""Record cases, judge them or forget one, and die before a given statement; once for each there is.

`python cases_program.py record|judge|forget DIRECTORY` makes `DIRECTORY/<n>` for n = 1, 2, …: each a copy
of the same memory, left by a process that was killed before its n-th statement. It prints each n, and
`done` when a process came to its end.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.forgetting import Forgetting
from memory.scope import Scope
from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, caller, case_world
from tests.support.episodes import AT, recorder_on
from tests.support.killing import KillPoints, kill_at_each


async def record(world: CaseWorld) -> None:
    """Record one, tell it once more, and record one that is related to it, and one in Chinese."""
    await world.upsert(caller("cnv_1"), **INCIDENT)
    again = {**INCIDENT, "symptom_summary": "checkout answers 503 after the deploy (14:05)"}
    await world.upsert(caller("cnv_2"), **again)
    await world.upsert(caller("cnv_3", environment="staging"), **INCIDENT)
    await world.upsert(caller("cnv_4"), **INCIDENT_ZH)


async def ids(world: CaseWorld) -> Mapping[str, str]:
    """Return the ids of the cases by the conversations that wrote them first."""
    rows = await world.database.rows("SELECT case_id FROM cases")
    found = await world.store.get([row["case_id"] for row in rows], "ann")
    return {hit.source_conversation_id or "": hit.case_id for hit in found}


async def judge(world: CaseWorld) -> None:
    """Make one accepted, one stale, and rewrite one."""
    known = await ids(world)
    for voter in ("cnv_5", "cnv_6"):
        await world.vote(caller(voter), known["cnv_1"], helpful=True)
    await world.vote(caller("cnv_5"), known["cnv_4"], signal="stale")
    await world.upsert(caller("cnv_7"), case_id=known["cnv_3"], resolution="close them at once")


async def forget(world: CaseWorld) -> bool:
    """Forget the one that is related, accepted and told twice."""
    case_id = (await ids(world)).get("cnv_1", "cas_none")
    forgetting = Forgetting(
        world.database,
        backends=["vector"],
        recording=recorder_on(world.database).recording,
        now=lambda: AT,
    )
    return await forgetting.forget(case_id, Scope(owner_id="ann"))


WORK: Mapping[str, Callable[[CaseWorld], Awaitable[object]]] = {
    "record": record,
    "judge": judge,
    "forget": forget,
}


async def prepare(what: str, directory: Path) -> None:
    """Do what comes before."""
    async with case_world(directory) as world:
        for entry, work in WORK.items():
            if entry == what:
                return
            await work(world)


async def work_until(what: str, directory: Path, points: KillPoints) -> None:
    """Do it, and be killed before a statement of the writer's."""
    async with case_world(directory) as world:
        await world.database.write(points.watch)
        await WORK[what](world)


if __name__ == "__main__":
    task = sys.argv[1]
    kill_at_each(Path(sys.argv[2]), partial(prepare, task), partial(work_until, task))
