"""The labelled set: items as people and turns leave them, questions as people ask them.

Written by the real write path (episodes by the writer, notes as files that are indexed), asked
through the real reader. Rows are not tuned to the search; where a row fails, the search is at
fault.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory.embeddings.choice import EmbedderChoice
from memory.episodes.episode import EPISODE_TYPES, EpisodeDraft, Sections
from memory.items.scope import Scope
from memory.recall.query import ContextPack, QueryPack
from memory.service.assemble import open_memory
from memory.service.memory import Memory
from memory.service.plan import MemoryPlan
from policies.secrets import mask_secrets

HERE = Path(__file__).parent
AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_EPISODE_TYPES = {str(known_type): known_type for known_type in EPISODE_TYPES}
ANN = Scope(owner_id="ann")


@dataclass(frozen=True)
class Labelled:
    """One question with what it has to find, or must not show."""

    group: str
    q: str
    gold: Sequence[str] = ()
    hidden: Sequence[str] = ()
    tools: Sequence[str] = ()


@dataclass(frozen=True)
class Answered:
    """A question with its answer, items named by their keys."""

    asked: Labelled
    pack: ContextPack
    keys: tuple[str, ...]
    held_back: tuple[str, ...]

    @property
    def leaked(self) -> set[str]:
        """What must not be shown, and is, in whatever part of the pack; a note's heading may be."""
        told = repr(replace(self.pack, held_back=()))
        return {
            key
            for key in self.asked.hidden
            if re.search(rf"SENTINEL-{key.upper()}(?![A-Z-])", told)
        }

    @property
    def recall_at_5(self) -> float:
        return len(set(self.asked.gold) & set(self.keys[:5])) / len(self.asked.gold)


def rows(name: str) -> Iterator[dict[str, Any]]:
    """Read one of the files."""
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def questions() -> list[Labelled]:
    """Return all questions."""
    return [Labelled(**row) for row in rows("queries.jsonl")]


def _plan(directory: Path, *, with_vectors: bool) -> MemoryPlan:
    return MemoryPlan(
        data_dir=directory / "data",
        workspace=directory / "workspace",
        mask=mask_secrets,
        embedder=EmbedderChoice(name="multilingual"),
        serves_vectors=with_vectors,
    )


async def write_all(directory: Path) -> dict[str, str]:
    """Write all items; give the key of each item's id."""
    notes = directory / "workspace" / "memory"
    notes.mkdir(parents=True)
    (directory / "data").mkdir()
    keys: dict[str, str] = {}
    items = list(rows("items.jsonl"))
    for row in items:
        if row["as"] == "note":
            (notes / f"{row['key']}.md").write_text(str(row["text"]), encoding="utf-8")
    plan = _plan(directory, with_vectors=False)
    async with open_memory(plan, now=lambda: AT, draw=lambda: 0.5) as memory:
        await memory.notes.scan()
        for item in await memory.items.newest(ANN, kinds=["note"], limit=1000):
            keys[item.id] = Path(item.source).stem
        for row in items:
            if row["as"] == "episode":
                written = await memory.writer.write(_draft(row))
                assert written.status == "stored", (row["key"], written)
                keys[str(written.episode_id)] = str(row["key"])
    assert len(keys) == len(items), sorted(
        {str(item["key"]) for item in items} - set(keys.values())
    )
    return keys


def _draft(row: Mapping[str, Any]) -> EpisodeDraft:
    return EpisodeDraft(
        episode_type=_EPISODE_TYPES[str(row["type"])],
        title=str(row["title"]),
        scope=ANN,
        sections=Sections.of(row["sections"]),
        tags=tuple(row["tags"]),
        occurred_at=AT,
    )


@asynccontextmanager
async def asked_of(directory: Path, *, with_vectors: bool) -> AsyncIterator[Memory]:
    """Open what `write_all` wrote, with its vectors made or without any."""
    plan = _plan(directory, with_vectors=with_vectors)
    async with open_memory(plan, now=lambda: AT, draw=lambda: 0.5) as memory:
        if memory.vectors is not None:
            await memory.vectors.wait_settled()
        yield memory


async def answer_all(memory: Memory, keys: Mapping[str, str]) -> Sequence[Answered]:
    """Ask all questions."""
    answers = []
    for question in questions():
        pack = await memory.reader.recall(
            QueryPack(queries=[question.q], scope=ANN, active_tools=question.tools)
        )
        answers.append(
            Answered(
                asked=question,
                pack=pack,
                keys=tuple(keys[item.id] for item in pack.items),
                held_back=tuple(keys[held.id] for held in pack.held_back),
            )
        )
    return answers
