"""The retrievers are asked side by side."""

from dataclasses import dataclass, field

import anyio

from memory.items import KINDS
from memory.itemstore import WordHit
from memory.recall.retrievers import (
    Candidate,
    FulltextRetriever,
    Question,
    RetrieverAnswer,
    RetrieverName,
    gather,
)
from tests.support.recall import ANN, GivingRetriever, StuckRetriever


@dataclass
class MeetingRetriever:
    """Answers once the other one has been asked, too."""

    name: RetrieverName
    arrived: anyio.Event
    other: anyio.Event
    found: list[Candidate] = field(default_factory=list)

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        self.arrived.set()
        await self.other.wait()
        return RetrieverAnswer(candidates=self.found)


def question(text: str = "tea") -> Question:
    return Question(text=text, scope=ANN, kinds=KINDS)


async def test_no_arm_waits_for_another() -> None:
    here, there = anyio.Event(), anyio.Event()
    retrievers = [
        MeetingRetriever("fulltext", here, there),
        MeetingRetriever("vector", there, here),
    ]
    with anyio.fail_after(30):
        gathered = await gather(retrievers, [question()], bound_s=30)
    assert gathered.degraded == ()


async def test_the_order_is_that_of_the_questions_and_arms_whoever_answers_first() -> None:
    done = anyio.Event()
    done.set()
    late = MeetingRetriever("fulltext", done, done, [Candidate(item_id="late", strength=1)])
    gathered = await gather(
        [late, GivingRetriever.of("soon", name="vector")],
        [question("a"), question("b")],
        bound_s=30,
    )
    assert [hit.retriever for hit in gathered.found] == ["fulltext", "vector"] * 2


async def test_a_slow_arm_is_named_once_for_all_questions() -> None:
    with anyio.fail_after(30):
        gathered = await gather([StuckRetriever()], [question("a"), question("b")], bound_s=0.01)
    assert gathered.degraded == ("vector_timeout",)


@dataclass
class WordStore:
    """Gives one good hit and one that is not about the question."""

    asked: list[tuple[str, int]] = field(default_factory=list)

    async def search(self, text: str, *_: object, limit: int, **__: object) -> list[WordHit]:
        self.asked.append((text, limit))
        return [
            WordHit(item_id="not_good", score=2, coverage=0.8, confidence=0.7),
            WordHit(item_id="not_far", score=1, coverage=0.1, confidence=0.01),
        ]


async def test_full_text_says_how_well_and_how_likely_each_item_fits() -> None:
    store = WordStore()
    answer = await FulltextRetriever(store).find(question(), limit=7)
    assert answer.candidates == [
        Candidate(item_id="not_good", strength=0.8, nearness=1.0, confidence=0.7),
        Candidate(item_id="not_far", strength=0.1, nearness=0.5, confidence=0.01),
    ]
    assert store.asked == [("tea", 7)]
