"""A case that search hides is forgotten wherever it was told, and told nowhere afterwards."""

from collections.abc import Sequence
from pathlib import Path

from memory.stores.sqlite.cases import SqliteCaseStore
from tests.conformance.suites.case_values import BACKENDS
from tests.support.cases import INCIDENT, CaseWorld, Listed, caller, case_world, ticking


async def deliveries(world: CaseWorld, case_id: str) -> Sequence[tuple[str, str]]:
    rows = await world.database.rows(
        "SELECT operation, backend FROM outbox WHERE item_id = ? ORDER BY backend, operation",
        (case_id,),
    )
    return [tuple(row) for row in rows]


async def test_a_delivery_that_was_not_made_is_made_no_more(world: CaseWorld) -> None:
    one = (await world.upsert(caller(), **INCIDENT)).case.case_id
    put = [("put", backend) for backend in sorted(BACKENDS)]
    assert await deliveries(world, one) == put
    await world.vote(caller("cnv_2"), one, signal="stale")
    forget = [("forget", backend) for backend in sorted(BACKENDS)]
    assert await deliveries(world, one) == forget, "a put after it would bring the case back"


async def test_a_backend_that_is_configured_no_more_forgets_what_it_was_told(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as before:
        one = (await before.upsert(caller(), **INCIDENT)).case.case_id
        await before.database.write(
            lambda writer: writer.execute(
                "UPDATE outbox SET status = 'delivered' WHERE backend = ?", (BACKENDS[0],)
            )
        )
        await before.database.write(
            lambda writer: writer.execute(
                "INSERT INTO memory_links (item_id, backend, remote_kind, remote_id)"
                " VALUES (?, 'gone', 'item', 'r1')",
                (one,),
            )
        )
        store = SqliteCaseStore(before.database, ticking(), deliver_to=())
        candidates = Listed(before.database, store)
        async with case_world(tmp_path, store=store, candidates=candidates) as world:
            await world.vote(caller("cnv_2"), one, signal="stale")
        told = await deliveries(before, one)
        assert {backend for operation, backend in told if operation == "forget"} == {
            "gone",
            *BACKENDS,
        }
