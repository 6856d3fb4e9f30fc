"""Cases that a search can find, on a real index of words, with a store that does as a test says."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from memory.cases.case import (
    Case,
    CaseCaller,
    CaseContent,
    HistoryEntry,
    RelatedCase,
    Report,
    Vote,
)
from memory.cases.finder import CaseFinder
from memory.cases.item import to_item
from memory.cases.store import CaseChange
from memory.errors import StoreUnavailable
from memory.recall.arms import Arm, FulltextArm
from memory.recall.search import MemorySearch
from memory.scope import Scope
from memory.stores.sqlite.items import SqliteItemStore, put_item_blocking
from memory.stores.sqlite.readers import Readers
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


@dataclass
class CaseShelf:
    """Cases in a dictionary."""

    cases: dict[str, Case] = field(default_factory=dict)
    cast: dict[str, list[Vote]] = field(default_factory=dict)
    relations: dict[str, list[RelatedCase]] = field(default_factory=dict)
    shown: list[tuple[str, list[str]]] = field(default_factory=list)
    cannot_read: bool = False
    cannot_write: bool = False

    async def get(self, case_ids: Sequence[str], owner_id: str) -> list[Case]:
        if self.cannot_read:
            raise StoreUnavailable("It cannot be read.")
        known = [self.cases[one] for one in case_ids if one in self.cases]
        return [one for one in known if one.scope.owner_id == owner_id]

    async def by_fingerprint(self, fingerprint: bytes, owner_id: str) -> list[Case]:
        raise NotImplementedError

    async def hidden_like(self, likeness: bytes, owner_id: str, *, limit: int) -> list[Case]:
        raise NotImplementedError

    async def apply(self, change: CaseChange) -> None:
        raise NotImplementedError

    async def votes(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[Vote]]:
        return {one: self.cast.get(one, []) for one in case_ids}

    async def related(self, case_ids: Sequence[str]) -> Mapping[str, Sequence[RelatedCase]]:
        return {one: self.relations.get(one, []) for one in case_ids}

    async def history(self, case_id: str, *, limit: int) -> Sequence[HistoryEntry]:
        raise NotImplementedError

    async def history_length(self, case_id: str) -> int:
        raise NotImplementedError

    async def reports(self, case_id: str, *, limit: int) -> Sequence[Report]:
        raise NotImplementedError

    async def note_shown(self, voter: str, case_ids: Sequence[str]) -> None:
        if self.cannot_write:
            raise StoreUnavailable("It cannot be written.")
        self.shown.append((voter, list(case_ids)))

    async def unreviewed(
        self, voter: str, owner_id: str, *, app_code: str | None = None, limit: int
    ) -> list[str]:
        raise NotImplementedError


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
    shelf: CaseShelf
    backfill: Noted
    database: Any

    async def put(self, *cases: Case) -> None:
        """Keep cases, and have them found where they may be."""
        for one in cases:
            self.shelf.cases[one.case_id] = one
            item = to_item(one)
            if item is not None:
                await self.database.write(partial(put_item_blocking, item=item))

    async def found(
        self, query: str, asking: CaseCaller | None = None, top_k: int = 20
    ) -> list[str]:
        """Give the names of what is found, best first."""
        answer = await self.finder.find(asking or caller(), query, top_k)
        return [one.case_id.removeprefix("cas_") for one in answer.cases]


@asynccontextmanager
async def open_finder(directory: Path, *arms: Arm) -> AsyncIterator[FoundCases]:
    """Open a finder by words, and by these arms, on a directory while the block runs."""
    directory.mkdir(exist_ok=True)
    async with open_memory(directory) as database:
        readers = Readers(database.path)
        items, shelf, noted = SqliteItemStore(database, readers), CaseShelf(), Noted()
        search = MemorySearch(items, [FulltextArm(items), *arms], now=lambda: AT)
        finder = CaseFinder(search, shelf, now=lambda: AT, backfill=noted)
        try:
            yield FoundCases(finder=finder, shelf=shelf, backfill=noted, database=database)
        finally:
            readers.close()
