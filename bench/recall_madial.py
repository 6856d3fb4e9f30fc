"""MADial-Bench: which memory does a running dialogue call for? Chinese and English, by path."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.recall_memory import line, memory_of
from bench.recall_plain import PLAIN, PlainIndex
from bench.recall_scores import Scores, digest
from bench.report import show
from memory.items.scope import Scope
from memory.recall.retrievers import Candidate, Question, RetrieverAnswer, RetrieverName

FILES = {
    "zh": ("zh-memory.jsonl", "zh-dialogue-dev.jsonl", "zh-bge_m3-top20-dev.jsonl"),
    "en": ("en-memory.jsonl", "en-dialogue.jsonl", "en-bge_m3-top20.jsonl"),
}
DEPTH = 20


@dataclass(frozen=True)
class Asked:
    """A dialogue up to the moment where a memory is called for."""

    owner: str
    text: str
    gold: set[str]
    given: Sequence[str]
    """The ids that the vector model ranked first."""


@dataclass(frozen=True)
class Part:
    """One language's half."""

    memories: Mapping[str, Mapping[str, str]]
    """By owner, then by id."""
    dates: Mapping[str, datetime]
    asked: Sequence[Asked]
    hash: str


class GivenRanks:
    """A vector retriever whose answers are known beforehand."""

    name: RetrieverName = "vector"

    def __init__(self) -> None:
        self.ids: Sequence[str] = ()

    async def find(self, question: Question, *, limit: int) -> RetrieverAnswer:
        del question
        return RetrieverAnswer(
            candidates=[Candidate(item_id=item_id, strength=0.5) for item_id in self.ids[:limit]]
        )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [
        json.loads(each_line)
        for each_line in path.read_text(encoding="utf-8").splitlines()
        if each_line
    ]


def read(directory: Path, language: str) -> Part:
    paths = [directory / file for file in FILES[language]]
    told: dict[str, dict[str, Any]] = {}
    for each_line in _lines(paths[0]):
        told.update(each_line)
    ranks = {
        each_line["id"]: [str(i) for i in each_line["top_20_ids"]] for each_line in _lines(paths[2])
    }
    asked = []
    for place, one in enumerate(_lines(paths[1])):
        user = one["user-id"]
        asked.append(
            Asked(
                owner=f"user{user}" if language == "zh" else "everybody",
                text="".join(one["dialogue"][: one["test-turn"][0]]),
                gold={str(i) for i in one["relevant-id"]},
                given=ranks[one.get("id", place)],
            )
        )
    memories: dict[str, dict[str, str]] = defaultdict(dict)
    for item_id, one in told.items():
        owner = f"user{one['user-id']}" if "user-id" in one else "everybody"
        memories[owner][item_id] = one["event"]
    dates = {i: datetime.fromisoformat(one["time"]).replace(tzinfo=UTC) for i, one in told.items()}
    return Part(memories, dates, asked, digest(*paths))


async def measure(part: Part) -> dict[str, Mapping[str, float]]:
    """Every way over the same dialogues, in one run."""
    scores = {
        name: Scores()
        for name in (*PLAIN, "Candor, full text", "given vectors alone", "Candor, fused")
    }
    plain = {
        name: {owner: PlainIndex(name, texts) for owner, texts in part.memories.items()}
        for name in PLAIN
    }
    drafts = [
        line(owner, f"{owner}:{item_id}", text, part.dates[item_id])
        for owner, texts in part.memories.items()
        for item_id, text in texts.items()
    ]
    async with memory_of(drafts) as memory:
        given = GivenRanks()
        search = memory.search(given)
        for question in part.asked:
            scope = Scope(owner_id=question.owner)
            for name, indexes in plain.items():
                scores[name].add(indexes[question.owner].find(question.text, DEPTH), question.gold)
            given.ids = [f"{question.owner}:{i}" for i in question.given]
            words = await memory.items.search(question.text, scope, limit=DEPTH)
            scores["Candor, full text"].add(
                [hit.item_id.partition(":")[2] for hit in words], question.gold
            )
            found = await search.search(question.text, scope=scope, limit=DEPTH)
            assert not found.degraded, found.degraded
            ids = [hit.item.id.partition(":")[2] for hit in found.hits]
            scores["Candor, fused"].add(ids, question.gold)
            scores["given vectors alone"].add(question.given, question.gold)
    return {name: one.figures() for name, one in scores.items()}


async def run(directory: Path) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for language in FILES:
        part = read(directory, language)
        figures = await measure(part)
        result[language] = {"hash": part.hash, "dialogues": len(part.asked), **figures}
        columns = list(next(iter(figures.values())))
        show(
            f"MADial-Bench {language}, {len(part.asked)} dialogues, Recall@k in %, data {part.hash}",
            ["", *columns],
            [[name, *(f"{one[c]:.1f}" for c in columns)] for name, one in figures.items()],
        )
    return result
