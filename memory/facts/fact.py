"""A fact: one statement that a person told, theirs alone.

A fact holds from when it was told until another one comes in its place; the older one is kept.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from memory.facts.evidence import plain
from memory.items.item import Item
from memory.items.scope import Scope
from memory.text.lines import flat, one_line

MAX_TITLE_CHARS: Final = 120

Origin = Literal["request", "statement", "correction", "model", "person"]
"""What the agent was asked to keep, or what replaced something; what a small model found in the
conversation; or what a person wrote over HTTP. `statement` is of earlier releases.
"""


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
    """The person's own words that it rests on, verbatim but for secrets."""
    valid_until: datetime | None = None
    """None while it holds."""
    superseded_by: str | None = None
    conversation_id: str | None = None
    turn_id: str | None = None
    """The turn whose message told it."""
    saved_turn_id: str | None = None
    """The turn in which it was kept: a later one, if the agent was asked about an earlier message.
    """
    revision: int = 1

    @property
    def form(self) -> str:
        """Its text for comparisons; equal for the same statement."""
        return plain(self.text).rstrip(".!。！ ")

    @property
    def body(self) -> str:
        """Its text, and what the person said, on a line of its own unless the text has it."""
        evidence = self.evidence
        if evidence is None or plain(evidence) in plain(self.text):
            return self.text
        return f"{self.text}\nsaid: “{flat(evidence)}”"

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
    return Item(
        id=fact.id,
        kind="fact",
        scope=fact.scope,
        title=one_line(fact.text, MAX_TITLE_CHARS),
        summary=one_line(fact.text, 300),
        body=fact.body,
        source="told by the person",
        occurred_at=fact.valid_from,
        updated_at=fact.updated_at,
        conversation_id=fact.conversation_id,
        turn_id=fact.turn_id,
        revision=fact.revision,
        valid_until=fact.valid_until,
    )
