"""Reads a turn's stored events; what is damaged in the database is left out instead of trusted."""

import json
import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Any, Final, get_args

from gateway.conversations.model import TurnEvent
from gateway.turns.evidence import ToolStatus

_log = logging.getLogger(__name__)

Kinds = type | tuple[type, ...]

_TEXT: Final = (str, NoneType)
_NEEDED: Final[Mapping[str, Mapping[str, Kinds]]] = {
    "text.delta": {"text": str},
    "thinking.delta": {"text": str},
    "tool.started": {"tool_use_id": str, "name": str, "summary": str, "input": dict},
    "tool.finished": {"tool_use_id": str, "status": str, "error": _TEXT},
    "approval.requested": {"approval_id": str, "tool_use_id": str},
    "approval.resolved": {"approval_id": str, "decision": str},
    "notice": {"code": str, "message": str},
    "memory.injected": {"injected": list, "suppressed": list},
}
"""The fields that recovery needs, by type of event, and what they are."""
_OPTIONAL: Final[Mapping[str, Kinds]] = MappingProxyType(
    {
        "index": (int, NoneType),
        "parent_index": (int, NoneType),
        "parent_tool_use_id": _TEXT,
        "name": str,
        "model": _TEXT,
        "output": _TEXT,
        "output_chars": (int, NoneType),
        "by": _TEXT,
        "ran": (dict, NoneType),
        "duration_ms": (int, NoneType),
        "void_text_chars": int,
        "void_thinking_chars": int,
    }
)
_ITEMS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {"injected": ("id", "title"), "suppressed": ("id", "reason")}
)
"""The texts that each item of these lists needs."""

_RESULT: Final[Mapping[str, Kinds]] = {
    **dict.fromkeys(("reply", "outcome", "stop_reason", "model"), str),
    **dict.fromkeys(("notices", "tools"), list),
    "memory": dict,
    "duration_ms": int,
}
"""The fields of a turn result that its completion needs."""


def is_result(result: Mapping[str, Any] | None) -> bool:
    """Return whether this is a turn result, as far as completing the turn with it needs."""
    return result is not None and _has(result, _RESULT)


def read_event(event: TurnEvent) -> dict[str, Any] | None:
    """Return an event's fields; None, with a line in the log, if they are not what was written."""
    data = _decoded(event.data)
    if data is None or not _is_whole(event.type, data):
        _log.error("event_damaged", extra={"event_id": event.id, "type": event.type})
        return None
    return data


def is_damaged(stored: Sequence[TurnEvent]) -> bool:
    """Return whether a turn's events have gaps, or one of them cannot be read."""
    numbers = [event.n for event in stored]
    return numbers != list(range(1, len(numbers) + 1)) or None in map(read_event, stored)


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _is_whole(kind: str, data: Mapping[str, Any]) -> bool:
    needed = _NEEDED.get(kind)
    if needed is None:
        return True  # recovery does not read it
    return (
        _has(data, needed)
        and all(isinstance(data[name], kinds) for name, kinds in _OPTIONAL.items() if name in data)
        and ("status" not in needed or data["status"] in get_args(ToolStatus))
        and all(_are_items(data[name], texts) for name, texts in _ITEMS.items() if name in needed)
    )


def _has(data: Mapping[str, Any], needed: Mapping[str, Kinds]) -> bool:
    return all(name in data and isinstance(data[name], kinds) for name, kinds in needed.items())


def _are_items(items: Sequence[Any], texts: Sequence[str]) -> bool:
    return all(
        isinstance(item, dict) and all(isinstance(item.get(name), str) for name in texts)
        for item in items
    )
