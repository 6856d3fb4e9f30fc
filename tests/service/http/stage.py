"""The whole HTTP layer over real stores, with turns that do what the test's message says.

The agent is left out: a turn is played by `_Players`, so that a test holds each moment in its hand.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import httpx
from fastapi import FastAPI

from gateway.application import create_app
from gateway.chat import Chat, ChatParts
from gateway.chat.quotas import quota_of
from gateway.conversations import migrations
from gateway.conversations.duty import Duty
from gateway.conversations.event_log import EventLog, open_event_log
from gateway.conversations.outputs import OutputFiles
from gateway.conversations.sql.approvals import ApprovalStore
from gateway.conversations.sql.client_objects import ClientObjectStore
from gateway.conversations.sql.client_turns import ClientTurnStore
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.duties import DutyStore
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.file_changes import FileChangeStore
from gateway.conversations.sql.schedules import ScheduleStore
from gateway.conversations.sql.turns import TurnStore
from gateway.conversations.sql.work_trees import WorkTreeStore
from gateway.engine.held_client import PoolLimits
from gateway.engine.pool import ClientPool
from gateway.engine.protocol import ClientSpec
from gateway.http.context import HttpLimits
from gateway.http.peers import LocalUsers
from gateway.http.tokens import make_token
from gateway.ids import ConversationId, NodeId
from gateway.journal.writer import Journal
from gateway.mcp_servers.accepted_tools import AcceptedTools
from gateway.mcp_servers.servers import McpServers
from gateway.model_access import Ping
from gateway.nodes import join
from gateway.observability.metrics import Metrics
from gateway.observability.paths import make_path_view_blocking
from gateway.services import Services
from gateway.settings import Settings
from gateway.skills import WorkspaceSkills
from gateway.trust import OWN_SKILLS, approvals_file
from gateway.turns.approvals import ApprovalDesk
from gateway.turns.conversation_memory import ConversationMemory, ConversationTools
from gateway.turns.lanes import Lanes, Ticket
from gateway.turns.workspaces import OpenWorkspaces
from gateway.turns.worktrees import Worktrees
from gateway.users.accounts import Accounts
from gateway.webhooks.opening import open_webhooks
from gateway.workspace import prepare_user_blocking
from gateway.workspaces import load_workspaces_blocking
from memory.clock import rfc3339, utc_now
from memory.service.assemble import open_memory
from memory.service.memory import Memory
from memory.service.plan import MemoryPlan
from memory.stores.sqlite.database import Database, migrations_of, open_database
from policies.calls import ToolCall
from policies.rules import shipped_rules
from policies.secrets import mask_secrets
from policies.tools import ToolGate
from tests.service.http.client import Client
from tests.support.asgi import served
from tests.support.builders import asked_about
from tests.support.scripted_engine import ScriptedEngine
from tests.support.services import RunningServices, running_services

LIMIT_S = 30
"""No wait of a test is longer."""
HOLD = "hold"
"""The turn begins, says "one " and waits to be released or stopped."""
DEAF = "deaf"
"""As `HOLD`, but does not hear that it should stop."""
ASK = "ask"
"""The turn asks for an approval and says what was decided."""
LONG = "long"
"""The turn says 3000 words at once."""

Json = dict[str, Any]
MEMORY_LISTS = ("injected", "suppressed", "degraded", "saved", "forgotten")
"""What a turn result tells of memory, besides the profile."""


class _Players:
    """Plays turns by their message."""

    def __init__(self, turns: TurnStore, approvals: ApprovalDesk) -> None:
        self._turns = turns
        self._approvals = approvals
        self.release = anyio.Event()
        self.started: dict[str, anyio.Event] = {}

    async def play(self, ticket: Ticket) -> None:
        at = utc_now()
        await self._turns.start(ticket.turn.id, at, epoch=ticket.events.epoch)
        ticket.events.emit("turn.started", model="staged", log_file=log_file_of(ticket.turn.id))
        outcome, reply = "answered", f"You said: {ticket.turn.message}"
        match ticket.turn.message.split()[0]:
            case "hold":
                outcome, reply = await self._hold(ticket)
            case "deaf":
                ticket.events.emit("text.delta", text="one ")
                await self.release.wait()
            case "ask":
                reply = await self._ask(ticket)
            case "long":
                for n in range(3000):
                    ticket.events.emit("text.delta", text=f"{n} ")
            case _:
                ticket.events.emit("text.delta", text=reply)
        result = result_of(ticket, reply, outcome)
        done = replace(
            ticket.turn, state="completed", started_at=at, finished_at=utc_now(), result=result
        )
        await ticket.events.complete(done, result)

    async def _hold(self, ticket: Ticket) -> tuple[str, str]:
        ticket.events.emit("text.delta", text="one ")
        async with anyio.create_task_group() as tasks:

            async def until_stopped() -> None:
                await ticket.control.wait_stop()
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_stopped)
            await self.release.wait()
            tasks.cancel_scope.cancel()
        return ("interrupted", "stopped") if ticket.control.is_stopping else ("answered", "one")

    async def _ask(self, ticket: Ticket) -> str:
        turn = ticket.turn
        call = ToolCall(name="Bash", input={"command": "rm a"}, cwd="/w", tool_use_id="tu_1")
        answer = await self._approvals.ask(
            asked_about(call, turn.user_id, turn.conversation_id, turn.id, at=utc_now()),
            epoch=ticket.events.epoch,
            announce=lambda one: ticket.events.emit("approval.requested", **one.fields()),
        )
        return answer.decision


def log_file_of(turn_id: str) -> str:
    return f"2026-11-20/{turn_id}.jsonl"


def result_of(ticket: Ticket, reply: str, outcome: str) -> Json:
    return {
        "conversation_id": ticket.turn.conversation_id,
        "turn_id": ticket.turn.id,
        "reply": reply,
        "outcome": outcome,
        "stop_reason": "end_turn",
        "notices": [],
        "tools": [],
        "memory": {**{name: [] for name in MEMORY_LISTS}, "profile": False},
        "changes": {"files": 0, "added": 0, "removed": 0, "complete": True},
        "model": "staged",
        "session_id": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "cost_usd": 0.0,
        "log_file": log_file_of(ticket.turn.id),
        "started_at": rfc3339(utc_now()),
        "finished_at": rfc3339(utc_now()),
        "duration_ms": 0,
    }


@dataclass(kw_only=True)
class Stage:
    """A running app, and the hands behind it."""

    app: FastAPI
    chat: Chat
    log: EventLog
    database: Database
    settings: Settings
    metrics: Metrics
    memory: Memory
    tools: ConversationTools
    tokens: Mapping[str, str]
    release: Callable[[], None]
    port: int | None = None
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port or 8000}"

    def client(self, user: str | None = None) -> Client:
        """A client of one user; None: without a token."""
        headers = {} if user is None else {"Authorization": f"Bearer {self.tokens[user]}"}
        transport = None if self.port else httpx.ASGITransport(self.app)
        client = Client(
            base_url=self.base_url,
            headers=headers,
            transport=transport,
            timeout=LIMIT_S,
            trust_env=False,
            verify=False,
        )
        self.clients.append(client)
        return client

    def readers_of(self, conversation_id: str) -> int:
        """How many subscriptions a conversation has."""
        channel = self.log.feed.channels.get(ConversationId(conversation_id))
        return channel.readers if channel is not None else 0


@asynccontextmanager
async def aclosing_database(database: Database) -> AsyncIterator[None]:
    """Close it in any case: its thread would keep the test run from ending."""
    try:
        yield
    finally:
        await database.close()


@asynccontextmanager
async def staged(
    directory: Path,
    *,
    users: tuple[str, ...] = (),
    accounts: bool = False,
    on_port: bool = False,
    limits: HttpLimits | None = None,
    max_turns: int = 100,
    local_users: LocalUsers | None = None,
    pings: Mapping[str, Ping] = MappingProxyType({}),
    **settings: Any,
) -> AsyncIterator[Stage]:
    """Run the app until the block ends; with `users` each needs their token, with `accounts` those
    of the database count.
    """
    tokens = await anyio.to_thread.run_sync(_write_tokens, directory / "tokens", users)
    chosen = Settings(
        workspace=directory / "workspace",
        data_dir=directory / "data",
        log_dir=directory / "logs",
        tokens_file=directory / "tokens" if users else None,
        users="on" if accounts else "off",
        **settings,
    )
    steps = await anyio.to_thread.run_sync(migrations_of, migrations.__name__)
    database = await open_database(directory / "test.sqlite3", steps)
    turns, events = TurnStore(database), EventStore(database)
    approvals = ApprovalDesk(
        ApprovalStore(database), timeout_s=chosen.approval_timeout_s, now=utc_now
    )
    players = _Players(turns, approvals)
    tools = ConversationTools(turns)
    await anyio.to_thread.run_sync(partial(chosen.data_dir.mkdir, exist_ok=True))
    workspaces = await anyio.to_thread.run_sync(load_workspaces_blocking, chosen)
    plan = MemoryPlan(
        data_dir=chosen.data_dir,
        workspace=chosen.workspace,
        mask=mask_secrets,
        serves_vectors=False,
        served_elsewhere=["vectors"],
    )
    async with (
        aclosing_database(database),
        open_memory(plan, now=utc_now, draw=lambda: 0.0) as memory,
        anyio.create_task_group() as tasks,
    ):
        metrics, engine = Metrics(), ScriptedEngine(directory / "workspace")
        ownership = await join(chosen, database, NodeId("stage"))
        duty = Duty(DutyStore(database), ownership.node, is_shared=False)
        webhooks = await open_webhooks(
            chosen,
            database,
            mask_secrets,
            duty,
            metrics.counting(metrics.webhook_deliveries_total),
            utc_now,
        )
        log = await open_event_log(events, turns)
        limits_of_pool = PoolLimits(
            max_live=2, prewarmed=0, idle_s=60, stale_grace_s=20, max_memory_bytes=10**12
        )
        lanes = Lanes(players.play, tasks)
        pool = ClientPool(engine, ClientSpec, limits_of_pool, tasks)
        opener = OpenWorkspaces(
            workspaces,
            shipped_rules(),
            make_gate=lambda root, rules, _skills: ToolGate(root, rules=rules),
            make_paths=make_path_view_blocking,
            make_skills=partial(WorkspaceSkills, approvals=approvals_file(chosen.data_dir)),
            prepare=partial(prepare_user_blocking, skills_source=OWN_SKILLS),
        )
        store = ConversationStore(database)
        accounts_of_users = Accounts(database, now=utc_now)
        chat = Chat(
            ChatParts(
                conversations=store,
                turns=turns,
                file_changes=FileChangeStore(database),
                client_objects=ClientObjectStore(database),
                client_turns=ClientTurnStore(database),
                schedules=ScheduleStore(database),
                events=events,
                outputs=OutputFiles(chosen.data_dir / "outputs", mask_secrets),
                log=log,
                lanes=lanes,
                ownership=ownership,
                duty=duty,
                pool=pool,
                engine=engine,
                approvals=approvals,
                worktrees=Worktrees(
                    opener,
                    WorkTreeStore(database),
                    mask_secrets,
                    store.missing,
                    now=utc_now,
                    is_on=False,
                ),
                memory=ConversationMemory(
                    tools,
                    take=memory.queue.put,
                    drop_pending=memory.chronicle.delete_conversation_context,
                ),
                max_turns=max_turns,
                now=utc_now,
                record=accounts_of_users.record,
                runs_schedules=chosen.schedules == "on",
                max_schedules=chosen.max_schedules,
                quota=quota_of(chosen),
            )
        )
        tasks.start_soon(log.run)
        services = Services(
            settings=chosen,
            chat=chat,
            workspaces=opener,
            engine=engine,
            pool=pool,
            log=log,
            lanes=lanes,
            ownership=ownership,
            duty=duty,
            journal=Journal(
                chosen.log_dir, mask=mask_secrets, on_lost=metrics.journal_lines_lost_total.inc
            ),
            metrics=metrics,
            pings=pings,
            demo=True,
            model="candor-demo",
            background=tasks,
            mcp_servers=McpServers((), AcceptedTools(chosen.data_dir)),
            webhooks=webhooks,
            memory=memory,
            accounts=accounts_of_users,
        )
        make_app = partial(create_app, services, limits=limits, local_users=local_users)
        app = await anyio.to_thread.run_sync(make_app)
        stage = Stage(
            app=app,
            chat=chat,
            log=log,
            database=database,
            settings=chosen,
            metrics=metrics,
            memory=memory,
            tools=tools,
            tokens=tokens,
            release=players.release.set,
        )
        try:
            if on_port:
                async with served(app) as stage.port:
                    yield stage
            else:
                yield stage
        finally:
            for client in stage.clients:
                await client.aclose()
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def one_client(directory: Path, **options: Any) -> AsyncIterator[Client]:
    """Run the app, and give a client of it; see `staged`."""
    async with staged(directory, **options) as stage:
        yield stage.client()


@asynccontextmanager
async def two_clients(directory: Path, **options: Any) -> AsyncIterator[tuple[Client, Client]]:
    """Run the app with tokens, and give the clients of Ada and of Bob; see `staged`."""
    async with staged(directory, users=("ada", "bob"), **options) as stage:
        yield stage.client("ada"), stage.client("bob")


@asynccontextmanager
async def running(root: Path, **options: Any) -> AsyncIterator[tuple[RunningServices, Client]]:
    """Run the app over all services, with the scripted engine, and give a client of it."""
    async with running_services(root, **options) as services:
        app = await anyio.to_thread.run_sync(partial(create_app, services))
        transport = httpx.ASGITransport(app)
        async with Client(base_url="http://127.0.0.1", transport=transport) as client:
            yield services, client


def _write_tokens(path: Path, users: tuple[str, ...]) -> dict[str, str]:
    made = {user: make_token(user) for user in users}
    path.touch(mode=0o600)
    path.write_text("# made for a test\n\n" + "\n".join(line for _, line in made.values()))
    return {user: token for user, (token, _) in made.items()}


def assert_error(response: httpx.Response, status: int, code: str) -> Json:
    """Check the one error shape and give what is inside; at another protocol's door with its own
    fields around ours.
    """
    is_vendors = response.request.url.path.startswith("/anthropic/")
    if is_vendors and status in {409, 422}:
        status = 400
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    error: Json = body["error"]
    if is_vendors:
        assert body.pop("type") == "error"
        assert error.pop("type").endswith(("_error", "_large"))
        names = {body.pop("request_id"), response.headers["request-id"]}
        assert names == {error["request_id"]}
    assert set(body) == {"error"}
    assert set(error) == {"code", "message", "retryable", "request_id", "details"}
    assert error["code"] == code
    assert error["request_id"] == response.headers["x-request-id"]
    assert isinstance(error["retryable"], bool)
    assert response.headers.get("x-should-retry") == (None if error["retryable"] else "false")
    assert isinstance(error["details"], dict)
    message = error["message"]
    assert message[0].isupper() or message[0] == "`"
    assert message.endswith((".", "`."))
    assert "Traceback" not in message
    assert "/" not in message.replace("application/json", "").replace("multipart/form-data", "")
    return error
