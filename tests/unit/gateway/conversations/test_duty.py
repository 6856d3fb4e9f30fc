"""The work that one of several servers does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.conversations.duty import Duty
from gateway.conversations.leases import Node
from gateway.conversations.sql.duties import DutyStore
from gateway.ids import NodeId
from memory.errors import StoreUnavailable
from tests.conformance.suites.conversation_values import Stores
from tests.support.stores import open_file, stores_on

LONG_MS = 3_600_000
HERE, THERE = (Node(id=NodeId(name), incarnation=name) for name in ("here", "there"))


class Failing(DutyStore):
    """Answers nothing while it is told to fail."""

    fails = False

    async def take(self, node: Node, duty: str) -> int:
        if self.fails:
            raise StoreUnavailable("The database cannot be reached.")
        return await super().take(node, duty)


class Working:
    """Some work that goes on until it is cancelled, and what is done meanwhile."""

    def __init__(self, duty: Duty) -> None:
        self._duty = duty
        self.doing = "nothing"
        self.woken = 0
        self.changed = anyio.Event()

    async def run(self) -> None:
        await self._duty.while_held(self._work, self._wake, self._follow)

    async def _work(self) -> None:
        await self._note("work")

    async def _follow(self) -> None:
        await self._note("follow")

    async def _note(self, what: str) -> None:
        self.doing = what
        self.changed.set()
        self.changed = anyio.Event()
        await anyio.sleep_forever()

    def _wake(self) -> None:
        self.woken += 1

    async def until(self, what: str) -> None:
        while self.doing != what:
            await self.changed.wait()


@asynccontextmanager
async def two_servers(
    root: Path,
) -> AsyncIterator[tuple[Stores, dict[NodeId, Working], list[Duty]]]:
    """Run the duties of two living servers, of which the first one has it."""
    async with open_file(root) as database:
        stores = stores_on(database)
        for node in (HERE, THERE):
            await stores.leases.join(node, ttl_ms=LONG_MS)
        duties = [Duty(Failing(database), node, is_shared=True) for node in (HERE, THERE)]
        works = [Working(duty) for duty in duties]
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for duty, work in zip(duties, works, strict=True):
                    tasks.start_soon(work.run)
                    await work.until("follow")
                    tasks.start_soon(duty.run)
                    if duty is duties[0]:
                        await work.until("work")
                yield stores, {HERE.id: works[0], THERE.id: works[1]}, duties
                tasks.cancel_scope.cancel()


async def test_one_server_works_and_another_goes_on_when_it_has_died(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (stores, works, duties):
        assert (duties[0].is_held, duties[1].is_held) == (True, False)
        assert works[THERE.id].doing == "follow"
        await stores.leases.beat(HERE, ttl_ms=0)
        await works[THERE.id].until("work")
        await works[HERE.id].until("follow")
        assert (duties[0].is_held, duties[1].is_held) == (False, True)


async def test_a_server_that_stops_lets_another_one_work_at_once(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (_, works, duties):
        await duties[0].give_up()
        await works[HERE.id].until("follow")
        await works[THERE.id].until("work")
        assert not duties[0].is_held


async def test_a_server_that_cannot_ask_stops_before_another_one_may_take_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.conversations.duty._MARGIN_S", LONG_MS / 1000 - 2)
    async with two_servers(tmp_path) as (stores, works, duties):
        monkeypatch.setattr(Failing, "fails", True)
        await works[HERE.id].until("follow")
        assert not duties[0].is_held
        assert {node.id for node in await stores.leases.living()} == {HERE.id, THERE.id}


async def test_what_others_have_left_to_do_is_looked_for(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (_, works, _duties):
        while works[HERE.id].woken < 2:  # noqa: ASYNC110  that is what is tested
            await anyio.sleep(0.01)
        assert works[THERE.id].woken == 0


async def test_a_server_alone_always_works_and_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Failing, "fails", True)
    async with open_file(tmp_path) as database, anyio.create_task_group() as tasks:
        duty = Duty(Failing(database), HERE, is_shared=False)
        work = Working(duty)
        tasks.start_soon(work.run)
        await duty.run()
        await work.until("work")
        async with duty.alone("record"):
            assert duty.is_held
        await duty.give_up()
        assert duty.is_held
        tasks.cancel_scope.cancel()


async def test_what_one_server_does_alone_another_one_waits_for(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (_, _works, duties):
        steps: list[str] = []

        async def second() -> None:
            async with duties[1].alone("record"):
                steps.append("second")

        async with anyio.create_task_group() as tasks:
            async with duties[0].alone("record"):
                tasks.start_soon(second)
                await anyio.sleep(0.1)
                steps.append("first")
            async with duties[0].alone("cases"):
                steps.append("other")
        assert steps[0] == "first"
        assert sorted(steps) == ["first", "other", "second"]
