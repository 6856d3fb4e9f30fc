"""Reads a set; the README beside this file describes its format."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SETS = [Path(__file__).with_name(name) for name in ("eighth", "ninth")]
"""The two latest by authors who had not seen the code."""
_ASKED_AT = "2026-11-23T09:00:00Z"
_FIELDS: Mapping[str, tuple[set[str], set[str]]] = {
    "notes": ({"path", "text", "modified"}, set()),
    "episodes": ({"id", "title", "text", "at"}, set()),
    "facts": ({"id", "text", "at"}, set()),
    "questions": ({"id", "text", "lang", "kind", "answers"}, {"asked_at"}),
}


@dataclass(frozen=True)
class Answer:
    """Where a question is answered."""

    source: str
    contains: str


@dataclass(frozen=True)
class Question:
    """A message, and what answers it."""

    id: str
    text: str
    lang: str
    kind: str
    asked_at: datetime
    answers: Sequence[Answer]

    def is_answered_by(self, source: str, text: str) -> bool:
        return any(answer.source == source and answer.contains in text for answer in self.answers)


@dataclass(frozen=True)
class PersonSet:
    """Notes, episodes, facts and questions."""

    notes: Sequence[Mapping[str, Any]]
    episodes: Sequence[Mapping[str, Any]]
    facts: Sequence[Mapping[str, Any]]
    questions: Sequence[Question]

    @property
    def texts(self) -> dict[str, str]:
        """The text of each source."""
        notes = {note["path"]: note["text"] for note in self.notes}
        facts = {fact["id"]: fact["text"] for fact in self.facts}
        return (
            notes | facts | {one["id"]: f"{one['title']}\n{one['text']}" for one in self.episodes}
        )


def read(directory: Path) -> PersonSet:
    """Read a set.

    Raises:
        ValueError: a field is missing or unknown, or an answer is not in its source.
    """
    rows = {name: _rows(directory / f"{name}.jsonl", *_FIELDS[name]) for name in _FIELDS}
    questions = [_question(row) for row in rows["questions"]]
    person = PersonSet(rows["notes"], rows["episodes"], rows["facts"], questions)
    texts = person.texts
    for question in questions:
        if (question.kind == "none") == bool(question.answers):
            raise ValueError(f"{question.id}: only the kind `none` has no answers")
        for answer in question.answers:
            if answer.contains not in texts.get(answer.source, ""):
                raise ValueError(f"{question.id}: {answer} is not in the set")
    return person


def write_notes(person: PersonSet, workspace: Path) -> None:
    """Write the notes' files with their modification times."""
    for note in person.notes:
        path = workspace / note["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note["text"], encoding="utf-8")
        at = _moment(note["modified"]).timestamp()
        os.utime(path, (at, at))


def moment_of(row: Mapping[str, Any]) -> datetime:
    """Return when an episode happened or a fact was told."""
    return _moment(row["at"])


def _rows(path: Path, needed: set[str], optional: set[str]) -> list[dict[str, Any]]:
    load: Callable[[str], dict[str, Any]] = json.loads
    if path.stem == "facts" and not path.exists():
        return []
    rows = [load(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    for row in rows:
        if not needed <= row.keys() <= needed | optional:
            raise ValueError(f"{path.name}: {sorted(row.keys() ^ needed)} in {row}")
    return rows


def _question(row: Mapping[str, Any]) -> Question:
    return Question(
        id=row["id"],
        text=row["text"],
        lang=row["lang"],
        kind=row["kind"],
        asked_at=_moment(row.get("asked_at", _ASKED_AT)),
        answers=[Answer(**answer) for answer in row["answers"]],
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
