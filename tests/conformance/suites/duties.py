"""What every store of duties must do, with two nodes that each have their own connection."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from gateway.conversations.leases import Node
from gateway.ids import NodeId
from tests.conformance.suites.conversation_values import OpenStores, Stores

LONG_MS = 3_600_000
HERE, THERE = (Node(id=NodeId(name), incarnation=f"{name} 1") for name in ("here", "there"))


@asynccontextmanager
async def two_nodes(opens: OpenStores) -> AsyncIterator[tuple[Stores, Stores]]:
    """Open the stores of two living nodes."""
    async with opens() as here, opens() as there:
        await here.leases.join(HERE, ttl_ms=LONG_MS)
        await there.leases.join(THERE, ttl_ms=LONG_MS)
        yield here, there


class DutyStoreSuite:
    """The contracts of `DutyStore`. A subclass supplies the fixture `opens`."""

    async def test_one_living_node_has_a_duty(self, opens: OpenStores) -> None:
        async with two_nodes(opens) as (here, there):
            assert 0 < await here.duties.take(HERE, "a") <= LONG_MS
            assert await there.duties.take(THERE, "a") == 0
            assert await here.duties.take(HERE, "a") > 0
            assert await there.duties.take(THERE, "b") > 0
            await there.duties.release(THERE, "a")
            assert await there.duties.take(THERE, "a") == 0
            await here.duties.release(HERE, "a")
            assert await there.duties.take(THERE, "a") > 0

    async def test_of_nodes_that_take_at_once_one_gets_it(self, opens: OpenStores) -> None:
        async with two_nodes(opens) as (here, there):
            taken: list[str] = []
            names = [str(number) for number in range(10)]

            async def take_all(stores: Stores, node: Node) -> None:
                taken.extend([name for name in names if await stores.duties.take(node, name)])

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(take_all, here, HERE)
                tasks.start_soon(take_all, there, THERE)
            assert sorted(taken) == names

    @pytest.mark.parametrize("how", ["expired", "left", "begun_anew"])
    async def test_the_duty_of_a_dead_node_is_taken_and_it_learns_so(
        self, opens: OpenStores, how: str
    ) -> None:
        async with two_nodes(opens) as (here, there):
            assert await here.duties.take(HERE, "a")
            if how == "expired":
                await here.leases.beat(HERE, ttl_ms=0)
            elif how == "left":
                await here.leases.leave(HERE)
            else:
                await here.leases.join(Node(id=HERE.id, incarnation="here 2"), ttl_ms=LONG_MS)
            assert await here.duties.take(HERE, "a") == 0
            assert await there.duties.take(THERE, "a") > 0
            await here.leases.beat(HERE, ttl_ms=LONG_MS)
            assert await here.duties.take(HERE, "a") == 0
            await here.duties.release(HERE, "a")
            assert await there.duties.take(THERE, "a") > 0

    async def test_it_tells_how_long_the_node_lives(self, opens: OpenStores) -> None:
        async with two_nodes(opens) as (here, _there):
            await here.leases.beat(HERE, ttl_ms=60_000)
            assert 0 < await here.duties.take(HERE, "a") <= 60_000
