"""memU as a retriever: left out and named where it does not answer, and left alone where it often did not."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import anyio
import anyio.lowlevel
import pytest

from memory.errors import BackendUnavailable, DeliveryRefused
from memory.items.item import KINDS, Item, ItemKind
from memory.items.scope import Scope
from memory.outbox.backend import Backend, BackendHealth
from memory.outbox.backends.memu_retriever import MemuRetriever
from memory.outbox.delivery import Link
from memory.recall.retrievers import Candidate, Gathered, Question, gather
from memory.remote.breaker import BreakerLimits, BreakerState
from tests.support.recall import ANN, AT

WAIT_S = 30
SOON_S = 0.05
"""A deadline like a turn's, that passes."""


@dataclass
class Memu(Backend):
    """memU that names what it is told, after what it is told to do first."""

    ids: Sequence[str] = ("epi_1", "epi_2")
    first: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint
    asked: list[tuple[str, Scope, int]] = field(default_factory=list)
    name: str = "memu"

    async def retrieve(self, query: str, scope: Scope, *, limit: int) -> Sequence[str]:
        self.asked.append((query, scope, limit))
        await self.first()
        return self.ids

    async def put(self, item: Item, idempotency_key: str) -> Sequence[Link]:
        raise AssertionError("a retriever delivers nothing")

    async def forget(self, item_id: str, links: Sequence[Link], idempotency_key: str) -> None:
        raise AssertionError("a retriever delivers nothing")

    async def close(self) -> None:
        raise AssertionError("a retriever closes nothing")

    async def check(self) -> BackendHealth:
        await anyio.lowlevel.checkpoint()
        return BackendHealth(name=self.name, state="ok")


@dataclass
class World:
    """A retriever on memU, with a clock that is set by hand."""

    memu: Memu = field(default_factory=Memu)
    now: datetime = AT
    told: list[BreakerState] = field(default_factory=list)
    retriever: MemuRetriever = field(init=False)

    def __post_init__(self) -> None:
        self.retriever = MemuRetriever(
            self.memu,
            now=lambda: self.now,
            mask=lambda text: text.replace("hunter2", "[masked]"),
            limits=BreakerLimits(max_failures=3, open_s=60),
            on_breaker=self.told.append,
        )

    async def ask(
        self, text: str = "tea", kinds: Sequence[ItemKind] = KINDS, bound_s: float = WAIT_S
    ) -> Gathered:
        with anyio.fail_after(WAIT_S):
            return await gather(
                [self.retriever], [Question(text=text, scope=ANN, kinds=kinds)], bound_s=bound_s
            )

    async def degraded(self, times: int = 1, bound_s: float = WAIT_S) -> list[str]:
        return [entry for _ in range(times) for entry in (await self.ask(bound_s=bound_s)).degraded]


def failing(exc: Exception) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise exc

    return fail


AWAY = failing(BackendUnavailable("memU cannot be reached."))


async def test_it_is_asked_in_the_name_of_who_asks_for_five_and_without_secrets() -> None:
    world = World()
    answer = await world.retriever.find(
        Question(text="密码 hunter2 of the gateway", scope=ANN, kinds=KINDS), limit=60
    )
    assert world.memu.asked == [("密码 [masked] of the gateway", ANN, 5)]
    assert answer.candidates == [
        Candidate(item_id=name, strength=None, is_weak=True) for name in ("epi_1", "epi_2")
    ]
    assert answer.degraded == ()


@pytest.mark.parametrize(
    ("kinds", "times"), [(("case",), 0), (("case", "note"), 1), (("episode",), 1)]
)
async def test_of_cases_alone_it_is_not_asked(kinds: Sequence[ItemKind], times: int) -> None:
    world = World()
    gathered = await world.ask(kinds=kinds)
    assert (len(world.memu.asked), gathered.degraded) == (times, ())


@pytest.mark.parametrize(
    "exc",
    [BackendUnavailable("away"), DeliveryRefused("too long"), RuntimeError("broken")],
    ids=lambda name: type(name).__name__,
)
async def test_a_memu_that_fails_is_named(exc: Exception) -> None:
    assert await World(Memu(first=failing(exc))).degraded() == ["memu_error"]


async def test_a_memu_that_is_slow_is_left_at_the_deadline_and_named() -> None:
    assert await World(Memu(first=anyio.sleep_forever)).degraded(bound_s=SOON_S) == ["memu_timeout"]


@pytest.mark.parametrize("exc", [BackendUnavailable("away"), RuntimeError("broken")], ids=str)
async def test_after_some_failures_in_a_row_it_is_not_asked_for_a_while(exc: Exception) -> None:
    world = World(Memu(first=failing(exc)))
    assert await world.degraded(5) == [*["memu_error"] * 3, *["breaker_open"] * 2]
    assert (len(world.memu.asked), world.told) == (3, ["open"])


async def test_then_one_question_tries_and_the_others_do_not_wait_for_it() -> None:
    world = World(Memu(first=AWAY))
    await world.degraded(3)
    world.now += timedelta(seconds=60)
    entered, go_on = anyio.Event(), anyio.Event()

    async def wait() -> None:
        entered.set()
        await go_on.wait()

    world.memu.first = wait
    found: list[Gathered] = []

    async def probe() -> None:
        found.append(await world.ask())

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(probe)
            await entered.wait()
            assert await world.degraded() == ["breaker_open"]
            go_on.set()
    assert (found[0].degraded, await world.degraded()) == ((), [])
    assert world.told == ["open", "half_open", "closed"]


async def test_missed_deadlines_shut_it_off_too() -> None:
    world = World(Memu(first=anyio.sleep_forever))
    assert await world.degraded(4, SOON_S) == [*["memu_timeout"] * 3, "breaker_open"]


async def test_what_is_too_slow_for_turns_may_do_for_searches() -> None:
    world = World(Memu(first=anyio.sleep_forever))
    await world.degraded(3, SOON_S)
    world.memu.first = anyio.lowlevel.checkpoint
    assert await world.degraded(bound_s=WAIT_S) == []
    assert await world.degraded(bound_s=SOON_S) == ["breaker_open"]


async def test_questions_that_it_does_not_want_do_not_shut_it_off() -> None:
    world = World(Memu(first=failing(DeliveryRefused("too long"))))
    assert await world.degraded(5) == ["memu_error"] * 5


async def test_whoever_goes_away_says_nothing_about_memu() -> None:
    world = World(Memu(first=AWAY))
    await world.degraded(3)
    world.now += timedelta(seconds=60)
    entered = anyio.Event()

    async def wait() -> None:
        entered.set()
        await anyio.sleep_forever()

    world.memu.first = wait
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.ask)
        await entered.wait()
        tasks.cancel_scope.cancel()
    world.memu.first = anyio.lowlevel.checkpoint
    assert await world.degraded() == [], "the next one may try"
