"""The whole gateway below HTTP, in process, on the scripted engine."""

import json
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from gateway.assemble import ModelAccess, Services, make_directories_blocking, open_services
from gateway.conversations.model import Turn, TurnEvent
from gateway.ids import LOCAL_USER
from gateway.settings import Settings
from gateway.turns.requests import Accepted, ChatRequest
from memory.context import MemoryReader
from memory.memory import Memory
from tests.support.scripted_engine import ScriptedEngine


def script(*steps: dict[str, Any]) -> str:
    """Write a message that makes the scripted engine and the demo model do exactly these steps."""
    return f"```candor-script\n{json.dumps(steps)}\n```"


def settings_below(root: Path, **settings: Any) -> Settings:
    """Return settings whose directories all lie below `root`."""
    given = {"workspace": root / "ws", "data_dir": root / "data", "log_dir": root / "logs"}
    quiet = {"prewarmed_clients": 0, "shutdown_grace_s": 0.0, "recall_deadline_ms": 20_000}
    return Settings(**{**given, **quiet, **settings})


def memory_of(services: Services) -> Memory:
    """Return the memory, which must be on."""
    assert services.memory is not None
    return services.memory


def scripted_engine(services: Services) -> ScriptedEngine:
    """Return the engine as what it is."""
    assert isinstance(services.engine, ScriptedEngine)
    return services.engine


@asynccontextmanager
async def running_services(
    root: Path,
    *,
    memory: MemoryReader | None = None,
    make_engine: Callable[[Path], ScriptedEngine] = ScriptedEngine,
    **settings: Any,
) -> AsyncIterator[Services]:
    """Open the services below `root`; open them there again and they are as after a restart.

    The workspace holds `a.txt` with the text `alpha`. Open it in the test's body, not in a fixture.
    """
    given = settings_below(root, **settings)
    await anyio.to_thread.run_sync(_make_directories, given)

    def make(_: TaskGroup) -> ScriptedEngine:
        return make_engine(given.workspace)

    access = ModelAccess(demo=True, model="scripted", secrets=("known-secret-4711",))
    async with open_services(given, make, access, memory=memory) as services:
        yield services


def _make_directories(settings: Settings) -> None:
    make_directories_blocking(settings)
    settings.workspace.mkdir(exist_ok=True)
    (settings.workspace / "a.txt").write_text("alpha", encoding="utf-8")


HANG = script({"text": "I begin"}, {"hang": True})
"""A message whose turn runs until something ends it."""


async def send(
    services: Services, message: str, conversation_id: str | None = None, **more: Any
) -> Accepted:
    """Have a message accepted."""
    request = ChatRequest(message=message, conversation_id=conversation_id, **more)
    return await services.chat.intake.accept(LOCAL_USER, request)


async def result_of(services: Services, accepted: Accepted) -> dict[str, Any]:
    """Wait for a turn's result."""
    with anyio.fail_after(30):
        return await services.chat.reader.result(LOCAL_USER, accepted.turn_id)


async def ask(
    services: Services, message: str, conversation_id: str | None = None, **more: Any
) -> dict[str, Any]:
    """Send a message and wait for its result."""
    return await result_of(services, await send(services, message, conversation_id, **more))


async def messages_of(services: Services, conversation_id: str) -> Sequence[Turn]:
    """Return a conversation's last turns, oldest first."""
    return await services.chat.conversations.messages(
        LOCAL_USER, conversation_id, limit=9, before_seq=None
    )


async def events_of(
    services: Services, accepted: Accepted, until: str = "turn.completed"
) -> list[TurnEvent]:
    """Read a turn's events from its first one up to one of a kind."""
    found: list[TurnEvent] = []
    with anyio.fail_after(30):
        async with services.chat.reader.follow_turn(accepted) as subscription:
            while not any(event.type == until for event in found):
                found += await subscription.next(5)
    return found


async def begun(services: Services, accepted: Accepted) -> None:
    """Wait until the agent has said something."""
    await events_of(services, accepted, until="text.delta")


class Held:
    """Holds what comes to it until it is let go."""

    def __init__(self) -> None:
        self.came = anyio.Event()
        self.let_go = anyio.Event()

    async def hold(self) -> None:
        self.came.set()
        await self.let_go.wait()


def kinds(events: Sequence[TurnEvent]) -> list[str]:
    """List the events' kinds."""
    return [event.type for event in events]


def of_kind(events: Sequence[TurnEvent], kind: str) -> list[dict[str, Any]]:
    """Return the data of the events of one kind."""
    return [json.loads(event.data) for event in events if event.type == kind]


async def journal_of(services: Services, result: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the journal of a turn that has ended."""
    path = anyio.Path(services.settings.log_dir) / result["log_file"]
    return [json.loads(line) for line in (await path.read_text(encoding="utf-8")).splitlines()]


async def copy_as_after_a_crash(services: Services, root: Path) -> None:
    """Copy what is on the disk now, as a killed process would leave it, below another root."""
    await anyio.to_thread.run_sync(_copy, services.settings, root)


def _copy(settings: Settings, root: Path) -> None:
    copy = settings_below(root)
    for source, target in (
        (settings.workspace, copy.workspace),
        (settings.data_dir, copy.data_dir),
        (settings.log_dir, copy.log_dir),
    ):
        shutil.copytree(source, target)


def same_sessions(services: Services) -> Callable[[Path], ScriptedEngine]:
    """Make an engine for a restart: what agents remember is on the disk and still there."""
    sessions = scripted_engine(services).sessions

    def make(workspace: Path) -> ScriptedEngine:
        engine = ScriptedEngine(workspace)
        engine.sessions = sessions
        return engine

    return make


def assert_nothing_is_left(services: Services) -> None:
    """Fail where an ended turn left a control, a lane, a reader, a slot or a busy client behind."""
    pool = services.pool
    assert services.lanes.live_count == 0
    assert services.lanes.is_empty
    assert services.log.feed.readers_of() == 0
    assert pool._slots.value == services.settings.max_live_clients - pool.live_count  # noqa: SLF001
    assert not any(held.busy for held in pool._held.values())  # noqa: SLF001
