"""The tools as memory puts them together: the real search, the outbox, and forgetting."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from memory.assemble import Memory, open_memory
from memory.cases.case import Case, CaseCaller
from memory.cases.results import RenderAnswer, SearchAnswer, UpsertAnswer
from memory.clock import utc_now
from memory.embeddings.choice import EmbedderChoice
from memory.plan import MemoryPlan
from policies.secrets import mask_secrets
from tests.support.cases import INCIDENT, OTHER_INCIDENT, caller


@asynccontextmanager
async def opened(root: Path) -> AsyncIterator[Memory]:
    workspace, data = root / "workspace", root / "data"
    workspace.mkdir(exist_ok=True)
    data.mkdir(exist_ok=True)
    plan = MemoryPlan(
        data_dir=data,
        workspace=workspace,
        mask=mask_secrets,
        embedder=EmbedderChoice(name="hashed"),
        serves_vectors=False,
    )
    async with open_memory(plan, now=utc_now, draw=lambda: 0.5) as memory:
        yield memory


async def record(memory: Memory, who: CaseCaller, incident: Any) -> Case:
    answer = await memory.cases.upsert(who, dict(incident))
    assert isinstance(answer, UpsertAnswer)
    return answer.case


async def found(memory: Memory, who: CaseCaller, query: str) -> list[str]:
    answer = await memory.cases.search(who, query)
    assert isinstance(answer, SearchAnswer)
    return [case.case_id for case in answer.cases]


async def test_apps_are_walls_and_what_has_no_app_holds_for_all(tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        shop = await record(memory, caller("cnv_1"), INCIDENT)
        bank = await record(memory, caller("cnv_2", app="bank"), INCIDENT)
        common = await record(memory, caller("cnv_3", app="default", environment=""), INCIDENT)
        assert len({shop.case_id, bank.case_id, common.case_id}) == 3
        query = "connection pool exhausted"
        assert {*await found(memory, caller("cnv_4"), query)} == {shop.case_id, common.case_id}
        assert {*await found(memory, caller("cnv_5", app="bank"), query)} == {
            *(bank.case_id, common.case_id)
        }
        anywhere = caller("cnv_6", app=None, environment=None)
        assert len(await found(memory, anywhere, query)) == 3
        assert await found(memory, caller("cnv_7", owner="bob"), query) == []


async def test_twenty_near_duplicates_at_once_are_one_case_by_the_real_search(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as memory:
        await record(memory, caller("cnv_x"), OTHER_INCIDENT)
        ids = []

        async def tell(n: int) -> None:
            symptom = f"{INCIDENT['symptom_summary']} at 10:{n:02d} on checkout-7f{n:02d}"
            incident = {**INCIDENT, "symptom_summary": symptom}
            ids.append((await record(memory, caller(f"cnv_{n}"), incident)).case_id)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for n in range(20):
                    group.start_soon(tell, n)
        assert len(set(ids)) == 1
        answer = await memory.cases.render(caller(), ids[:1])
        assert isinstance(answer, RenderAnswer)
        assert answer.cases[0].case.reports == 19
