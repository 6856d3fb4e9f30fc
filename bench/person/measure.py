"""How well a person's questions are answered from memory, beside plain full text.

`python -m bench person` measures this set, `python -m bench.person DIRECTORY` another one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from bench.person.corpus import DEFAULT, PersonSet, Question, moment_of, read, write_notes
from bench.person.long_messages import long_messages
from bench.person.vectors import EmbedderOf, indexed
from bench.recall_memory import Memory, open_memory
from bench.recall_plain import PlainIndex
from bench.report import show
from memory.clock import utc_now
from memory.embeddings.protocol import TextEmbedder
from memory.episodes.episode import EpisodeDraft, Sections
from memory.intents.record import IntentRecorder
from memory.items import Item
from memory.notes.index import NoteIndex
from memory.recall.query import RECALLED_KINDS, QueryPack
from memory.recall.reader import RecallReader
from memory.recall.retrievers import FulltextRetriever, Retriever
from memory.recall.search import MemorySearch
from memory.scope import Scope
from memory.stores.sqlite.chronicle import SqliteChronicle
from memory.stores.sqlite.notes import SqliteNoteStore

OWNER = "ann"
_PLAIN = "unigram+bigram"
_FIRST = 5
_SAME_LANGUAGE = ("same", "paraphrase", "time", "newest")

Shown = Sequence[tuple[str, str]]
"""Source and text of what is shown, best first."""
Ask = Callable[[str, Question], Awaitable[Shown]]


@dataclass
class Tally:
    """What is counted of some questions."""

    shown: list[tuple[Question, Shown]] = field(default_factory=list)
    long: list[bool] = field(default_factory=list)
    """For each long message of a question found as a short one: whether it is found."""

    def row(self) -> list[str]:
        answerable = [pair for pair in self.shown if pair[0].answers]
        near = [pair for pair in answerable if pair[0].kind in _SAME_LANGUAGE]
        across = [pair for pair in answerable if pair[0].kind == "cross"]
        silent = [shown for question, shown in self.shown if not question.answers]
        items = sum(len(shown) for _, shown in self.shown) / max(1, len(self.shown))
        return [
            _share([is_found(*pair, _FIRST) for pair in answerable]),
            _share([is_found(*pair) for pair in near]),
            _share([is_found(*pair) for pair in across]),
            _share([bool(shown) for shown in silent]),
            f"{items:.1f}",
            _share(self.long),
        ]


def is_found(question: Question, shown: Shown, most: int | None = None) -> bool:
    """Return whether an answer is among the first shown."""
    return any(question.is_answered_by(*item) for item in shown[:most])


def _share(counted: Sequence[bool]) -> str:
    share = 100 * sum(counted) / max(1, len(counted))
    return f"{sum(counted)}/{len(counted)} ({share:.0f} %)"


@asynccontextmanager
async def remembering(person: PersonSet) -> AsyncIterator[Memory]:
    """Write a set into a memory."""
    async with (
        anyio.TemporaryDirectory(prefix="person-") as name,
        open_memory(Path(name)) as memory,
    ):
        workspace = Path(name) / "workspace"
        write_notes(person, workspace)
        recorder = IntentRecorder(SqliteChronicle(memory.database), str)
        store = SqliteNoteStore(
            memory.database, deliver_to=(), recording=recorder.recording, now=utc_now
        )
        await NoteIndex(workspace, store, str).scan()
        await memory.write_all([_draft(row) for row in person.episodes])
        yield memory


@asynccontextmanager
async def asking(person: PersonSet, embedder: TextEmbedder | None = None) -> AsyncIterator[Ask]:
    """Write a set into a memory, and ask it as a turn does."""
    now = [utc_now()]
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(remembering(person))
        retrievers: list[Retriever] = [FulltextRetriever(memory.items)]
        if embedder is not None:
            retrievers.append(await stack.enter_async_context(indexed(memory, embedder)))
        search = MemorySearch(memory.items, retrievers, now=lambda: now[0])
        reader = RecallReader(search)

        async def ask(text: str, question: Question) -> Shown:
            now[0] = question.asked_at
            pack = await reader.recall(
                QueryPack(queries=(text,), scope=Scope(owner_id=OWNER), kinds=RECALLED_KINDS)
            )
            assert not pack.degraded, pack.degraded
            ids = [item.id for item in pack.items]
            items = await memory.items.get_many(ids, Scope(owner_id=OWNER))
            return [source_and_text(item) for item in items]

        yield ask


def source_and_text(item: Item) -> tuple[str, str]:
    """Return what an answer is compared with."""
    return item.id if item.kind == "episode" else item.source, f"{item.title}\n{item.body}"


def _draft(row: Any) -> EpisodeDraft:
    return EpisodeDraft(
        episode_id=row["id"],
        episode_type="decision",
        title=row["title"],
        scope=Scope(owner_id=OWNER),
        sections=Sections(context=row["text"]),
        occurred_at=moment_of(row),
    )


def asking_plain(person: PersonSet) -> Ask:
    """Ask one FTS5 column of whole texts, which shows its first five."""
    texts = person.texts
    index = PlainIndex(_PLAIN, texts)

    async def ask(text: str, question: Question) -> Shown:  # noqa: RUF029  answers as `asking` does
        del question
        return [(source, texts[source]) for source in index.find(text, _FIRST)]

    return ask


async def tally(person: PersonSet, ask: Ask, half: str, *, with_long: bool) -> Tally:
    counted = Tally()
    for question in person.questions:
        if question.half != half:
            continue
        shown = await ask(question.text, question)
        counted.shown.append((question, shown))
        if with_long and question.answers and is_found(question, shown):
            for _, text in long_messages(question.text):
                counted.long.append(is_found(question, await ask(text, question)))
    return counted


async def measure(
    directory: Path = DEFAULT,
    *,
    with_long: bool = True,
    embedder_of: EmbedderOf = lambda _: None,
) -> dict[str, Any]:
    person = read(directory)
    figures: dict[str, Any] = {}
    halves = sorted({question.half for question in person.questions}, reverse=True)
    columns = [
        "found@5",
        "shown, same language",
        "shown, across",
        "shown without an answer",
        "items a question",
        "long messages",
    ]
    async with asking(person, embedder_of(person)) as ask:
        for half in halves:
            candor = (await tally(person, ask, half, with_long=with_long)).row()
            plain = (await tally(person, asking_plain(person), half, with_long=with_long)).row()
            figures[half] = {
                "Candor": dict(zip(columns, candor, strict=True)),
                "plain": dict(zip(columns, plain, strict=True)),
            }
            show(
                f"A person's questions, {half}",
                ["", *columns],
                [["Candor", *candor], ["unigrams and bigrams", *plain]],
            )
    return figures


async def run(rounds: int) -> None:
    """Measure this set; it is the same each time."""
    del rounds
    await measure()
