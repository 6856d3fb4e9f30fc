"""Items, retrievers and models that do as a test says, for recall."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import anyio

from memory.items.item import Item
from memory.items.scope import Scope
from memory.recall.query import Degradation, Hit, PendingText, QuotedNotes
from memory.recall.retrievers import Candidate, Question, RetrieverAnswer, RetrieverName

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANN = Scope(owner_id="ann")


def make_item(item_id: str, text: str, *, title: str = "", **fields: Any) -> Item:
    """Make a note of one text, Ann's unless another scope is given."""
    note = Item(
        id=item_id,
        kind="note",
        scope=ANN,
        title=title or item_id,
        summary=" ".join(text.split())[:300],
        body=text,
        source=f"memory/{item_id}.md",
        occurred_at=AT,
        updated_at=AT,
    )
    return replace(note, **fields)


def make_hit(item: Item, score: float = 1.0) -> Hit:
    """Make a hit of an item."""
    return Hit(item=item, score=score, why="found by a test")


@dataclass
class Shelf:
    """Items in a dictionary."""

    items: dict[str, Item]
    before: Callable[[], Awaitable[None]] | None = None
    """Runs before each answer: to be slow or to break."""

    @classmethod
    def of(cls, *items: Item) -> "Shelf":
        return cls({item.id: item for item in items})

    async def get_many(self, item_ids: Sequence[str], scope: Scope) -> list[Item]:
        if self.before is not None:
            await self.before()
        known = [self.items[item_id] for item_id in item_ids if item_id in self.items]
        return [item for item in known if scope.covers(item.scope)]


@dataclass
class GivingRetriever:
    """A retriever that gives what it was told, and notes what it was asked."""

    name: RetrieverName = "fulltext"
    answer: RetrieverAnswer = field(default_factory=RetrieverAnswer)
    asked: list[Question] = field(default_factory=list)

    @classmethod
    def of(
        cls, *item_ids: str, weak: Sequence[str] = (), name: RetrieverName = "fulltext"
    ) -> "GivingRetriever":
        candidates = [Candidate(item_id=item_id, strength=0.9) for item_id in item_ids]
        weaker = [Candidate(item_id=hit, strength=0.1, is_weak=True) for hit in weak]
        return cls(name, RetrieverAnswer(candidates=[*candidates, *weaker]))

    def degraded(self, *reasons: Degradation) -> "GivingRetriever":
        return GivingRetriever(self.name, replace(self.answer, degraded=reasons))

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        self.asked.append(question)
        return self.answer


@dataclass
class StuckRetriever:
    """A retriever that never answers, and notes that it was stopped."""

    name: RetrieverName = "vector"
    is_stopped: bool = False

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        try:
            await anyio.sleep_forever()
        finally:
            self.is_stopped = True
        raise AssertionError("nobody wakes it up")


@dataclass
class BrokenRetriever:
    """A retriever that breaks."""

    name: RetrieverName = "vector"

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        raise OSError("the index is gone")


@dataclass(kw_only=True)
class Faulty:
    """A part of memory that may break or never answer."""

    breaks_with: Exception | None = None
    is_stuck: bool = False

    async def fail(self) -> None:
        """Break, or never return, if it was told to."""
        if self.is_stuck:
            await anyio.sleep_forever()
        if self.breaks_with is not None:
            raise self.breaks_with


@dataclass
class Model(Faulty):
    """A model that answers what it was told."""

    answer: str = "[]"
    prompts: list[str] = field(default_factory=list)

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        self.prompts.append(prompt)
        await self.fail()
        return self.answer


@dataclass
class Waiting(Faulty):
    """A conversation's pending context."""

    text: str = ""
    ids: tuple[str, ...] = ()

    async def __call__(self, conversation_id: str, owner_id: str, limit_chars: int) -> PendingText:
        await self.fail()
        return PendingText(text=self.text, intent_ids=self.ids)


@dataclass
class Notes(Faulty):
    """Notes for messages that have the word memory."""

    told: QuotedNotes = field(default_factory=QuotedNotes)
    asked: list[tuple[str, int, int, tuple[str, ...]]] = field(default_factory=list)

    async def content(
        self,
        text: str,
        *,
        owner_id: str,
        budget_chars: int,
        most_items: int,
        active_tools: Sequence[str],
    ) -> QuotedNotes:
        self.asked.append((text, budget_chars, most_items, tuple(active_tools)))
        await self.fail()
        return self.told
