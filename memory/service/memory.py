"""Open memory: what the server, the command line and the tests use of it."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Literal

from memory.cases.book import CaseBook
from memory.cases.case import ExportedCase
from memory.cases.results import CaseRefused
from memory.cases.store import SqlCaseStore
from memory.cases.tools import CaseTools
from memory.clock import Now
from memory.episodes.episode import EpisodeDraft
from memory.episodes.episode_worker import EpisodeWorker
from memory.episodes.store import SqlEpisodeStore
from memory.episodes.writer import MemoryWriter
from memory.facts.fact import Fact
from memory.facts.gate import FactRefused
from memory.facts.keeper import FactKeeper
from memory.facts.tools import FactTools
from memory.intents.chronicle import SqlChronicle
from memory.intents.queue import IntentQueue
from memory.intents.record import IntentRecorder
from memory.items.scope import Scope
from memory.items.store import ItemStore
from memory.notes.notebooks import Notebooks
from memory.outbox.delivery import Delivery
from memory.outbox.store import SqlOutboxStore
from memory.outbox.worker import DeliveryWorker, OutboxHealth
from memory.recall.reader import RecallReader
from memory.recall.search import MemorySearch
from memory.record.index import RecordIndex
from memory.remote.breaker import ReadingBreakers
from memory.service.forgetting import Forgetting
from memory.service.item_pages import SqlItemPages
from memory.service.transfer import Entry, ToldProfile, export_lines, profile_line, read_entries
from memory.stores.database import SqlDatabase
from memory.stores.sqlite.vacuum import IndexVacuum
from memory.vectors.backfill import VectorBackfill
from memory.vectors.indexer import VectorIndexer

_BATCH: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Open memory."""

    reader: RecallReader
    search: MemorySearch
    recorder: IntentRecorder
    chronicle: SqlChronicle
    items: ItemStore
    pages: SqlItemPages
    record: RecordIndex
    episodes: SqlEpisodeStore
    outbox: SqlOutboxStore
    notes: Notebooks
    cases: CaseTools
    facts: FactKeeper
    fact_tools: FactTools | None
    """The tools with which agents keep and forget; None if nothing is to become a fact."""
    queue: IntentQueue
    database: SqlDatabase
    writer: MemoryWriter
    episode_worker: EpisodeWorker
    vectors: VectorIndexer | None
    backfill: VectorBackfill | None
    deliveries: Sequence[DeliveryWorker]
    deliver_to: Sequence[str]
    """All backends, those of another process included."""
    off: Sequence[OutboxHealth]
    """Backends that the settings leave out."""
    reading: ReadingBreakers
    vacuum: IndexVacuum
    now: Now
    _case_store: SqlCaseStore
    _case_book: CaseBook
    _forgetting: Forgetting

    async def forget(self, item_id: str, scope: Scope) -> bool:
        """Forget an item everywhere; see `Forgetting.forget`."""
        forgotten = await self._forgetting.forget(item_id, scope)
        self.vacuum.wake()
        self.wake_deliveries()
        return forgotten

    async def export(self, owner_ids: Sequence[str] = ()) -> AsyncIterator[str]:
        """Yield what these owners have, or all, as lines of JSON; see `export_lines`. Profiles are
        last.
        """
        lines = export_lines(
            self.items, self.episodes, self._case_store, self.facts.store, owner_ids
        )
        async for line in lines:
            yield line
        for owner_id, profile in (await self.facts.store.profiles(owner_ids)).items():
            yield profile_line(owner_id, profile)

    async def restore(self, lines: Iterable[str], owner_id: str | None = None) -> Counter[str]:
        """Restore lines for a person, or for the owners that they name; return how many went which
        way.

        Restoring the same lines twice changes nothing. What was written since is newer: a statement
        that is held is left out, and a profile where the person has one.

        The keys are `stored`, `merged`, `there` and `refused`, `left_out` for lines that are not
        restored, and `never_saved` for sentences that an episode must not hold. Raise
        `NotTransferable` if a line is of no exported kind: nothing was written. Raise
        `StoreUnavailable` if only some may have been written; repeating it restores the rest.
        """
        entries = list(read_entries(lines, owner_id))
        counts: Counter[str] = Counter(left_out=entries.count(None))
        with_profile = set()
        for profile in [entry for entry in entries if isinstance(entry, ToldProfile)]:
            status = await self._restore_profile(profile)
            counts[status] += 1
            if status == "stored":
                with_profile.add(profile.owner_id)
        for _, run in groupby(enumerate(entries), lambda one: (type(one[1]), one[0] // _BATCH)):
            some = [entry for _, entry in run]
            drafts = [entry for entry in some if isinstance(entry, EpisodeDraft)]
            for written in await self.writer.write_all(drafts) if drafts else ():
                counts[written.status] += 1
                counts["never_saved"] += written.left_out if written.status != "there" else 0
            await self._restore_others(some, counts, with_profile)
        return counts

    async def _restore_profile(self, entry: ToldProfile) -> Literal["stored", "there", "refused"]:
        """Restore a profile, unless the person has one or it is too long."""
        if not entry.text or await self.facts.store.profile_text(entry.owner_id):
            return "there"
        try:
            await self.facts.put_profile(entry.owner_id, entry.text)
        except FactRefused:
            return "refused"
        return "stored"

    async def _restore_others(
        self, entries: Iterable[Entry | None], counts: Counter[str], with_profile: set[str]
    ) -> None:
        """Restore facts and cases; a restored profile has the lines of lasting facts already."""
        for entry in entries:
            if isinstance(entry, Fact):
                with_line = entry.scope.owner_id not in with_profile
                try:
                    is_new = await self.facts.restore(entry, with_line=with_line)
                    counts["stored" if is_new else "there"] += 1
                except FactRefused:
                    counts["refused"] += 1
            elif isinstance(entry, ExportedCase):
                try:
                    counts["stored" if await self._case_book.restore(entry) else "there"] += 1
                except CaseRefused:
                    counts["refused"] += 1

    async def retry(self, delivery_id: int, owner_id: str) -> Delivery | None:
        """Make a delivery due now; return None if the owner has no such delivery."""
        delivery = await self.outbox.retry(delivery_id, owner_id, self.now())
        self.wake_deliveries()
        return delivery

    async def health(self) -> Sequence[OutboxHealth]:
        """Return the health of each backend, also of one that is off."""
        served = [await delivery.health() for delivery in self.deliveries]
        states = self.reading.states
        return [
            *self.off,
            *(
                replace(health, reading_breaker=states.get(health.backend.name))
                for health in served
            ),
        ]

    def turn_ended(self, *, has_acted: bool) -> None:
        """Announce a recorded turn. If it called tools, it left an episode, and perhaps notes."""
        if has_acted or self.episode_worker.learns:
            self.episode_worker.wake()
        if has_acted:
            self.notes.wake()

    def wake_deliveries(self) -> None:
        """Announce that there may be deliveries."""
        for delivery in self.deliveries:
            delivery.wake()
