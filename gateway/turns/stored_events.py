"""Reads a turn's stored events; what is damaged in the database is left out instead of trusted."""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.conversations.model import TurnEvent
from gateway.turns.evidence import ToolStatus

_log = logging.getLogger(__name__)


class _Other(BaseModel):
    """An event that recovery does not read."""


class _Fields(BaseModel):
    """What recovery reads of an event; each kind below adds what events of it must have."""

    model_config = ConfigDict(strict=True)

    index: int | None = None
    parent_index: int | None = None
    parent_tool_use_id: str | None = None
    name: str = ""
    model: str | None = None
    output: str | None = None
    output_chars: int | None = None
    by: str | None = None
    ran: dict[str, Any] | None = None
    duration_ms: int | None = None
    void_text_chars: int = 0
    void_thinking_chars: int = 0


class _Text(_Fields):
    text: str


class _Started(_Fields):
    tool_use_id: str
    name: str
    summary: str
    input: dict[str, Any]


class _Finished(_Fields):
    tool_use_id: str
    status: ToolStatus
    error: str | None


class _Requested(_Fields):
    approval_id: str
    tool_use_id: str


class _Resolved(_Fields):
    approval_id: str
    decision: str


class _Notice(_Fields):
    code: str
    message: str


class _Injected(BaseModel):
    id: str
    title: str


class _Suppressed(BaseModel):
    id: str
    reason: str


class _Memory(_Fields):
    injected: list[_Injected]
    suppressed: list[_Suppressed]


class _Result(BaseModel):
    """What completing a turn with its result needs."""

    model_config = ConfigDict(strict=True)

    reply: str
    outcome: str
    stop_reason: str
    model: str
    notices: list[Any]
    tools: list[Any]
    memory: dict[str, Any]
    duration_ms: int


_KINDS: Final[Mapping[str, type[BaseModel]]] = {
    "text.delta": _Text,
    "thinking.delta": _Text,
    "tool.started": _Started,
    "tool.finished": _Finished,
    "approval.requested": _Requested,
    "approval.resolved": _Resolved,
    "notice": _Notice,
    "memory.injected": _Memory,
}
"""The events that recovery reads."""


def is_result(result: Mapping[str, Any] | None) -> bool:
    """Return whether this is a turn result, as far as completing the turn with it needs."""
    try:
        _Result.model_validate(result)
    except ValidationError:
        return False
    return True


def read_event(event: TurnEvent) -> dict[str, Any] | None:
    """Return an event's fields; None, with a line in the log, if they are not what was written."""
    try:
        data: dict[str, Any] = json.loads(event.data)
        _KINDS.get(event.type, _Other).model_validate(data)
    except (ValueError, TypeError, RecursionError):
        _log.error("event_damaged", extra={"event_id": event.id, "type": event.type})
        return None
    return data


def is_damaged(stored: Sequence[TurnEvent]) -> bool:
    """Return whether a turn's events have gaps, or one of them cannot be read."""
    numbers = [event.n for event in stored]
    return numbers != list(range(1, len(numbers) + 1)) or None in map(read_event, stored)
