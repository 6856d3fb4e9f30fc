"""One thing that happened, as memory takes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

SourceKind = Literal["turn", "llm", "tool", "permission", "memory", "conversation", "delivery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryIntent:
    """What happened; made by the builders, recorded by `record_intent`.

    The payload is raw: secrets in it are masked when it is rendered, and only the result is stored or shown.
    """

    id: str
    """Derived from what happened: recording the same again changes nothing."""
    key: str
    """A registered key, such as `tool.Bash.ok`."""
    source_kind: SourceKind
    owner_id: str
    payload: Mapping[str, Any]
    fallback_text: str
    """Used if there is no template."""
    occurred_at: datetime
    conversation_id: str | None = None
    turn_id: str | None = None
