"""The records of a history, one JSON object a line; README.md describes them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NEEDED: Mapping[str, str] = {
    "message": "text status",
    "deletion": "conversation_id",
    "deleted": "conversation_id",
    "connection": "reader conversation_id",
    "read": "reader id type",
    "reader_end": "reader",
    "lookup": "conversation_id status",
    "list": "conversation_ids",
    "agents": "conversation_id agents",
    "fault": "fault",
    "healed": "fault",
    "delivery": "message_id status",
    "conversation": "conversation_id",
    "turn": "turn_id conversation_id text state",
    "event": "conversation_id turn_id n seq type",
    "webhook_message": "message_id",
}
"""The fields that each kind of record must have."""


class HistoryError(ValueError):
    """The text is no history; the message says in which line, and why."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line."""

    line: int
    """From 1."""
    kind: str
    fields: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def get(self, name: str) -> Any:
        """Return a field, or None if the record lacks it."""
        return self.fields.get(name)

    @property
    def is_ok(self) -> bool:
        """The status that was answered says that it was done."""
        status = self.fields["status"]
        return status is not None and 200 <= status < 300


class History:
    """The records by kind, each kind in the order of the lines."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)

    def of(self, *kinds: str) -> Iterator[Record]:
        """Yield the records of these kinds."""
        return (record for record in self.records if record.kind in kinds)

    def first_of(self, kind: str) -> dict[str, Record]:
        """Return the first record of a kind for each conversation."""
        found: dict[str, Record] = {}
        for record in self.of(kind):
            found.setdefault(record["conversation_id"], record)
        return found


def read_history(lines: Iterable[str]) -> History:
    """Read a history. Raise `HistoryError` if a line is not a record."""
    return History(_record(number, line) for number, line in enumerate(lines, 1) if line.strip())


def _record(number: int, line: str) -> Record:
    try:
        fields = json.loads(line)
    except ValueError as exc:
        raise HistoryError(f"Line {number} is not JSON.") from exc
    kind = fields.get("kind") if isinstance(fields, dict) else None
    if not isinstance(kind, str) or kind not in NEEDED:
        raise HistoryError(f"Line {number} has no known `kind`: {', '.join(NEEDED)}.")
    missing = [name for name in NEEDED[kind].split() if name not in fields]
    if missing:
        raise HistoryError(f"Line {number}: `{kind}` lacks `{missing[0]}`.")
    return Record(number, kind, fields)
