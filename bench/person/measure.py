"""How well a person's questions are answered from memory, beside plain full text.

`python -m bench person` measures the two sets in this directory, `python -m bench.person DIRECTORY` another one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from bench.person.corpus import SETS, PersonSet, Question, moment_of, read, write_notes
from bench.person.long_messages import long_messages
from bench.person.vectors import indexed
from bench.recall_memory import Memory, open_memory
from bench.recall_plain import PlainIndex
from bench.report import median, show
from memory.clock import utc_now
from memory.embeddings.protocol import TextEmbedder
from memory.episodes.episode import EpisodeDraft, Sections
from memory.facts.fact import Fact
from memory.facts.writes import FactWrites
from memory.intents.chronicle import SqlChronicle
from memory.intents.record import IntentRecorder
from memory.items.item import Item
from memory.items.scope import Scope
from memory.notes.index import NoteIndex
from memory.notes.store import SqlNoteStore
from memory.recall.query import RECALLED_KINDS, QueryPack
from memory.recall.reader import RecallReader
from memory.recall.retrievers import FulltextRetriever, Retriever
from memory.recall.search import MemorySearch

OWNER = "ann"
_PLAIN = "unigram+bigram"
_FIRST = 5
_SAME_LANGUAGE = ("same", "paraphrase", "time", "newest")

COLUMNS = (
    "found@5",
    "same language@5",
    "across@5",
    "shown without an answer",
    "items a question",
    "characters, p50",
    "long messages",
)

Shown = Sequence[tuple[str, str]]
"""Source and text of what is shown, best first."""


@dataclass(frozen=True)
class Answer:
    """What is shown for a question, and the length of the injected text."""

    shown: Shown
    chars: int


Ask = Callable[[str, Question], Awaitable[Answer]]


@dataclass
class Tally:
    """What is counted of some questions."""

    answers: list[tuple[Question, Answer]] = field(default_factory=list)
    long: list[bool] = field(default_factory=list)
    """For each long message of a question found as a short one: whether it is found."""

    def row(self) -> list[str]:
        answerable = [pair for pair in self.answers if pair[0].answers]
        near = [pair for pair in answerable if pair[0].kind in _SAME_LANGUAGE]
        across = [pair for pair in answerable if pair[0].kind == "cross"]
        silent = [answer for question, answer in self.answers if not question.answers]
        items = sum(len(answer.shown) for _, answer in self.answers) / max(1, len(self.answers))
        return [
            _share([is_found(*pair) for pair in answerable]),
            _share([is_found(*pair) for pair in near]),
            _share([is_found(*pair) for pair in across]),
            _share([bool(answer.shown) for answer in silent]),
            f"{items:.1f}",
            f"{median([answer.chars for _, answer in self.answers]):.0f}",
            _share(self.long),
        ]


def is_found(question: Question, answer: Answer) -> bool:
    """Return whether an answer is among the first five shown."""
    return any(question.is_answered_by(*item) for item in answer.shown[:_FIRST])


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
        recorder = IntentRecorder(SqlChronicle(memory.database), str)
        store = SqlNoteStore(
            memory.database, deliver_to=(), recording=recorder.recording, now=utc_now
        )
        await NoteIndex(workspace, store, str).scan()
        await memory.writer.write_all([_draft(row) for row in person.episodes])
        facts = FactWrites(deliver_to=(), recording=recorder.recording)
        for fact in map(_fact, person.facts):
            await memory.database.write(
                partial(facts.restore_blocking, fact=fact, now=utc_now(), with_line=False)
            )
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

        async def ask(text: str, question: Question) -> Answer:
            now[0] = question.asked_at
            pack = await reader.recall(
                QueryPack(queries=(text,), scope=Scope(owner_id=OWNER), kinds=RECALLED_KINDS)
            )
            assert not pack.degraded, pack.degraded
            ids = [item.id for item in pack.items]
            items = await memory.items.get_many(ids, Scope(owner_id=OWNER))
            return Answer([source_and_text(item) for item in items], len(pack.text))

        yield ask


def source_and_text(item: Item) -> tuple[str, str]:
    """Return what an answer is compared with."""
    return item.source if item.kind == "note" else item.id, f"{item.title}\n{item.body}"


def _draft(row: Any) -> EpisodeDraft:
    return EpisodeDraft(
        episode_id=row["id"],
        episode_type="decision",
        title=row["title"],
        scope=Scope(owner_id=OWNER),
        sections=Sections(context=row["text"]),
        occurred_at=moment_of(row),
    )


def _fact(row: Any) -> Fact:
    at = moment_of(row)
    return Fact(
        id=row["id"],
        text=row["text"],
        scope=Scope(owner_id=OWNER),
        origin="request",
        valid_from=at,
        updated_at=at,
    )


def asking_plain(person: PersonSet) -> Ask:
    """Ask one FTS5 column of whole texts, which shows its first five."""
    texts = person.texts
    index = PlainIndex(_PLAIN, texts)

    async def ask(text: str, question: Question) -> Answer:  # noqa: RUF029  answers as `asking` does
        del question
        shown = [(source, texts[source]) for source in index.find(text, _FIRST)]
        return Answer(shown, sum(len(whole) for _, whole in shown))

    return ask


async def tally(person: PersonSet, ask: Ask, *, with_long: bool) -> Tally:
    counted = Tally()
    for question in person.questions:
        answer = await ask(question.text, question)
        counted.answers.append((question, answer))
        if with_long and question.answers and is_found(question, answer):
            for _, text in long_messages(question.text):
                counted.long.append(is_found(question, await ask(text, question)))
    return counted


async def measure(
    directory: Path, *, with_long: bool = True, embedder: TextEmbedder | None = None
) -> None:
    """Measure a set and print its table."""
    person = read(directory)
    async with asking(person, embedder) as ask:
        candor = await tally(person, ask, with_long=with_long)
    plain = await tally(person, asking_plain(person), with_long=with_long)
    show(
        f"A person's questions, {directory.name}",
        ["", *COLUMNS],
        [["Candor", *candor.row()], ["unigrams and bigrams", *plain.row()]],
    )


async def run(rounds: int) -> None:
    """Measure both sets; they are the same each time."""
    del rounds
    for directory in SETS:
        await measure(directory)
