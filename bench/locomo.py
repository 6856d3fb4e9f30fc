"""LoCoMo: which turns of a long dialogue answer a question? The data by path; it is not kept here.

Each session is a conversation and each turn of it a person's message, which the record makes an item of;
the owner is the dialogue. Gold are all `D<session>:<turn>` of a question's evidence.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio

from bench.recall_memory import open_memory
from bench.recall_plain import PLAIN, PlainIndex
from bench.recall_scores import Scores, digest
from bench.report import save, show
from gateway.conversations import migrations
from gateway.conversations.model import Conversation, fresh_conversation
from gateway.conversations.model import Turn as StoredTurn
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.record_queue import RecordQueue
from gateway.conversations.sql.turns import TurnStore
from gateway.ids import TurnId, UserId
from gateway.turns.record import RecordWorker
from memory.clock import utc_now
from memory.episodes.store import SqlEpisodeStore
from memory.items.scope import Scope
from memory.recall.search import MemorySearch
from memory.record.index import RecordIndex
from memory.record.store import SqlRecordStore
from memory.stores.sqlite.database import Database, migrations_of, open_database
from policies.secrets import mask_secrets

DEPTH = 20
_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D(\d+):(\d+)")
_MIGRATIONS = migrations_of(migrations.__name__)
_DATE = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True)
class Turn:
    """Something that was said; its id is the data's own, `D3:7`."""

    id: str
    session: int
    position: int
    text: str
    at: datetime


@dataclass(frozen=True)
class Question:
    """What is asked, and where it is answered."""

    text: str
    category: int
    gold: set[str]


@dataclass(frozen=True)
class Dialogue:
    """One of the conversations."""

    owner: str
    turns: Sequence[Turn]
    questions: Sequence[Question]


def read(path: Path) -> list[Dialogue]:
    told = json.loads(path.read_text(encoding="utf-8"))
    return [
        Dialogue(
            owner=f"dialogue{place}",
            turns=(turns := list(_turns(one["conversation"]))),
            questions=list(_questions(one["qa"], {turn.id for turn in turns})),
        )
        for place, one in enumerate(told)
    ]


def _turns(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    sessions = sorted(
        (int(found.group(1)), key)
        for key in conversation
        if (found := _SESSION.fullmatch(key)) and isinstance(conversation[key], list)
    )
    for session, key in sessions:
        start = _moment(conversation.get(f"{key}_date_time", ""))
        for position, one in enumerate(conversation[key], start=1):
            said = " ".join(
                part for part in (one.get("text", ""), one.get("blip_caption", "")) if part
            )
            yield Turn(
                id=one.get("dia_id", f"D{session}:{position}"),
                session=session,
                position=position,
                text=f"{one['speaker']}: {said}",
                at=start + timedelta(seconds=position),
            )


def _moment(text: str) -> datetime:
    try:
        return datetime.strptime(text, _DATE).replace(tzinfo=UTC)
    except ValueError:
        return datetime(2023, 1, 1, tzinfo=UTC)


def _questions(asked: Sequence[Mapping[str, Any]], known: set[str]) -> Iterator[Question]:
    """Those with usable evidence; a list may hold several ids in one text, with noise around them."""
    for question in asked:
        named = " ".join(map(str, question.get("evidence") or ()))
        gold = {f"D{int(s)}:{int(n)}" for s, n in _EVIDENCE.findall(named)} & known
        if gold:
            yield Question(str(question["question"]), int(question.get("category", 0)), gold)


@asynccontextmanager
async def recorded(dialogue: Dialogue) -> AsyncIterator[MemorySearch]:
    """A search over the record of a dialogue's conversations, which are gone afterwards."""
    async with anyio.TemporaryDirectory(prefix="locomo-") as directory:
        database = await open_database(Path(directory) / "candor.sqlite3", _MIGRATIONS)
        try:
            async with open_memory(Path(directory)) as memory:
                index = RecordIndex(
                    SqlRecordStore(memory.database, utc_now, deliver_to=()),
                    SqlEpisodeStore(memory.database, utc_now).recalled_texts,
                    mask=mask_secrets,
                    now=utc_now,
                )
                worker = RecordWorker(RecordQueue(database), index, is_on=True)
                await worker.start()
                await _write(dialogue, database)
                await worker.catch_up()
                yield memory.search()
        finally:
            await database.close()


async def _write(dialogue: Dialogue, database: Database) -> None:
    """Write the dialogue's turns as finished turns, as the gateway leaves them."""
    turns, conversations = TurnStore(database), ConversationStore(database)
    user = UserId(dialogue.owner)
    known: dict[int, Conversation] = {}
    ended = []
    for turn in dialogue.turns:
        if turn.session not in known:
            known[turn.session] = fresh_conversation(user, turn.at)
            await conversations.create(known[turn.session])
        said = StoredTurn(
            id=TurnId(turn.id),
            conversation_id=known[turn.session].id,
            user_id=user,
            seq=0,
            state="queued",
            message=turn.text,
            created_at=turn.at,
        )
        result = {"reply": "", "outcome": "empty", "memory": {"injected": []}}
        done = replace(await turns.accept(said), state="completed", started_at=turn.at)
        ended.append(replace(done, finished_at=turn.at, result=result))
    await turns.finish(ended, [])


async def measure(dialogues: Sequence[Dialogue]) -> dict[str, dict[str, Any]]:
    names = (*PLAIN, "Candor")
    scores = {name: Scores() for name in names}
    sessions = {name: Scores(cuts=(1, 3, 5)) for name in names}
    categories: dict[int, Scores] = {}
    for dialogue in dialogues:
        texts = {turn.id: turn.text for turn in dialogue.turns}
        plain = {name: PlainIndex(name, texts) for name in PLAIN}
        scope = Scope(owner_id=dialogue.owner)
        async with recorded(dialogue) as search:
            for question in dialogue.questions:
                found = {name: index.find(question.text, DEPTH) for name, index in plain.items()}
                answer = await search.search(question.text, scope=scope, limit=DEPTH)
                assert not answer.degraded, answer.degraded
                found["Candor"] = [hit.item.id for hit in answer.hits]
                for name, ids in found.items():
                    scores[name].add(ids, question.gold)
                    sessions[name].add(_sessions(ids), set(_sessions(list(question.gold))))
                categories.setdefault(question.category, Scores()).add(
                    found["Candor"], question.gold
                )
    return {
        "turns": {name: dict(one.figures()) for name, one in scores.items()},
        "sessions": {name: dict(one.figures()) for name, one in sessions.items()},
        "Candor, turns, by category": {
            str(name): {"questions": one.count, **one.figures()}
            for name, one in sorted(categories.items())
        },
    }


def _sessions(ids: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(item_id.partition(":")[0] for item_id in ids))


async def run(path: Path) -> None:
    dialogues = read(path)
    asked = sum(len(dialogue.questions) for dialogue in dialogues)
    said = sum(len(dialogue.turns) for dialogue in dialogues)
    figures = await measure(dialogues)
    hashed = digest(path)
    for name, rows in figures.items():
        columns = list(next(iter(rows.values()), {}))
        show(
            f"LoCoMo {name}: {asked} questions, {said} turns, Recall@k in %, data {hashed}",
            ["", *columns],
            [[row, *(f"{one[c]}" for c in columns)] for row, one in rows.items()],
        )
    save("locomo", {"hash": hashed, "questions": asked, "turns_said": said, **figures})
