"""Assemble all parts of the server, and close them in reverse order within bounds.

    database → event log → journal → engine → pool → lanes → chat

A start after a crash ends the agent processes that were left, completes the turns that were cut
off, and queues those that waited.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import anyio
from anyio.abc import TaskGroup

from gateway.chat import Chat, ChatParts
from gateway.chat.quotas import quota_of
from gateway.conversations.database_clock import DatabaseClock
from gateway.conversations.duty import Duty
from gateway.conversations.event_log import EventLog, open_event_log
from gateway.conversations.outputs import OutputFiles
from gateway.conversations.sql.agent_transcripts import transcripts_in
from gateway.conversations.sql.approvals import ApprovalStore
from gateway.conversations.sql.client_objects import ClientObjectStore
from gateway.conversations.sql.client_turns import ClientTurnStore
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.duties import DutyStore
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.file_changes import FileChangeStore
from gateway.conversations.sql.record_queue import RecordQueue
from gateway.conversations.sql.schedules import ScheduleStore
from gateway.conversations.sql.turns import TurnStore
from gateway.conversations.sql.work_trees import WorkTreeStore
from gateway.engine.held_client import pool_limits
from gateway.engine.pool import ClientPool
from gateway.engine.protocol import Engine
from gateway.ids import NodeId, UserId
from gateway.instance import InstanceLock
from gateway.journal.writer import Journal
from gateway.mcp_servers.accepted_tools import MCP_FOLDER, AcceptedTools
from gateway.mcp_servers.servers import McpServers
from gateway.memory import (
    ServerMemory,
    open_server_memory,
    refuse_local_memory,
)
from gateway.model_access import MakeEngine, ModelAccess
from gateway.nodes import be_watched_by_a_program, follow_others, join, locks_of
from gateway.observability.metrics import KNOWN_TOOLS, Metrics
from gateway.observability.paths import PathView
from gateway.observability.side_query_trace import TracedModel
from gateway.observability.tracing import OpenTracer, Tracer
from gateway.rules import load_policy_blocking
from gateway.services import Services
from gateway.settings import Settings
from gateway.shared_approvals import SharedApprovals, open_shared_approvals
from gateway.storage import open_storage, sqlite_steps
from gateway.turns.approvals import ApprovalDesk
from gateway.turns.call_review import CallReviewer
from gateway.turns.claim_check import ClaimChecker
from gateway.turns.client_lease import usual_spec
from gateway.turns.conversation_memory import OWN_TOOLS, ConversationTools
from gateway.turns.further_tools import FurtherTools
from gateway.turns.lanes import Lanes
from gateway.turns.ownership import Ownership, connect
from gateway.turns.record import RecordWorker
from gateway.turns.runner import TurnLimits, TurnParts, TurnRunner
from gateway.turns.sanitizer import OutputSanitizer
from gateway.turns.turn_recovery import TurnRecovery, TurnStores
from gateway.turns.turn_trace import BeginTrace, TurnTracing, no_traces
from gateway.turns.workspace_lock import LocksOfServers
from gateway.turns.workspaces import OpenWorkspaces
from gateway.turns.worktrees import Worktrees
from gateway.users.accounts import Accounts
from gateway.web_fetch.tools import web_tools
from gateway.webhooks.opening import open_webhooks
from gateway.workspace_parts import (
    notes_of,
    open_workspaces,
    ping_workspaces,
    view_paths_blocking,
)
from gateway.workspaces import Workspaces, load_workspaces_blocking
from memory.background import keep_running
from memory.clock import Now, utc_now
from memory.intents.masking import Mask
from memory.recall.query import MemoryReader
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.integrity import check_integrity
from policies.rules import Rules
from policies.secrets import mask_secrets

_log = logging.getLogger(__name__)

_CLOSE_S = 15.0
"""How long closing the agents may take; the pool needs less."""


@asynccontextmanager
async def open_services(
    settings: Settings,
    make_engine: MakeEngine,
    access: ModelAccess,
    *,
    memory: MemoryReader | None = None,
    open_tracer: OpenTracer | None = None,
    node_id: NodeId | None = None,
) -> AsyncIterator[Services]:
    """Open everything that serves turns; on leaving, end running turns and close it.

    `node_id` is this server's among those of the database; None: that of the data directory.

    The directories exist already. Raise `StartError` if another server uses the data directory, or
    the policy file has a mistake; `StoreUnavailable` if the database cannot be opened.
    """
    rules = await anyio.to_thread.run_sync(load_policy_blocking, settings)
    workspaces = await anyio.to_thread.run_sync(load_workspaces_blocking, settings)
    lock = await anyio.to_thread.run_sync(InstanceLock, settings.data_dir)
    async with AsyncExitStack() as stack:
        stack.callback(lock.close)
        database = await open_storage(settings, serves=True)
        stack.push_async_callback(database.close)
        clock = DatabaseClock(database)
        ownership = await join(settings, database, node_id, clock)
        stack.push_async_callback(ownership.end)
        duty = await _duty(settings, database, ownership)
        shared = await open_shared_approvals(settings, database, clock.now)
        metrics = Metrics()
        tracer = None
        if open_tracer is not None:
            on_lost = metrics.trace_spans_lost_total.inc
            tracer = await stack.enter_async_context(open_tracer(on_lost))
            access = _traced(access, tracer, settings.side_model)
        users: set[UserId] = set()
        mask = partial(mask_secrets, known=access.secrets)
        remembered = await stack.enter_async_context(
            open_server_memory(
                settings,
                metrics,
                mask=mask,
                secrets=access.secrets,
                ask_model=access.ask_model,
                has_history=await database.row("SELECT 1 FROM turns LIMIT 1") is not None,
                user_notes=notes_of(workspaces, users),
                duty=duty,
            )
        )
        parts = _Parts(
            settings=settings,
            access=access,
            memory=remembered,
            reader=memory,
            database=database,
            ownership=ownership,
            now=utc_now if database.engine == "sqlite" else clock.now,
            locks=locks_of(settings, database, ownership.node),
            duty=duty,
            shared=shared,
            rules=rules,
            workspaces=workspaces,
            users=users,
            metrics=metrics,
            mask=mask,
            paths=await anyio.to_thread.run_sync(view_paths_blocking, settings, settings.workspace),
            tracer=tracer,
        )
        async with anyio.create_task_group() as background:
            if isinstance(database, Database):  # PostgreSQL looks after its own files
                await background.start(check_integrity, database, await sqlite_steps())
            services = await _build(parts, make_engine, background)
            try:
                yield services
            finally:
                with anyio.CancelScope(shield=True):
                    if not services.chat.intake.is_closed:
                        await services.end_turns()
                    with anyio.move_on_after(_CLOSE_S):
                        await services.pool.close()
                background.cancel_scope.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What the services are built from."""

    settings: Settings
    access: ModelAccess
    memory: ServerMemory
    reader: MemoryReader | None
    """Replaces memory's own."""
    database: SqlDatabase
    ownership: Ownership
    now: Now
    """The present by the clock of the database, which all its servers share."""
    locks: LocksOfServers | None
    """Of workspaces that other servers use, too."""
    duty: Duty
    shared: SharedApprovals | None
    rules: Rules
    workspaces: Workspaces
    users: set[UserId]
    """Gets those whose own workspaces were opened."""
    metrics: Metrics
    mask: Mask
    paths: PathView
    tracer: Tracer | None


async def _build(parts: _Parts, make_engine: MakeEngine, background: TaskGroup) -> Services:
    settings, access, metrics, mask = parts.settings, parts.access, parts.metrics, parts.mask
    turns, events = TurnStore(parts.database), EventStore(parts.database)
    conversations = ConversationStore(parts.database)
    file_changes = FileChangeStore(parts.database)
    record = _record(parts)
    stored = await transcripts_in(parts.database, parts.ownership.lose_epoch)
    engine = make_engine(background, stored)
    await _end_orphans(engine)
    web, mcp_servers = web_tools(settings, parts.rules), await _open_mcp_servers(parts, background)
    further = FurtherTools([mcp_servers, web])
    tools = ConversationTools(turns, (*parts.rules.offered_tools, *OWN_TOOLS), further.parameters)
    turn_memory = parts.memory.for_turns(tools, metrics, parts.reader, record)
    journal = Journal(
        settings.log_dir,
        mask=lambda text: mask(parts.paths.shown(text)),  # clients read it at /logs
        on_lost=metrics.journal_lines_lost_total.inc,
    )
    webhooks = await open_webhooks(
        settings,
        parts.database,
        mask,
        parts.duty,
        metrics.counting(metrics.webhook_deliveries_total),
        parts.now,
    )
    log = await open_event_log(events, turns, webhooks.note, parts.ownership.lose)
    outputs = _outputs(parts)
    workspaces, worktrees = await _open_workspaces(parts, further, conversations)
    usual = partial(usual_spec, access.model, turn_memory, further, workspaces, worktrees)
    pool = ClientPool(engine, usual, pool_limits(settings), background)
    stored_approvals = ApprovalStore(parts.database)
    approvals = ApprovalDesk(
        stored_approvals,
        timeout_s=settings.approval_timeout_s,
        now=parts.now,
        is_on=settings.approvals == "on",
        node=parts.ownership.node if parts.duty.is_shared else None,
    )
    checker = _claim_checker(parts, turns, file_changes, log)
    runner = TurnRunner(
        TurnParts(
            turns=turns,
            conversations=conversations,
            file_changes=file_changes,
            outputs=outputs,
            log=log,
            pool=pool,
            memory=turn_memory,
            workspaces=workspaces,
            worktrees=worktrees,
            shows_pictures=settings.pictures == "on",
            further_tools=further,
            approvals=approvals,
            ask_changes=settings.approvals == "on",
            reviewer=CallReviewer(
                access.ask_model,
                now=parts.now,
                on_result=metrics.counting(metrics.call_reviews_total),
            )
            if access.ask_model is not None and settings.review == "model"
            else None,
            is_confined=access.is_confined,
            journal=journal,
            metrics=metrics,
            mask=mask,
            secrets=access.secrets,
            default_model=access.model,
            charges=not access.demo,
            limits=TurnLimits(
                timeout_s=settings.turn_timeout_s,
                doom_loop_threshold=settings.doom_loop_threshold,
                interrupt_grace_s=settings.interrupt_grace_s,
                recall_deadline_s=settings.recall_deadline_ms / 1000,
                model_silence_s=settings.model_silence_s,
                agent_steps=settings.max_agent_steps,
            ),
            now=parts.now,
            turn_ended=checker.turn_ended,
        )
    )
    lanes = Lanes(runner.run, background)
    accounts = Accounts(parts.database, now=parts.now)
    connect(parts.ownership, lanes, pool, approvals.rules, background)
    chat = Chat(
        ChatParts(
            conversations=conversations,
            turns=turns,
            file_changes=file_changes,
            client_objects=ClientObjectStore(parts.database),
            client_turns=ClientTurnStore(parts.database),
            schedules=ScheduleStore(parts.database),
            events=events,
            outputs=outputs,
            log=log,
            lanes=lanes,
            ownership=parts.ownership,
            duty=parts.duty,
            pool=pool,
            engine=engine,
            approvals=approvals,
            worktrees=worktrees,
            memory=parts.memory.for_conversations(tools, record),
            max_turns=settings.max_running_turns,
            now=parts.now,
            record=accounts.record,
            on_opened=runner.wake,
            begin_trace=_traces(parts, further),
            on_created=webhooks.wake,
            start_fields=runner.started_fields,
            runs_schedules=settings.schedules == "on",
            max_schedules=settings.max_schedules,
            quota=quota_of(settings),
        )
    )
    on_failure = metrics.counting(metrics.background_failures_total)
    await outputs.sweep(conversations.missing)
    loops: dict[str, Callable[[], Awaitable[None]]] = {
        "events": log.run,
        "journal": journal.run,
        "outputs": outputs.run,
        "checks": checker.run,
        "webhooks": webhooks.run,
        "heart": parts.ownership.run,
        "watchdog": partial(be_watched_by_a_program, settings, parts.ownership),
        **({} if parts.locks is None else {"workspace_locks": parts.locks.run}),
        "work_trees": partial(parts.duty.while_held, worktrees.run),
        **({} if parts.shared is None else {"approvals": parts.shared.run}),
        "duty": parts.duty.run,
        "audit": partial(parts.duty.while_held, partial(accounts.prune_audit, settings.audit_days)),
        "other_nodes": partial(follow_others, settings, parts.ownership, log.feed, events),
    }
    for name, run in loops.items():
        background.start_soon(keep_running, name, run, on_failure)
    recovery = TurnRecovery(
        TurnStores(turns, events, conversations, stored_approvals),
        *(log, journal, turn_memory, parts.now, chat.intake.readmit),
    )
    await parts.ownership.start(recovery)
    background.start_soon(pool.run, on_failure)
    if record is not None:
        await record.begin()
        take_over = partial(parts.duty.while_held, record.run, record.wake)
        background.start_soon(keep_running, "record", take_over, on_failure)
    background.start_soon(keep_running, "search_purge", conversations.vacuum.run, on_failure)
    _watch(metrics, pool, lanes, log)
    return Services(
        settings=settings,
        chat=chat,
        workspaces=workspaces,
        engine=engine,
        pool=pool,
        log=log,
        lanes=lanes,
        ownership=parts.ownership,
        duty=parts.duty,
        journal=journal,
        metrics=metrics,
        pings={
            "agent": engine.ping,
            "database": parts.database.ping,
            "events": log.ping,
            "journal": journal.ping,
            "memory": parts.memory.ping,
            "turns": recovery.ping,
            "mcp_servers": mcp_servers.ping,
            "web": web.ping,
            "workspaces": partial(ping_workspaces, parts.workspaces),
            **access.pings,
        },
        demo=access.demo,
        model=access.model,
        background=background,
        mcp_servers=mcp_servers,
        webhooks=webhooks,
        memory=parts.memory.memory,
        accounts=accounts,
        missing_memory=parts.memory.missing,
        ask_model=access.ask_model,
        makes_traces=parts.tracer is not None,
    )


async def _duty(settings: Settings, database: SqlDatabase, ownership: Ownership) -> Duty:
    """Return the duty of this server; raise `StartError` if it cannot share the database."""
    is_shared = settings.node_url is not None
    if is_shared:
        await refuse_local_memory(settings, database)
    return Duty(DutyStore(database), ownership.node, is_shared=is_shared)


def _outputs(parts: _Parts) -> OutputFiles:
    """Return the outputs; servers that share the database have them beside their journals."""
    settings, is_shared = parts.settings, parts.duty.is_shared
    folder = (settings.log_dir if is_shared else settings.data_dir) / "outputs"
    clean = OutputSanitizer(parts.paths, parts.mask).streamed
    return OutputFiles(folder, clean, is_shared=is_shared)


def _traced(access: ModelAccess, tracer: Tracer, model: str) -> ModelAccess:
    ask = access.ask_model
    return access if ask is None else replace(access, ask_model=TracedModel(ask, tracer, model))


def _traces(parts: _Parts, further: FurtherTools) -> BeginTrace:
    """Return what begins the traces of turns."""
    if parts.tracer is None:
        return no_traces

    def is_offered(name: str) -> bool:
        return name in KNOWN_TOOLS or further.rule_of(name) is not None

    return TurnTracing(parts.tracer, parts.mask, is_offered)


async def _open_workspaces(
    parts: _Parts, further: FurtherTools, conversations: ConversationStore
) -> tuple[OpenWorkspaces, Worktrees]:
    """Return what opens workspaces and work trees; a workspace that all share is open then."""
    settings = parts.settings
    given = (parts.workspaces, settings, parts.rules, further, parts.users)
    workspaces = await open_workspaces(*given, parts.locks)
    worktrees = Worktrees(
        workspaces,
        WorkTreeStore(parts.database),
        parts.mask,
        conversations.missing,
        now=parts.now,
        is_on=settings.worktrees == "on",
    )
    await worktrees.begin()
    return workspaces, worktrees


async def _end_orphans(engine: Engine) -> None:
    if orphans := await engine.end_orphans():
        _log.warning("orphaned_agents_ended", extra={"count": orphans})


async def _open_mcp_servers(parts: _Parts, background: TaskGroup) -> McpServers:
    share = None if parts.shared is None else parts.shared.accept_first_blocking
    accepted = AcceptedTools(parts.settings.data_dir / MCP_FOLDER, share)
    servers = await anyio.to_thread.run_sync(McpServers, parts.access.mcp_servers, accepted)
    metrics = parts.metrics
    await servers.start(background, metrics.counting(metrics.background_failures_total))
    return servers


def _record(parts: _Parts) -> RecordWorker | None:
    """Return what keeps the record of turns; None if there is no memory."""
    memory = parts.memory.memory
    if memory is None:
        return None
    queue, is_on = RecordQueue(parts.database), parts.settings.record == "on"
    duties = parts.duty if parts.duty.is_shared else None
    return RecordWorker(queue, memory.record, is_on=is_on, duties=duties)


def _claim_checker(
    parts: _Parts, turns: TurnStore, file_changes: FileChangeStore, log: EventLog
) -> ClaimChecker:
    ask = parts.access.ask_model if parts.settings.check == "model" else None
    count = parts.metrics.counting(parts.metrics.claim_checks_total)
    return ClaimChecker(ask, turns, file_changes, log.feed, now=parts.now, on_result=count)


def _watch(metrics: Metrics, pool: ClientPool, lanes: Lanes, log: EventLog) -> None:
    """Connect the gauges to what they show."""
    metrics.watch("live_clients", lambda: pool.live_count)
    metrics.watch("warm_clients", lambda: pool.warm_count)
    metrics.watch("agent_memory_bytes", lambda: pool.memory_bytes)
    metrics.watch("running_turns", lambda: len(lanes.running_in))
    metrics.watch("queued_turns", lambda: lanes.queued_count)
    metrics.watch("event_backlog", lambda: log.backlog)
