"""The whole gateway below HTTP, in process, on the scripted engine."""

import json
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from gateway.assemble import open_services
from gateway.conversations.model import ConversationChange, Decision, Turn, TurnEvent
from gateway.ids import LOCAL_USER, ConversationId, NodeId, TurnId
from gateway.lost_data import DATABASE
from gateway.mcp_servers.plan import ServerPlan
from gateway.model_access import ModelAccess
from gateway.observability.tracing import OpenTracer
from gateway.private_files import make_directories_blocking
from gateway.services import Services
from gateway.settings import Settings
from gateway.turns.approval_answer import Reply
from gateway.turns.requests import Accepted, ChatRequest, ConversationView
from memory.recall.query import MemoryReader
from memory.remote.small_model import AskModel
from memory.service.memory import Memory
from tests.support.scripted_engine import ScriptedEngine


def script(*steps: dict[str, Any]) -> str:
    """Write a message that makes the scripted engine and the demo model do exactly these steps."""
    return f"```candor-script\n{json.dumps(steps)}\n```"


HANG = script({"text": "I begin"}, {"hang": True})
"""A message whose turn runs until something ends it."""


def settings_below(root: Path, **settings: Any) -> Settings:
    """Return settings whose directories all lie below `root`."""
    given = {"workspace": root / "ws", "data_dir": root / "data", "log_dir": root / "logs"}
    quiet: dict[str, Any] = {
        "prewarmed_clients": 0,
        "shutdown_grace_s": 0.0,
        "recall_deadline_ms": 20_000,
        "embedder": "none",
    }
    return Settings(**{**given, **quiet, **settings})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServices(Services):
    """The parts of a running server, used as this machine's user uses them."""

    @classmethod
    def of(cls, services: Services) -> "RunningServices":
        return cls(**{field.name: getattr(services, field.name) for field in fields(services)})

    @property
    def scripted(self) -> ScriptedEngine:
        """The engine, which must be the scripted one."""
        assert isinstance(self.engine, ScriptedEngine)
        return self.engine

    @property
    def open_memory(self) -> Memory:
        """The memory, which must be on."""
        assert self.memory is not None
        return self.memory

    async def send(self, message: str, conversation_id: str | None = None, **more: Any) -> Accepted:
        """Send a message and wait until it is accepted."""
        request = ChatRequest(message=message, conversation_id=conversation_id, **more)
        return await self.chat.intake.accept(LOCAL_USER, request)

    async def begin(self, message: str = HANG, conversation_id: str | None = None) -> Accepted:
        """Send a message and wait until the agent has produced text."""
        accepted = await self.send(message, conversation_id)
        await self.begun(accepted)
        return accepted

    async def begun(self, accepted: Accepted) -> None:
        """Wait until the agent has said something."""
        await self.events_of(accepted, until="text.delta")

    async def result_of(self, accepted: Accepted) -> dict[str, Any]:
        """Wait for a turn's result."""
        with anyio.fail_after(30):
            return await self.chat.reader.result(LOCAL_USER, accepted.turn_id)

    async def ask(
        self, message: str, conversation_id: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Send a message and wait for its result."""
        return await self.result_of(await self.send(message, conversation_id, **more))

    async def play(
        self, message: str
    ) -> tuple[dict[str, Any], list[TurnEvent], list[dict[str, Any]]]:
        """Send a message; return its turn's result, events and lines of the journal."""
        accepted = await self.send(message)
        result = await self.result_of(accepted)
        return result, await self.events_of(accepted), await self.journal_of(result)

    async def interrupt(self, conversation_id: str) -> str:
        """Stop a conversation's running turn; return its id."""
        return await self.chat.intake.interrupt(LOCAL_USER, conversation_id)

    async def stop(self, accepted: Accepted) -> dict[str, Any]:
        """Stop a turn and wait for its result."""
        await self.interrupt(accepted.conversation_id)
        return await self.result_of(accepted)

    async def events_of(self, accepted: Accepted, until: str = "turn.completed") -> list[TurnEvent]:
        """Read a turn's events from its first one up to one of a kind."""
        found: list[TurnEvent] = []
        with anyio.fail_after(30):
            async with self.chat.reader.follow_turn(accepted) as subscription:
                while not any(event.type == until for event in found):
                    found += await subscription.next(5)
        return found

    async def question_of(self, accepted: Accepted) -> dict[str, Any]:
        """Wait until a person is asked about a call of a turn; return what they are shown."""
        events = await self.events_of(accepted, until="approval.requested")
        return of_kind(events, "approval.requested")[0]

    async def answer(
        self, question: dict[str, Any], decision: Decision, **more: Any
    ) -> TurnId | None:
        """Answer a question; return the turn in which the answer counts."""
        reply = Reply(decision=decision, **more)
        return await self.chat.approvals.answer(LOCAL_USER, question["approval_id"], reply)

    async def pending_in(self, accepted: Accepted) -> dict[str, Any]:
        """Wait until a turn has a pending approval that was not answered; return it."""
        with anyio.fail_after(30):
            while True:
                for question in await self.asked():
                    if (question["turn_id"], question["state"]) == (accepted.turn_id, "pending"):
                        return question
                await anyio.sleep(0.01)

    async def asked(self) -> list[dict[str, Any]]:
        """List the approvals that this machine's user can answer, or lost lately."""
        return await self.chat.approvals.listed(LOCAL_USER)

    async def journal_of(self, result: dict[str, Any]) -> list[dict[str, Any]]:
        """Read the journal of a turn that has ended."""
        path = anyio.Path(self.settings.log_dir) / result["log_file"]
        return [json.loads(line) for line in (await path.read_text("utf-8")).splitlines()]

    async def messages_of(self, conversation_id: str, limit: int = 9) -> Sequence[Turn]:
        """Return a conversation's last turns, oldest first."""
        return await self.chat.conversations.messages(
            LOCAL_USER, conversation_id, limit=limit, before_seq=None
        )

    async def create(self, **options: Any) -> ConversationId:
        """Create a conversation."""
        return await self.chat.conversations.create(LOCAL_USER, **options)

    async def change(self, conversation_id: str, **fields: Any) -> None:
        """Change some fields of a conversation."""
        change = ConversationChange(**fields)
        await self.chat.conversations.change(LOCAL_USER, conversation_id, change)

    async def view(self, conversation_id: str) -> ConversationView:
        """Return a conversation as a front end sees it."""
        return await self.chat.conversations.get(LOCAL_USER, conversation_id)

    async def views(self) -> Sequence[ConversationView]:
        """List all conversations."""
        page, _ = await self.chat.conversations.page(
            LOCAL_USER, limit=1000, cursor=None, query=None
        )
        return page

    async def fork(self, conversation_id: str, turn_id: str) -> ConversationId:
        """Branch off after a turn."""
        return await self.chat.conversations.fork(LOCAL_USER, conversation_id, turn_id)

    async def delete(self, conversation_id: str) -> None:
        """Delete a conversation."""
        await self.chat.conversations.delete(LOCAL_USER, conversation_id)

    async def copy_as_after_a_crash(self, root: Path) -> None:
        """Copy what is on the disk now, as a killed process would leave it, below another root."""
        await anyio.to_thread.run_sync(_copy, self.settings, root)

    def same_sessions(self) -> Callable[[Path], ScriptedEngine]:
        """Make an engine for a restart: what agents remember is on the disk and still there."""
        sessions = self.scripted.sessions

        def make(workspace: Path) -> ScriptedEngine:
            engine = ScriptedEngine(workspace)
            engine.sessions = sessions
            return engine

        return make

    def assert_nothing_is_left(self) -> None:
        """Fail where an ended turn left a control, a lane, a reader, a slot or a busy client behind."""
        pool = self.pool
        assert self.lanes.live_count == 0
        assert self.lanes.is_empty
        assert self.log.feed.channels == {}
        assert pool._slots.value == self.settings.max_live_clients - pool.live_count  # noqa: SLF001
        assert not any(held.busy for held in pool._held.values())  # noqa: SLF001


@asynccontextmanager
async def running_services(
    root: Path,
    *,
    memory: MemoryReader | None = None,
    make_engine: Callable[[Path], ScriptedEngine] = ScriptedEngine,
    ask_model: AskModel | None = None,
    mcp_servers: Sequence[ServerPlan] = (),
    open_tracer: OpenTracer | None = None,
    node: str = "local",
    beside: Path | None = None,
    **settings: Any,
) -> AsyncIterator[RunningServices]:
    """Open the services below `root`; open them there again and they are as after a restart.

    The workspace holds `a.txt` with the text `alpha`. With `beside` they share the database of the
    services below there, as another `node`. Open it in the test's body, not in a fixture.
    """
    given = settings_below(root, **settings)
    await anyio.to_thread.run_sync(_make_directories, given)
    if beside is not None:
        shared = settings_below(beside).data_dir / DATABASE
        await anyio.to_thread.run_sync((given.data_dir / DATABASE).symlink_to, shared)

    def make(_: TaskGroup, _transcripts: object = None) -> ScriptedEngine:
        return make_engine(given.workspace)

    access = ModelAccess(
        demo=True,
        model="scripted",
        secrets=("known-secret-4711",),
        ask_model=ask_model,
        mcp_servers=mcp_servers,
    )
    async with open_services(
        given, make, access, memory=memory, open_tracer=open_tracer, node_id=NodeId(node)
    ) as services:
        yield RunningServices.of(services)


def _make_directories(settings: Settings) -> None:
    make_directories_blocking(settings)
    settings.workspace.mkdir(exist_ok=True)
    (settings.workspace / "a.txt").write_text("alpha", encoding="utf-8")


def _copy(settings: Settings, root: Path) -> None:
    copy = settings_below(root)
    for name in ("workspace", "data_dir", "log_dir"):
        shutil.copytree(getattr(settings, name), getattr(copy, name))


class Held:
    """Holds what comes to it until it is let go; then it fails, if an error is given."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.came = anyio.Event()
        self.let_go = anyio.Event()
        self._failure = failure

    async def hold(self) -> None:
        self.came.set()
        await self.let_go.wait()
        if self._failure is not None:
            raise self._failure


def hold_calls(
    monkeypatch: pytest.MonkeyPatch,
    method: Callable[..., Any],
    where: Callable[..., bool] = lambda *_: True,
    *,
    failure: Exception | None = None,
    once: bool = False,
) -> Held:
    """Block the calls of a method with such arguments, or only the next of them."""
    held, path = Held(failure), f"{method.__module__}.{method.__qualname__}"

    async def call(*args: Any, **options: Any) -> Any:
        if where(*args[1:]):
            if once:
                monkeypatch.setattr(path, method)
            await held.hold()
        return await method(*args, **options)

    monkeypatch.setattr(path, call)
    return held


def kinds(events: Sequence[TurnEvent]) -> list[str]:
    """List the events' kinds."""
    return [event.type for event in events]


def of_kind(events: Sequence[TurnEvent], kind: str) -> list[dict[str, Any]]:
    """Return the data of the events of one kind."""
    return [json.loads(event.data) for event in events if event.type == kind]
