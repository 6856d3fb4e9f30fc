"""One thing that happened, in the form in which memory takes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

SourceKind = Literal["turn", "llm", "tool", "permission", "memory", "conversation", "delivery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryIntent:
    """What happened; made by the builders, taken by `record_intent` and by nothing else.

    The payload is raw: secrets in it are masked where it is rendered, and only what is rendered is
    ever stored or shown.
    """

    id: str
    """Made of what happened: recording the same again changes nothing."""
    key: str
    """A registered key, such as `tool.Bash.ok`."""
    source_kind: SourceKind
    owner_id: str
    payload: Mapping[str, Any]
    fallback_text: str
    """What a sink says where no template fits."""
    occurred_at: datetime
    conversation_id: str | None = None
    turn_id: str | None = None
