"""Open memory for the server, and report what of it works.

A memory that cannot be opened does not keep the server from serving: turns run without it, and the
log, `/readyz` and `/memory/health` report it.
"""

import contextlib
import logging
import secrets as randomness
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from gateway.conversations.sql.leases import Fence
from gateway.errors import SettingsError, StartError
from gateway.ids import LOCAL_USER
from gateway.observability.metrics import Metrics
from gateway.settings import Memu, Settings
from gateway.storage import SCHEMA, memory_storage, where_to_look
from gateway.turns.conversation_memory import ConversationMemory, ConversationTools, do_nothing
from gateway.turns.record import RecordWorker
from gateway.turns.turn_memory import TurnMemory
from memory.background import Duties
from memory.cli import MemoryCommand
from memory.clock import utc_now
from memory.embeddings.choice import EmbedderChoice, has_embedder, make_embedder
from memory.embeddings.openai import Embeddings
from memory.episodes.episode import EpisodeDraft
from memory.errors import StoreDamaged, StoreUnavailable
from memory.intents.masking import Mask
from memory.intents.registry import IntentRefused
from memory.items.item import KINDS
from memory.items.scope import Scope
from memory.notes.notebooks import UserNotes
from memory.outbox.backend import Backend
from memory.outbox.backends import memu_cli, memu_server
from memory.outbox.backends.memu_cli import MemuCliBackend
from memory.outbox.backends.memu_server import MemuServerBackend
from memory.outbox.delivery import Delivery
from memory.outbox.loop import DeliveryResult
from memory.recall.query import ContextPack, MemoryReader, Mode, QueryPack
from memory.recall.retrievers import SearchEvents
from memory.recall.tools import MemoryTools
from memory.remote.breaker import BreakerState
from memory.remote.small_model import AskModel
from memory.service.assemble import FILE, NO_EMBEDDER, open_memory
from memory.service.memory import Memory
from memory.service.plan import MemoryEvents, MemoryPlan
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.integrity import holds_nothing_blocking
from memory.vectors.indexer import BACKEND as VECTORS
from memory.vectors.pgvector import hindrance
from policies.secrets import mask_secrets

_log = logging.getLogger(__name__)

_PARTS = 1_000_000
_RESTORE = (
    "Restore memory.sqlite3 from a backup, or move it and the files beside it out of the data "
    "directory to"
    " begin with an empty memory; then restart the server."
)
_LOOK = "Look at memory.sqlite3 in the directory of CANDOR_DATA_DIR, then restart the server."
_BACKENDS: Mapping[Memu, Sequence[str]] = {
    "off": (),
    "cli": (memu_cli.NAME,),
    "server": (memu_server.NAME,),
}
_ANYBODY = Scope(owner_id="*nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMemory:
    """Memory as the parts of the server use it."""

    memory: Memory | None
    """None if it could not be opened."""
    missing: "MissingMemory | None" = None
    """Why there is none."""
    recall_mode: Mode = "rag"
    agents_have_cases: bool = True
    """False if no agent gets the tools of case memory, whatever its conversation says."""

    async def ping(self) -> Mapping[str, str]:
        """Return the state; a missing memory does not make the server unready."""
        if self.missing is not None:
            return {"state": "unavailable", "detail": self.missing.reason}
        assert self.memory is not None, "there is one, or it is missing"
        trouble = await self.memory.database.ping()
        if trouble is not None:
            return {"state": "unavailable", "detail": trouble}
        try:
            await self.memory.items.search(
                "candor", _ANYBODY, kinds=KINDS, limit=1
            )  # it can be read
            healths = await self.memory.health()
        except StoreUnavailable as exc:
            return {"state": "unavailable", "detail": str(exc)}
        place = self.memory.vectors.place if self.memory.vectors is not None else None
        details = " ".join(filter(None, (self.memory.database.loss, place)))
        told = {"detail": details} if details else {}
        return {
            "state": "ok",
            **told,
            **{health.backend.name: health.backend.state for health in healths},
        }

    def for_turns(
        self,
        tools: ConversationTools,
        metrics: Metrics,
        reader: MemoryReader | None,
        record: RecordWorker | None,
    ) -> TurnMemory:
        """Return memory for turns; `reader` replaces the real one."""
        if self.memory is None:
            return TurnMemory(
                reader=reader or _NothingToRead(),
                tools=tools,
                on_not_recorded=metrics.turns_not_recorded_total.inc,
                is_missing=True,
            )
        memory = self.memory

        def turn_ended(has_acted: bool) -> None:  # noqa: FBT001  a callback with one argument
            memory.turn_ended(has_acted=has_acted)
            if record is not None:
                record.wake()

        return TurnMemory(
            reader=reader or memory.reader,
            recall_mode=self.recall_mode,
            cases=memory.cases if self.agents_have_cases else None,
            lookup=MemoryTools(memory.search, memory.items),
            tools=tools,
            recorder=memory.recorder,
            facts=memory.facts if memory.fact_tools is not None else None,
            fact_tools=memory.fact_tools,
            consumed=memory.chronicle.consumed,
            turn_ended=turn_ended,
            fence=_fence(memory.database),
            catch_up=record.catch_up if record is not None else do_nothing,
            on_not_recorded=metrics.turns_not_recorded_total.inc,
        )

    def for_conversations(
        self, tools: ConversationTools, record: RecordWorker | None
    ) -> ConversationMemory:
        """Return memory for conversations."""
        if self.memory is None:
            return ConversationMemory(tools)
        return ConversationMemory(
            tools,
            take=self.memory.queue.put,
            drop_pending=self.memory.chronicle.delete_conversation_context,
            catch_up=record.catch_up if record is not None else do_nothing,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingMemory:
    """A memory that could not be opened."""

    reason: str
    """Why, and what to do."""
    backends: tuple[str, ...]
    """The backends that it would have."""


class _NothingToRead:
    """Reads from a memory that could not be opened."""

    async def recall(self, query: QueryPack) -> ContextPack:  # noqa: ARG002
        """Return an empty pack that reports the failure."""
        return ContextPack(degraded=("memory_failed",))


@asynccontextmanager
async def open_server_memory(
    settings: Settings,
    metrics: Metrics,
    *,
    mask: Mask,
    secrets: Sequence[str],
    ask_model: AskModel | None,
    has_history: bool = False,
    user_notes: UserNotes | None = None,
    duty: Duties,
) -> AsyncIterator[ServerMemory]:
    """Open memory while the block runs; if it cannot be opened, report that and go on without.

    With `has_history` an empty database file counts as damaged. With `user_notes` each user has
    notes of their own. `duty` keeps servers that share the database from doing the same. A missing
    file is created. Raise `StartError` if the memory policy file has a mistake, or where other
    servers use the database, if memory cannot be opened.
    """
    plan = MemoryPlan(
        data_dir=settings.data_dir,
        open_database=memory_storage(settings),
        workspace=settings.workspace,
        user_notes=user_notes,
        mask=mask,
        known_secrets=secrets,
        embedder=embedder_choice(settings),
        policy_file=settings.memory_policy_file,
        backends=_backends(settings),
        ask_model=ask_model,
        learns=settings.learn,
        keeps_contacts=settings.redact_contacts == "off",
        extract=settings.extract == "on",
        duties=duty,
    )
    file = plan.data_dir / FILE
    async with AsyncExitStack() as stack:
        is_file = plan.open_database is None
        may_be_empty = not has_history or not await anyio.Path(file).exists()
        try:
            if is_file and not may_be_empty:
                await anyio.to_thread.run_sync(_refuse_emptied_blocking, file)
            memory = await stack.enter_async_context(
                open_memory(plan, now=utc_now, draw=_draw, events=_events(metrics))
            )
        except StoreUnavailable as exc:
            told = told_with_advice(exc, settings)
            reason = f"Memory is off since the server's start. {told}"
            _log.exception("memory_not_opened", extra={"reason": reason})
            if settings.node_url is not None:  # it may get the duty, also for memory
                raise StartError(f"Memory cannot be opened. {told}") from exc
            if is_file and may_be_empty:
                await anyio.to_thread.run_sync(_remove_empty_blocking, file)
            yield ServerMemory(
                memory=None,
                missing=MissingMemory(
                    reason=reason, backends=(VECTORS, *(backend.name for backend in plan.backends))
                ),
            )
            return
        except IntentRefused as exc:
            raise SettingsError(str(exc)) from exc
        yield ServerMemory(
            memory=memory,
            recall_mode="llm" if settings.recall == "model" else "rag",
            agents_have_cases=settings.case_memory == "on",
        )


def told_with_advice(exc: StoreUnavailable, settings: Settings) -> str:
    """Return why memory cannot be opened, and what a person does about it.

    A file is given up only if it is damaged: one that is read-only or in use is whole.
    """
    if settings.database_url is not None:
        return f"{exc} {where_to_look(settings)}"
    return f"{exc} {_RESTORE if isinstance(exc, StoreDamaged) else _LOOK}"


def _refuse_emptied_blocking(path: Path) -> None:
    """Raise `StoreDamaged` if the file is empty."""
    if holds_nothing_blocking(path):
        raise StoreDamaged("The database is empty, although there are earlier conversations.")


def _remove_empty_blocking(path: Path) -> None:
    """Remove the empty file that a failed creation left: the next start would take
    it for emptied.
    """
    with contextlib.suppress(OSError):
        if holds_nothing_blocking(path):
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                path.with_name(name).unlink(missing_ok=True)


async def refuse_local_memory(settings: Settings, database: SqlDatabase) -> None:
    """Raise `StartError` if a part of memory would be in the data directory, which other servers of
    the database do not see.
    """
    if settings.memu == "cli":
        raise SettingsError(
            "CANDOR_MEMU=cli keeps what it knows in CANDOR_DATA_DIR, which other servers do not "
            "see: with CANDOR_NODE_URL set CANDOR_MEMU=server or off."
        )
    reason = await hindrance(database) if has_embedder(embedder_choice(settings)) else None
    if reason is not None:
        raise SettingsError(
            f"With CANDOR_NODE_URL memory's vectors must be in PostgreSQL, but {reason} Or set "
            "CANDOR_EMBEDDER=none, and memory is searched by words."
        )


def embedder_choice(settings: Settings) -> EmbedderChoice:
    """Return the configured embedder. Raise `StartError` if it needs a setting that is not set."""
    server = None
    if settings.embedder == "openai":
        if settings.embeddings_url is None or settings.embeddings_model is None:
            raise SettingsError(
                "CANDOR_EMBEDDER=openai: set CANDOR_EMBEDDINGS_URL and CANDOR_EMBEDDINGS_MODEL, "
                "too."
            )
        key = settings.embeddings_key
        server = Embeddings(
            base_url=settings.embeddings_url,
            model=settings.embeddings_model,
            api_key=key.value if key is not None else "",
        )
    if settings.embedder == "onnx" and settings.embeddings_path is None:
        raise SettingsError("CANDOR_EMBEDDER=onnx: set CANDOR_EMBEDDINGS_PATH, too.")
    return EmbedderChoice(name=settings.embedder, server=server, folder=settings.embeddings_path)


def require_model_blocking(settings: Settings) -> None:
    """Raise `StartError` if the embedder's folder is missing. No model is loaded."""
    folder = settings.embeddings_path if settings.embedder == "onnx" else None
    if folder is not None and not folder.is_dir():
        raise SettingsError(
            f"CANDOR_EMBEDDINGS_PATH={folder} is not a folder; name the one that has model.onnx "
            "and tokenizer.json."
        )


async def try_embedder(settings: Settings, mask: Mask) -> str:
    """Embed one text as memory would, and return a sentence about the vector.

    Raise `StartError` if the embedder needs a setting that is not set, `BackendUnavailable` if it
    made no vector.
    """
    choice = embedder_choice(settings)
    embedder = await make_embedder(choice, mask=mask, now=utc_now)
    if embedder is None:
        return NO_EMBEDDER
    try:
        (vector,) = await embedder.embed(["A round trip."])
    finally:
        await embedder.close()
    return f"The embedder {embedder.model_id} makes vectors of {len(vector)} numbers."


def _fence(database: SqlDatabase) -> Fence | None:
    """Return what compares epochs in memory's transactions; None if memory is a file, which one
    server has.
    """
    is_shared = database.engine == "postgresql"
    return Fence(database, f"{SCHEMA}.leases") if is_shared else None


def _backends(settings: Settings) -> list[Backend]:
    """Return the configured backends.

    Raise `StartError` if memU is on and its address is not set, or its package is not installed.
    """
    if settings.memu == "off":
        return []
    if settings.memu_url is None:
        raise SettingsError("CANDOR_MEMU is on: set CANDOR_MEMU_URL, too.")
    if settings.memu == "server":
        return [MemuServerBackend(settings.memu_url)]
    embeddings = Embeddings(base_url=settings.memu_url, model=settings.memu_model)
    return [MemuCliBackend(settings.data_dir / "memu", embeddings)]


def memory_command(
    settings: Settings,
    secrets: Sequence[str],
    read_episode: Callable[[bytes, str], EpisodeDraft],
    program: str = "candor",
) -> MemoryCommand:
    """Return the command `memory`; it leaves a server's work to the server."""
    plan = MemoryPlan(
        data_dir=settings.data_dir,
        open_database=memory_storage(settings),
        workspace=settings.workspace,
        mask=partial(mask_secrets, known=secrets),
        known_secrets=secrets,
        keeps_contacts=settings.redact_contacts == "off",
        serves_vectors=False,
        served_elsewhere=(
            *([VECTORS] if has_embedder(embedder_choice(settings)) else []),
            *_BACKENDS[settings.memu],
        ),
        tends=False,
    )

    @asynccontextmanager
    async def opening() -> AsyncIterator[Memory]:
        await anyio.to_thread.run_sync(make_data_dir_blocking, settings)
        async with open_memory(plan, now=utc_now, draw=_draw) as memory:
            yield memory

    return MemoryCommand(
        open_memory=opening,
        program=program,
        owner_id=LOCAL_USER,
        read_episode=read_episode,
    )


def make_data_dir_blocking(settings: Settings) -> None:
    """Create the data directory, for this user alone."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)


def _draw() -> float:
    return randomness.randbelow(_PARTS) / _PARTS


def _events(metrics: Metrics) -> MemoryEvents:
    """Return callbacks that count memory's events."""

    def on_delivery(delivery: Delivery, result: DeliveryResult, _error: str | None) -> None:
        metrics.deliveries_total.labels(backend=delivery.backend, result=result).inc()

    def on_breaker(backend: str, state: BreakerState) -> None:
        metrics.breaker_changes_total.labels(backend=backend, state=state).inc()
        _log.warning("breaker_changed", extra={"backend": backend, "state": state})

    return MemoryEvents(
        on_delivery=on_delivery,
        on_breaker=on_breaker,
        on_episode=lambda written: metrics.episodes_total.labels(status=written.status).inc(),
        on_fact=metrics.counting(metrics.facts_total),
        on_learning=metrics.counting(metrics.learning_total),
        on_loop_failure=metrics.counting(metrics.background_failures_total),
        searches=SearchEvents(
            on_stage=metrics.observe_recall,
            on_scanned=metrics.recall_items_total.labels(result="scanned").inc,
        ),
    )
