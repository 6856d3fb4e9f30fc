"""One call that changes the workspace runs at a time, and is judged when it may run."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import anyio
import anyio.lowlevel
import pytest

from gateway.conversations.leases import Node
from gateway.conversations.sql.leases import LeaseStore
from gateway.ids import NodeId
from gateway.turns.gate import TurnGate
from gateway.turns.workspace_lock import LocksOfServers, WorkspaceLock
from memory.errors import StoreUnavailable
from policies.permits import Effect
from policies.verdict import Allow, Ask, Deny, Verdict
from tests.support.builders import tool_call
from tests.support.engine_talk import until
from tests.support.turn_gates import CHANGES, READS, Gate

NO = Deny("by_now", "It is denied by now.")


class Waiting:
    """A gate's call that waits for the lock, and its verdict once it has one."""

    def __init__(self) -> None:
        self.verdict: Verdict | None = None

    @property
    def is_over(self) -> bool:
        return self.verdict is not None


@asynccontextmanager
async def waiting_call(gate: Gate) -> AsyncIterator[Waiting]:
    """Make a call wait for the lock that another one holds; it has its verdict after the block."""
    before, waiting = gate.lock.waiting, Waiting()

    async def go() -> None:
        waiting.verdict = await gate.through()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(go)
        await until(lambda: gate.lock.waiting > before)
        yield waiting


async def test_a_call_that_changes_waits_until_the_one_before_has_returned() -> None:
    lock = WorkspaceLock()
    one, other = Gate(CHANGES, lock, asks=False), Gate(CHANGES, lock, asks=False)
    assert await one.through() == CHANGES
    async with waiting_call(other) as waiting:
        assert await Gate(READS, lock).through() == READS, "reading waits for nobody"
        assert not waiting.is_over
        one.returned(2)  # of which nothing is known
        assert lock.waiting == 1
        one.returned(1)
    assert waiting.verdict == CHANGES
    other.returned(1)
    other.returned(1)
    assert await one.through() == CHANGES


async def test_a_plan_is_written_under_the_lock_although_it_counts_as_no_change() -> None:
    lock = WorkspaceLock()
    planning = Gate(READS, lock)
    assert await planning.through(tool_call("Write", tool_input={"file_path": "p"})) == READS
    async with waiting_call(Gate(CHANGES, lock, asks=False)):
        planning.returned(1)


async def test_calls_get_the_lock_in_the_order_in_which_they_asked() -> None:
    lock = WorkspaceLock()
    first, second, third = (Gate(CHANGES, lock, asks=False) for _ in range(3))
    await first.through()
    async with waiting_call(second) as one, waiting_call(third) as other:
        first.returned(1)
        await until(lambda: one.is_over)
        assert not other.is_over
        second.returned(1)
    assert other.verdict == CHANGES


async def test_a_call_that_waited_is_judged_again() -> None:
    lock = WorkspaceLock()
    one, other = Gate(CHANGES, lock, asks=False), Gate(CHANGES, lock, asks=False)
    await one.through()
    async with waiting_call(other) as waiting:
        other.fixed.verdict = NO
        one.returned(1)
    assert waiting.verdict == NO
    assert other.lines == [("t1", NO)]
    assert await one.through() == CHANGES, "a denied call holds nothing"


MOVED = replace(CHANGES, updated_input={"command": "mv a b/a"})
ELSEWHERE = replace(CHANGES, effect=Effect(tool="Bash", paths=frozenset({("b",)})))
MUST_ASK = Ask("ask_rule", "A rule wants it.")


@pytest.mark.parametrize("by_now", [NO, MOVED, ELSEWHERE, MUST_ASK])
async def test_what_a_person_agreed_to_is_judged_again_and_must_be_the_same(
    by_now: Verdict,
) -> None:
    gate = Gate(CHANGES)
    gate.person.before = lambda: setattr(gate.fixed, "verdict", by_now)
    verdict = await gate.through()
    assert isinstance(verdict, Deny)
    assert verdict.rule == ("by_now" if by_now is NO else "changed_meanwhile")
    assert gate.evidence.denials[1] == verdict.message.upper()
    gate.person.before = lambda: None
    gate.fixed.verdict = CHANGES
    assert await gate.through() == CHANGES


async def test_a_call_that_reads_is_judged_again_after_an_answer_and_takes_no_lock() -> None:
    lock = WorkspaceLock()
    await Gate(CHANGES, lock, asks=False).through()
    gate = Gate(Ask("ask_rule", "A rule wants it.", changes=False), lock)
    assert isinstance(await gate.through(), Allow)
    gate.person.before = lambda: setattr(gate.fixed, "verdict", NO)
    assert await gate.through() == NO


async def test_what_nobody_was_asked_about_runs_as_it_is_judged_now() -> None:
    lock = WorkspaceLock()
    one, other = Gate(CHANGES, lock, asks=False), Gate(CHANGES, lock, asks=False)
    cases: list[tuple[Verdict, str]] = [(MOVED, "changes"), (MUST_ASK, "changed_meanwhile")]
    for by_now, rule in cases:
        await one.through()
        async with waiting_call(other) as waiting:
            other.fixed.verdict = by_now
            one.returned(1)
        assert waiting.verdict is not None
        assert waiting.verdict.rule == rule
        other.returned(1)
        other.fixed.verdict = CHANGES
    assert other.person.calls == []


async def test_nobody_holds_the_lock_while_a_person_is_asked() -> None:
    lock = WorkspaceLock()
    other = Gate(CHANGES, lock, asks=False)
    asking = Gate(CHANGES, lock)
    asker, passed = asking.person, list[Verdict]()

    async def answer(call: object, effect: object, _: object) -> object:
        passed.append(await other.through())
        other.returned(1)
        return await asker(call, effect)  # type: ignore[arg-type]

    asking.asker = answer  # type: ignore[assignment]
    assert await asking.through() == CHANGES
    assert passed == [CHANGES]


async def fail(_: object) -> None:
    await anyio.lowlevel.checkpoint()
    raise OSError("no disk")


def stop(gate: TurnGate) -> None:
    gate.control.stop("user_interrupt")


@pytest.mark.parametrize("ending", [TurnGate.end_run, stop], ids=["run", "stop"])
async def test_a_run_that_ends_gives_up_what_its_calls_hold_and_wait_for(
    ending: Callable[[TurnGate], None],
) -> None:
    lock = WorkspaceLock()
    holder, ended = Gate(CHANGES, lock, asks=False), Gate(CHANGES, lock, asks=False)
    await holder.through()
    async with waiting_call(ended) as waiting:
        ending(ended)
        holder.end_run()
    assert isinstance(waiting.verdict, Deny)
    assert waiting.verdict.rule == "turn_stopping"
    assert await holder.through() == CHANGES


async def test_a_call_that_is_not_let_run_after_all_holds_nothing() -> None:
    lock = WorkspaceLock()
    failing = Gate(CHANGES, lock, asks=False)
    failing.before_call = fail
    with pytest.raises(OSError, match="no disk"):
        await failing.through()
    holder, cancelled = Gate(CHANGES, lock, asks=False), Gate(CHANGES, lock, asks=False)
    await holder.through()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancelled.through)
        await until(lambda: lock.waiting == 1)
        tasks.cancel_scope.cancel()
    holder.returned(1)
    assert await holder.through() == CHANGES


async def test_a_call_that_waits_too_long_is_denied_and_told_so() -> None:
    lock = WorkspaceLock(wait_s=0.01)
    await Gate(CHANGES, lock, asks=False).through()
    verdict = await Gate(CHANGES, lock, asks=False).through()
    assert isinstance(verdict, Deny)
    assert (verdict.rule, verdict.interrupt) == ("workspace_busy", False)
    assert verdict.message.endswith("did not run. Try it again.")


class Locks(LocksOfServers):
    """The locks of one of two servers; what they store is shared."""

    def __init__(self, name: str, stored: "Stored") -> None:
        super().__init__(cast(LeaseStore, stored), Node(id=NodeId(name), incarnation="1"))


class Stored:
    """What the database knows of locks."""

    def __init__(self) -> None:
        self.owners: dict[str, Node] = {}
        self.is_reached = True

    async def lock(self, node: Node, name: str) -> bool:
        await anyio.lowlevel.checkpoint()
        if not self.is_reached:
            raise StoreUnavailable("The database is gone.")
        return self.owners.setdefault(name, node) == node

    async def unlock(self, node: Node, name: str) -> None:
        await anyio.lowlevel.checkpoint()
        if self.owners.get(name) == node:
            del self.owners[name]


@asynccontextmanager
async def two_servers() -> AsyncIterator[tuple[WorkspaceLock, WorkspaceLock, Stored]]:
    """Lend the locks of two servers for one workspace."""
    stored = Stored()
    ours, theirs = Locks("here", stored), Locks("there", stored)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ours.run)
        tasks.start_soon(theirs.run)
        yield (
            WorkspaceLock(name="ws", servers=ours, wait_s=1),
            WorkspaceLock(name="ws", servers=theirs, wait_s=1),
            stored,
        )
        tasks.cancel_scope.cancel()


async def test_of_two_servers_one_has_the_lock_until_its_call_has_ended() -> None:
    async with two_servers() as (here, there, _):
        assert await here.acquire("call")
        assert not await there.acquire("other")
        here.release("call")
        assert await there.acquire("other")
        there.release("other")


async def test_calls_of_one_server_pass_the_lock_on_among_themselves() -> None:
    async with two_servers() as (here, _, stored):
        assert await here.acquire("one")
        here.release("one")
        assert await here.acquire("two")
        await anyio.sleep(0.01)  # what was given back is not given back now
        assert stored.owners
        here.release("two")
        await until(lambda: not stored.owners)


async def test_a_lock_that_cannot_be_had_is_not_kept_from_the_next_call() -> None:
    async with two_servers() as (here, there, stored):
        stored.is_reached = False
        assert not await here.acquire("one")
        stored.is_reached = True
        assert await here.acquire("two")
        assert not await there.acquire("other")
        here.release("two")
        assert await there.acquire("other")
