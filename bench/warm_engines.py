"""Warm turns on SQLite and on PostgreSQL, which syncs its commits, in turns in one run.

On a busy machine the times to the first text say little; the processor's times, and the statements on the way to it,
say more. The statements are those that PostgreSQL's log has of a few further turns.
"""

import re
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio
import psycopg

from bench.report import median, percentile, save, show
from bench.server import Gateway, connection, running_gateway
from bench.stand_in import stand_in
from bench.synced_postgres import server_s, sync_commits
from bench.warm_turns import SCRIPT, model_at, new_conversation
from tests.conformance.suites.conversation_values import conversation, event, turn
from tests.support import postgres
from tests.support.stores import POSTGRES_MIGRATIONS, open_file, stores_on

SQLITE, POSTGRES = "SQLite", "PostgreSQL"
MEMORIES = {"memory off": False, "empty memory": True}
_ROUNDS_BEFORE = 12
"""So that most connections have their statements prepared."""
_SETTLE_S = 0.7
_LOGGED = 5
_IDLE_S = 10.0
_STATEMENT = re.compile(r"^(\d+\.\d+) LOG:  (?:execute [^:]+|statement): (\w+)", re.MULTILINE)
_LOGGING = {"log_statement": "all", "log_line_prefix": "%n "}


@dataclass
class Side:
    """A conversation of a server, and what its turns took."""

    engine: str
    gateway: Gateway
    conversation_id: str
    first_ms: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    postgres_s: float = 0.0
    verbs: list[list[str]] = field(default_factory=list)
    """The first words of the statements before the first text, of each logged turn."""

    async def ask(self, number: int) -> float:
        async with connection(self.gateway) as link:
            message = f"Hello number {number}\n\n{SCRIPT}"
            body = {"message": message, "conversation_id": self.conversation_id}
            seconds, _ = await link.ask(body)
        return seconds

    async def measure(self, number: int) -> None:
        cpu_s, postgres_s = self._spent_s(), await anyio.to_thread.run_sync(server_s)
        self.first_ms.append(1000 * await self.ask(number))
        await anyio.sleep(_SETTLE_S)
        self.cpu_s += self._spent_s() - cpu_s
        self.postgres_s += await anyio.to_thread.run_sync(server_s) - postgres_s

    async def log(self, number: int) -> None:
        file = anyio.Path(postgres.socket_directory() / "log")
        began = len(await file.read_bytes())
        began_s = time.time()
        until_s = began_s + await self.ask(number)
        await anyio.sleep(_SETTLE_S)
        logged = (await file.read_bytes())[began:].decode()
        self.verbs.append([verb for at, verb in _STATEMENT.findall(logged) if float(at) <= until_s])

    def _spent_s(self) -> float:
        return float(sum(self.gateway.process.cpu_times()[:2]))

    def figures(self, idle_s: float) -> dict[str, float]:
        rounds = len(self.first_ms)
        found = {
            "first text p50, ms": median(self.first_ms),
            "p95, ms": percentile(self.first_ms, 0.95),
            "server's processor a turn, ms": 1000 * self.cpu_s / rounds,
        }
        if self.engine == POSTGRES:
            found["PostgreSQL's, ms"] = 1000 * (self.postgres_s / rounds - idle_s)
            found["statements before it"] = median([len(verbs) for verbs in self.verbs])
            found["commits before it"] = median([verbs.count("COMMIT") for verbs in self.verbs])
        return found


async def run(rounds: int) -> None:
    """Measure, print and save."""
    sync_commits()
    with tempfile.TemporaryDirectory() as name:
        turns = await _turns(Path(name), rounds)
        stored = await _stored(Path(name), rounds * 10)
    header = ["", *turns[next(reversed(turns))]]
    rows = [
        [side, *(f"{of[column]:.1f}" if column in of else "–" for column in header[1:])]
        for side, of in turns.items()
    ]
    show(f"Warm turns on both engines, {rounds} each", header, rows)
    rows = [[what, *(f"{value:.2f}" for value in of.values())] for what, of in stored.items()]
    show("Stored, ms", ["", *next(iter(stored.values()))], rows)
    save("warm_engines", {"rounds": rounds, "turns": turns, "stored_ms": stored})


async def _turns(directory: Path, rounds: int) -> dict[str, dict[str, float]]:
    async with AsyncExitStack() as stack:
        model = model_at(await stack.enter_async_context(stand_in()))
        url = stack.enter_context(postgres.new_database_blocking("bench"))
        sides: dict[str, Side] = {}
        for engine, settings in {SQLITE: {}, POSTGRES: {"CANDOR_DATABASE_URL": url}}.items():
            own = directory / engine
            await anyio.Path(own).mkdir()
            gateway = await stack.enter_async_context(running_gateway(own, **model, **settings))
            for memory, is_on in MEMORIES.items():
                known = await new_conversation(gateway, has_memory=is_on)
                sides[f"{engine}, {memory}"] = Side(engine, gateway, known)
        for number in range(_ROUNDS_BEFORE):
            await _each(sides, number, lambda side, number: side.ask(number))
        before_s = await anyio.to_thread.run_sync(server_s)
        await anyio.sleep(_IDLE_S)
        after_s = await anyio.to_thread.run_sync(server_s)
        for number in range(rounds):
            await _each(sides, number, Side.measure)
        await _configure(_LOGGING)
        for number in range(_LOGGED):
            await _each(sides, number, Side.log)
    idle_s = (after_s - before_s) / _IDLE_S * _SETTLE_S
    return {name: side.figures(idle_s) for name, side in sides.items()}


async def _each(
    sides: Mapping[str, Side], number: int, act: Callable[[Side, int], Awaitable[object]]
) -> None:
    """Do it with one side after the other, each round with another one first."""
    order = list(sides.values())
    first = number % len(order)
    for side in (*order[first:], *order[:first]):
        await act(side, number)


async def _configure(settings: Mapping[str, str]) -> None:
    def configure_blocking() -> None:
        with psycopg.connect(postgres.server_url(), autocommit=True) as link:
            for name, value in settings.items():
                link.execute(f"ALTER SYSTEM SET {name} TO '{value}'")  # type: ignore[call-overload]
            link.execute("SELECT pg_reload_conf()")

    await anyio.to_thread.run_sync(configure_blocking)
    await anyio.sleep(_SETTLE_S)


async def _stored(directory: Path, count: int) -> dict[str, dict[str, float]]:
    """Return what it takes to accept a turn with its first event, and to store an event."""
    taken: dict[str, dict[str, list[float]]] = {
        what: {SQLITE: [], POSTGRES: []} for what in ("a turn is accepted", "an event")
    }
    with postgres.empty_schema_blocking("bench") as schema:
        async with (
            open_file(directory) as file,
            postgres.open_schema(schema, POSTGRES_MIGRATIONS) as database,
        ):
            engines = {SQLITE: stores_on(file), POSTGRES: stores_on(database)}
            for stores in engines.values():
                await stores.turns.accept(turn(), create=conversation())
            for number in range(2, count):
                new = replace(turn(f"{number:026}"), message=f"Hello number {number}")
                first, second = (event(2 * number + n, new, n) for n in (1, 2))
                for engine, stores in engines.items():
                    accept = partial(stores.turns.accept, new, events=[first])
                    append = partial(stores.events.append, [second])
                    for what, act in zip(taken, (accept, append), strict=True):
                        begun = time.perf_counter()
                        await act()
                        taken[what][engine].append(1000 * (time.perf_counter() - begun))
    return {what: _shares(of) for what, of in taken.items()}


def _shares(of: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {
        f"{engine}, {name}": percentile(values, share)
        for engine, values in of.items()
        for name, share in (("p50", 0.5), ("p95", 0.95))
    }
