"""Builds memory and closes it: the one module that knows all adapters.

    database → stores → vectors, memU → search → reader
                      → writer ← episode worker ← chronicle ← recorder
                      → outbox → deliveries

`open_memory` yields the `Memory`; its loops run while the block runs.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from memory.background import keep_running
from memory.cases.book import CaseBook
from memory.cases.case_reader import CaseReader
from memory.cases.finder import CaseFinder
from memory.cases.store import SqlCaseStore
from memory.cases.tools import CaseTools
from memory.clock import Now
from memory.episodes.episode import Written
from memory.episodes.episode_worker import EpisodeWorker, Extract, Learn
from memory.episodes.extract import Extractor
from memory.episodes.store import SqlEpisodeStore
from memory.episodes.turn import read_turn
from memory.episodes.writer import MemoryWriter
from memory.facts.fact import Origin
from memory.facts.keeper import FactKeeper
from memory.facts.learner import FactLearner
from memory.facts.tools import FactTools
from memory.intents.chronicle import SqlChronicle
from memory.intents.pending import read_pending
from memory.intents.policy import MemoryPolicy, load_memory_policy_blocking
from memory.intents.queue import IntentQueue
from memory.intents.record import IntentRecorder
from memory.notes.index import NoteIndex
from memory.notes.notebooks import Notebooks
from memory.notes.store import SqlNoteStore
from memory.outbox.backend import Backend, BackendHealth, RetrievingBackend
from memory.outbox.backends.memu_retriever import MemuRetriever
from memory.outbox.store import SqlOutboxStore
from memory.outbox.worker import DeliveryWorker, OutboxHealth
from memory.recall.reader import RecallReader
from memory.recall.retrievers import FulltextRetriever, Retriever
from memory.recall.search import MemorySearch
from memory.recall.select import Selector
from memory.record.index import RecordIndex
from memory.record.store import SqlRecordStore
from memory.remote.breaker import Breaker, BreakerLimits, ReadingBreakers
from memory.service.forgetting import Forgetting
from memory.service.index_place import open_vectors
from memory.service.item_pages import SqlItemPages
from memory.service.memory import Memory
from memory.service.plan import MemoryEvents, MemoryPlan, recorded_in
from memory.stores.database import SqlDatabase
from memory.stores.sqlite import migrations
from memory.stores.sqlite.database import Database, migrations_of, open_database
from memory.stores.sqlite.integrity import check_integrity
from memory.stores.sqlite.items import SqlItemStore
from memory.stores.sqlite.vacuum import IndexVacuum
from memory.vectors.backfill import VectorBackfill
from memory.vectors.indexer import BACKEND as VECTORS
from memory.vectors.indexer import VectorRetriever
from memory.vectors.state import deliver_vectors_again

FILE: Final = "memory.sqlite3"
_CLOSE_S: Final = 10.0
NO_EMBEDDER: Final = "No embedder is set: memory is searched by words."
_OFF: Final = BackendHealth(name=VECTORS, state="off", detail=NO_EMBEDDER)
_NO_VECTORS: Final = OutboxHealth(backend=_OFF, breaker="closed", last_error=None, lag_s=0.0)


@asynccontextmanager
async def open_memory(
    plan: MemoryPlan,
    *,
    now: Now,
    draw: Callable[[], float],
    events: MemoryEvents | None = None,
) -> AsyncIterator[Memory]:
    """Open memory and run its loops while the block runs.

    Raise `StoreUnavailable` if its database cannot be opened, `IntentRefused` if the policy file
    holds a mistake.
    """
    told = events or MemoryEvents()
    policy = await _policy(plan)
    if plan.serves_vectors and plan.backends:
        await anyio.to_thread.run_sync(_import_shared_blocking)
    steps = await anyio.to_thread.run_sync(migrations_of, migrations.__name__)
    opening = plan.open_database or partial(open_database, plan.data_dir / FILE, steps)
    database: SqlDatabase = await opening()
    try:
        async with anyio.create_task_group() as loops:
            if isinstance(database, Database):  # PostgreSQL looks after its own files
                await loops.start(check_integrity, database, steps)
            memory = await _build(plan, database, policy, now, draw, told)
            for name, run in _loops(memory, plan).items():
                await loops.start(keep_running, name, run, told.on_loop_failure)
            try:
                yield memory
            finally:
                loops.cancel_scope.cancel()
                await _close(memory, plan.backends)
    finally:
        with anyio.CancelScope(shield=True):
            await database.close()


def _loops(memory: Memory, plan: MemoryPlan) -> dict[str, Callable[[], Awaitable[None]]]:
    """Return memory's background loops by name, in the order in which they start.

    Of several servers one runs those that take work from the database, or look at a folder that all
    of them see.
    """
    once = plan.duties.while_held
    loops: dict[str, Callable[[], Awaitable[None]]] = {}
    if memory.vectors is not None:
        vectors = memory.vectors
        loops["vector_index"] = partial(once, vectors.run, otherwise=vectors.follow)
    if memory.backfill is not None:
        loops["vector_backfill"] = memory.backfill.run
    for delivery in memory.deliveries:
        loops[f"delivery_{delivery.name}"] = partial(once, delivery.run, delivery.wake)
    if plan.tends:
        episodes, notes = memory.episode_worker, memory.notes
        loops["episodes"] = partial(once, episodes.run, episodes.wake)
        # users' own: each server knows those who have used it
        loops["notes"] = partial(once, notes.run) if plan.user_notes is None else notes.run
    return loops | {"intents": memory.queue.run, "word_purge": memory.vacuum.run}


async def _close(memory: Memory, backends: Sequence[Backend]) -> None:
    with anyio.move_on_after(_CLOSE_S, shield=True):
        if memory.vectors is not None:
            await memory.vectors.close()
        for backend in backends:
            await backend.close()


def _import_shared_blocking() -> None:
    """Import numpy before two threads (vector index and memU) import it at once, which can fail."""
    with suppress(ImportError):  # its users report that it is missing
        import_module("numpy")


async def _policy(plan: MemoryPlan) -> MemoryPolicy | None:
    if plan.policy_file is None:
        return None
    return await anyio.to_thread.run_sync(load_memory_policy_blocking, plan.policy_file)


async def _build(
    plan: MemoryPlan,
    database: SqlDatabase,
    policy: MemoryPolicy | None,
    now: Now,
    draw: Callable[[], float],
    events: MemoryEvents,
) -> Memory:
    items = SqlItemStore(database)
    chronicle = SqlChronicle(database, talk_waits=_model_learns(plan))
    recorder = IntentRecorder(chronicle, plan.mask, policy)
    queue = IntentQueue(recorder)
    told = recorded_in(queue, events, now)
    outbox = SqlOutboxStore(database)
    reading = ReadingBreakers(told.on_breaker)
    vectors = await open_vectors(plan, database, items, now, reading)
    served: list[Backend] = [*([vectors] if vectors is not None else []), *plan.backends]
    deliver_to = [*(backend.name for backend in served), *plan.served_elsewhere]
    deliveries = [
        DeliveryWorker(
            backend,
            outbox,
            items.current,
            Breaker(BreakerLimits(), on_change=partial(told.on_breaker, backend.name)),
            now=now,
            draw=draw,
            on_result=told.on_delivery,
        )
        for backend in served
    ]
    vacuum = IndexVacuum(database, "item_words")

    def wake_deliveries() -> None:
        for delivery in deliveries:
            delivery.wake()

    def items_changed() -> None:
        vacuum.wake()
        wake_deliveries()

    again, backfill = partial(deliver_vectors_again, database, now), None
    if vectors is not None:
        backfill = VectorBackfill(vectors.missing, again, wake=wake_deliveries)
    note_found = backfill.note if backfill is not None else lambda _: None
    episodes = SqlEpisodeStore(database, now)

    def announce(written: Sequence[Written]) -> None:
        for result in written:
            told.on_episode(result)
        wake_deliveries()

    def facts_written(origins: Sequence[Origin]) -> None:
        for origin in origins:
            told.on_fact(origin)
        items_changed()

    writer = MemoryWriter(
        episodes,
        deliver_to=deliver_to,
        known_secrets=plan.known_secrets,
        keeps_contacts=plan.keeps_contacts,
        now=now,
        on_written=announce,
    )
    notes = await _notes(
        plan,
        partial(
            SqlNoteStore, database, deliver_to=deliver_to, recording=recorder.recording, now=now
        ),
        items_changed,
    )
    retrievers: list[Retriever] = [FulltextRetriever(items)]
    if vectors is not None:
        retrievers.append(VectorRetriever(vectors))
    retrievers += (
        MemuRetriever(
            backend,
            now=now,
            mask=plan.mask,
            on_breaker=reading.watch(backend.name),
        )
        for backend in plan.backends
        if isinstance(backend, RetrievingBackend)
    )
    search = MemorySearch(
        items,
        retrievers,
        now=now,
        on_words_alone=note_found,
        events=told.searches,
    )
    cases = SqlCaseStore(database, now, deliver_to=deliver_to)
    finder = CaseFinder(search, cases, now=now, on_found=note_found)
    book = CaseBook(
        cases,
        finder.candidates,
        now=now,
        known_secrets=plan.known_secrets,
        on_change=wake_deliveries,
        duties=plan.duties,
    )
    forgetting = Forgetting(
        database,
        backends=deliver_to,
        recording=recorder.recording,
        now=now,
        forget_note=notes.forget_note,
    )
    facts = FactKeeper(
        database,
        items=items,
        deliver_to=deliver_to,
        recording=recorder.recording,
        mask=plan.mask,
        now=now,
        forget_all=forgetting.forget_all,
        on_written=facts_written,
    )
    return Memory(
        reader=RecallReader(
            search,
            selector=Selector(plan.ask_model) if plan.ask_model is not None else None,
            pending=partial(read_pending, chronicle),
            profiles=facts.store.profile_text,
            about_memory=notes,
            items=items,
        ),
        search=search,
        recorder=recorder,
        chronicle=chronicle,
        items=items,
        pages=SqlItemPages(database),
        record=RecordIndex(
            # its texts stay here: the vectors are the server's own
            SqlRecordStore(database, now, deliver_to=[VECTORS] if vectors is not None else []),
            episodes.recalled_texts,
            mask=plan.mask,
            now=now,
            on_change=wake_deliveries,
            on_removed=vacuum.wake,
        ),
        episodes=episodes,
        outbox=outbox,
        notes=notes,
        cases=CaseTools(book, finder.find, CaseReader(cases)),
        facts=facts,
        fact_tools=None if plan.learns == "off" else FactTools(facts, search),
        queue=queue,
        database=database,
        writer=writer,
        episode_worker=EpisodeWorker(
            chronicle.unremembered,
            partial(read_turn, chronicle),
            writer.write,
            episodes.mark_remembered,
            extract=_extract(plan, now),
            learn=_learn(plan, facts, now, told),
        ),
        vectors=vectors,
        backfill=backfill,
        deliveries=deliveries,
        deliver_to=deliver_to,
        off=[_NO_VECTORS] if plan.serves_vectors and vectors is None else [],
        reading=reading,
        vacuum=vacuum,
        now=now,
        _case_store=cases,
        _case_book=book,
        _forgetting=forgetting,
    )


async def _notes(
    plan: MemoryPlan, store: Callable[..., SqlNoteStore], on_change: Callable[[], None]
) -> Notebooks:
    """Return the indexes of the notes; what was indexed of workspaces that are not in use goes."""
    if plan.tends:
        await store().drop_all(of_users=plan.user_notes is None)

    def open_index(owner_id: str, workspace: Path) -> NoteIndex:
        stored = store(owner_id=owner_id)
        return NoteIndex(
            *(workspace, stored, plan.mask),
            owner_id=owner_id,
            on_change=on_change,
            duties=plan.duties,
        )

    return Notebooks(plan.workspace, plan.user_notes, open_index)


def _extract(plan: MemoryPlan, now: Now) -> Extract | None:
    if plan.ask_model is None or not plan.extract:
        return None
    return Extractor(plan.ask_model, now=now, known_secrets=plan.known_secrets).extract


def _model_learns(plan: MemoryPlan) -> bool:
    return plan.ask_model is not None and plan.learns == "model"


def _learn(plan: MemoryPlan, facts: FactKeeper, now: Now, told: MemoryEvents) -> Learn | None:
    if plan.ask_model is None or not _model_learns(plan):
        return None
    return FactLearner(
        plan.ask_model,
        keeper=facts,
        now=now,
        known_secrets=plan.known_secrets,
        on_result=told.on_learning,
    ).learn
