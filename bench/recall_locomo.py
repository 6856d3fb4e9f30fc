"""LoCoMo: which turns of a long dialogue answer a question? The data by path; it is not kept here.

One memory a turn, written as an import of a conversation writes it; the scope is the conversation. Gold are
all `D<session>:<turn>` of a question's evidence.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.recall_memory import line, memory_of
from bench.recall_plain import PLAIN, PlainIndex
from bench.recall_scores import Scores, digest
from bench.report import show
from memory.episodes.episode import EpisodeDraft
from memory.scope import Scope

DEPTH = 20
_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D(\d+):(\d+)")
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


def drafts_of(dialogue: Dialogue) -> list[EpisodeDraft]:
    return [
        line(
            dialogue.owner,
            f"{dialogue.owner}/{turn.id}",
            turn.text,
            turn.at,
            thread=f"{dialogue.owner}/D{turn.session}",
            position=turn.position,
        )
        for turn in dialogue.turns
    ]


async def measure(dialogues: Sequence[Dialogue]) -> dict[str, dict[str, Any]]:
    names = (*PLAIN, "Candor")
    scores = {name: Scores() for name in names}
    sessions = {name: Scores(cuts=(1, 3, 5)) for name in names}
    categories: dict[int, Scores] = {}
    for dialogue in dialogues:
        texts = {turn.id: turn.text for turn in dialogue.turns}
        plain = {name: PlainIndex(name, texts) for name in PLAIN}
        scope = Scope(owner_id=dialogue.owner)
        async with memory_of(drafts_of(dialogue)) as memory:
            search = memory.search()
            for question in dialogue.questions:
                found = {name: index.find(question.text, DEPTH) for name, index in plain.items()}
                answer = await search.search(question.text, scope=scope, limit=DEPTH)
                assert not answer.degraded, answer.degraded
                found["Candor"] = [hit.item.id.rpartition("/")[2] for hit in answer.hits]
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


async def run(path: Path) -> dict[str, Any]:
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
    return {"hash": hashed, "questions": asked, "turns_said": said, **figures}
