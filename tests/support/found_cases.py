"""Cases that a search can find, in their own store and index of words, with the finder on top."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory.cases.case import Case, CaseCaller, CaseContent, Vote
from memory.cases.finder import CaseFinder
from memory.cases.store import SqlCaseStore
from memory.errors import StoreUnavailable
from memory.items.scope import Scope
from memory.recall.retrievers import FulltextRetriever, Retriever
from memory.recall.search import MemorySearch
from memory.stores.sqlite.database import Database
from memory.stores.sqlite.items import SqlItemStore
from tests.conformance.suites.case_values import new, next_of
from tests.support.episodes import open_memory

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANN = Scope(owner_id="ann")


def make_case(name: str = "1", symptom: str = "", **fields: Any) -> Case:
    """Make a draft `cas_<name>` of Ann's; `diagnosis` and the like go into its content."""
    told = {
        key: fields.pop(key)
        for key in ("diagnosis", "resolution", "root_cause", "metadata")
        if key in fields
    }
    content = CaseContent(
        symptom_summary=symptom or f"symptom {name}",
        **{"diagnosis": "looked at the graphs", "resolution": "restarted it", **told},
    )
    blank = Case(
        case_id=f"cas_{name}",
        scope=ANN,
        content=content,
        stated_confidence=0.7,
        confidence=0.7,
        source_conversation_id="cnv_1",
        authors=("cnv_1",),
        created_at=AT,
        updated_at=AT,
    )
    return replace(blank, **fields)


def caller(**fields: Any) -> CaseCaller:
    """Make Ann's agent in the conversation cnv_9; labels go into its scope."""
    labels = {key: fields.pop(key) for key in ("app_code", "environment") if key in fields}
    owner = fields.pop("owner_id", "ann")
    blank = CaseCaller(scope=Scope(owner_id=owner, **labels), conversation_id="cnv_9")
    return replace(blank, **fields)


class WatchedCaseStore(SqlCaseStore):
    """The store of cases; it fails when told to, and keeps what it was told of cases that were shown."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, lambda: AT, deliver_to=())
        self.shown: list[tuple[str, list[str]]] = []
        self.cannot_read = False
        self.cannot_write = False

    async def get(self, case_ids: Sequence[str], owner_id: str) -> list[Case]:
        if self.cannot_read:
            raise StoreUnavailable("It cannot be read.")
        return await super().get(case_ids, owner_id)

    async def note_shown(self, voter: str, case_ids: Sequence[str]) -> None:
        if self.cannot_write:
            raise StoreUnavailable("It cannot be written.")
        await super().note_shown(voter, case_ids)
        self.shown.append((voter, list(case_ids)))


@dataclass
class Noted:
    """What was noted to be looked up in the vectors."""

    item_ids: list[str] = field(default_factory=list)

    def note(self, item_ids: Iterable[str]) -> None:
        self.item_ids += item_ids


@dataclass
class FoundCases:
    """An open finder and what it stands on."""

    finder: CaseFinder
    store: WatchedCaseStore
    backfill: Noted

    async def put(self, *cases: Case) -> None:
        """Record cases, or bring those that are there to this state; search finds what it may."""
        for case in cases:
            await self.change(case)

    async def change(self, case: Case, **fields: Any) -> None:
        """Bring a case to this state; `fields` are what else the change holds."""
        known = await self.store.get([case.case_id], case.scope.owner_id)
        before = replace(case, revision=known[0].revision) if known else case
        await self.store.apply((next_of if known else new)(before, **fields))

    async def vote(self, case: Case, *votes: Vote) -> None:
        """Cast votes on a case."""
        for vote in votes:
            await self.change(case, vote=vote)

    async def found(
        self, query: str, asking: CaseCaller | None = None, top_k: int = 20
    ) -> list[str]:
        """Return the names of what is found, best first."""
        answer = await self.finder.find(asking or caller(), query, top_k)
        return [case.case_id.removeprefix("cas_") for case in answer.cases]

    async def near(self, content: CaseContent, scope: Scope = ANN, limit: int = 10) -> list[str]:
        """Return the names of the candidates for a content, most likely first."""
        nearby = await self.finder.candidates(content, scope, limit)
        return [case.case_id.removeprefix("cas_") for case in nearby.cases]


@asynccontextmanager
async def open_finder(directory: Path, *retrievers: Retriever) -> AsyncIterator[FoundCases]:
    """Open a finder by words, and by these retrievers, on a directory while the block runs."""
    directory.mkdir(exist_ok=True)
    async with open_memory(directory) as database:
        items, store, noted = SqlItemStore(database), WatchedCaseStore(database), Noted()
        search = MemorySearch(items, [FulltextRetriever(items), *retrievers], now=lambda: AT)
        finder = CaseFinder(search, store, now=lambda: AT, on_found=noted.note)
        yield FoundCases(finder=finder, store=store, backfill=noted)
