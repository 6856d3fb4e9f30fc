"""A fact: one statement that a person told, theirs alone.

A fact holds from when it was told until another one comes in its place; the older one is kept.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from memory.items import Item
from memory.scope import Scope
from memory.text_lines import one_line
from memory.wording import words_of

MAX_FACT_CHARS: Final = 2_000
MAX_TITLE_CHARS: Final = 120

Origin = Literal["request", "statement", "correction", "model", "person"]
"""A request to remember, a statement of a person about themselves, a correction, what a model found in the
conversation, or what a person wrote over HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A stored fact."""

    id: str
    text: str
    """Masked, one paragraph."""
    scope: Scope
    origin: Origin
    valid_from: datetime
    updated_at: datetime
    lasting: bool = False
    """True if it stands in the person's profile."""
    evidence: str | None = None
    """The words of the conversation that a model's fact rests on."""
    valid_until: datetime | None = None
    """None while it holds."""
    superseded_by: str | None = None
    conversation_id: str | None = None
    turn_id: str | None = None
    """The turn in which it was told."""
    revision: int = 1

    @property
    def form(self) -> str:
        """Its words without spelling and order of writing; equal for the same statement."""
        return " ".join(words_of(self.text))

    def until(self, moment: datetime, superseded_by: str) -> "Fact":
        """Return it as superseded."""
        return replace(
            self,
            valid_until=moment,
            updated_at=moment,
            superseded_by=superseded_by,
            revision=self.revision + 1,
        )

    def again(self, moment: datetime) -> "Fact":
        """Return it as one that holds again."""
        return replace(
            self,
            valid_until=None,
            updated_at=moment,
            superseded_by=None,
            revision=self.revision + 1,
        )


def to_item(fact: Fact) -> Item:
    """Return the searchable item of a fact, with the fact's id."""
    told = f"told in turn {fact.turn_id} of {fact.conversation_id}"
    return Item(
        id=fact.id,
        kind="fact",
        scope=fact.scope,
        title=one_line(fact.text, MAX_TITLE_CHARS),
        summary=one_line(fact.text, 300),
        body=fact.text,
        source=told if fact.turn_id is not None else "told by the person",
        occurred_at=fact.valid_from,
        updated_at=fact.updated_at,
        conversation_id=fact.conversation_id,
        turn_id=fact.turn_id,
        revision=fact.revision,
        valid_until=fact.valid_until,
    )
