"""What memory gives to a turn, and the seam behind which memory stands.

The gateway asks before each run, within a deadline, and injects `ContextPack.text` beside the
prompt, never into it. Memory never breaks a turn: what is slow or broken is named in `degraded`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedItem:
    """One remembered thing that went into the prompt."""

    id: str
    kind: str
    title: str
    why: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressedItem:
    """One remembered thing that was held back, and the reason's code."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPack:
    """What memory has for one prompt."""

    text: str = ""
    """What is injected; empty: nothing."""
    injected: Sequence[InjectedItem] = field(default_factory=tuple)
    suppressed: Sequence[SuppressedItem] = field(default_factory=tuple)
    degraded: Sequence[str] = field(default_factory=tuple)
    """Codes of the parts that did not answer; empty: all did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """What a turn asks memory."""

    conversation_id: str
    user_id: str
    prompt: str


class MemoryReader(Protocol):
    """Where a turn's context comes from."""

    async def recall(self, request: RecallRequest) -> ContextPack:
        """Give what fits the prompt. May be cancelled at the turn's deadline at any await."""
        ...


class NullMemory:
    """A memory that holds nothing; every turn runs without context."""

    async def recall(self, request: RecallRequest) -> ContextPack:  # noqa: ARG002
        """Give an empty pack."""
        return ContextPack()
