"""An episode: what happened once, in seven sections, with type, owner, time and sources.

A draft is an episode before the writer has clipped, redacted and judged it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

from memory.items.scope import Scope

EpisodeType = Literal[
    "run", "bugfix", "decision", "postmortem", "spec_update", "howto", "incident", "dialogue"
]
"""`run` is a turn with tool calls that has no other type; `dialogue` is something that was said."""

EPISODE_TYPES: Final[tuple[EpisodeType, ...]] = get_args(EpisodeType)

SectionName = Literal[
    "context", "actions", "decisions", "pitfalls", "recipe", "verification", "links"
]
SECTIONS: Final[tuple[SectionName, ...]] = get_args(SectionName)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The seven parts of an episode, in Markdown; an empty part is not written."""

    context: str = ""
    """The request and its constraints."""
    actions: str = ""
    """What was done."""
    decisions: str = ""
    """Decisions and their reasons."""
    pitfalls: str = ""
    """What went wrong."""
    recipe: str = ""
    """Steps to repeat."""
    verification: str = ""
    """Checks and their results."""
    links: str = ""
    """Files, commands, documents."""

    @classmethod
    def of(cls, texts: Mapping[str, str] | Mapping[SectionName, str]) -> "Sections":
        """Return the sections of these texts by name; unknown names are ignored."""
        given = {str(name): text for name, text in texts.items()}
        return cls(**{name: given[name] for name in SECTIONS if name in given})

    def named(self) -> dict[SectionName, str]:
        """Return the sections that are not empty, by name, in order."""
        texts: dict[SectionName, str] = {name: getattr(self, name) for name in SECTIONS}
        return {name: text for name, text in texts.items() if text.strip()}

    @property
    def text(self) -> str:
        """All sections without headings."""
        return "\n\n".join(self.named().values())


MAX_VARIANTS: Final = 8
"""With so many variants an episode takes no more; the next similar episode is stored as a new one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What a merged episode added."""

    occurred_at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A stored episode."""

    episode_id: str
    episode_type: EpisodeType
    title: str
    """One line, at most 200 characters."""
    scope: Scope
    sections: Sections
    occurred_at: datetime
    updated_at: datetime
    tags: tuple[str, ...] = ()
    """Sorted, each once."""
    source_refs: tuple[str, ...] = ()
    """Ids of the intents that it is based on."""
    variants: tuple[Variant, ...] = ()
    """What merged episodes added, oldest first."""
    repeats: int = 0
    """How often the same text came again."""
    conversation_id: str | None = None
    turn_id: str | None = None
    revision: int = 1
    """Grows with each change that a reader can see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The result of merging in an exported episode that is imported."""

    variants: tuple[Variant, ...] = ()
    repeats: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeDraft:
    """An episode to be written."""

    episode_type: EpisodeType
    title: str
    """May be empty; the beginning of the text replaces it."""
    scope: Scope
    sections: Sections
    tags: tuple[str, ...] = ()
    source_refs: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    """None: now."""
    conversation_id: str | None = None
    turn_id: str | None = None
    recalled_ids: tuple[str, ...] = ()
    """Items that were in the prompt; decisions that they state are removed."""
    recalled_texts: tuple[str, ...] = ()
    """The same, as texts."""
    was_shown_forgotten: bool = False
    """True if an item that was in the prompt is forgotten, so that repetitions of it cannot be
    found.
    """
    tools: tuple[str, ...] = ()
    """Names or signatures of the tools that it speaks of."""
    episode_id: str | None = None
    """None: a new one. A stored episode of this id stays as it is."""
    kept: Kept | None = None
    """Set for an import: the episode is stored as it was, and not merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clipped:
    """How many characters were removed from a section."""

    section: str
    chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The result of writing a draft."""

    status: Literal["stored", "merged", "there", "refused"]
    """`there`: an imported episode is stored already."""
    episode_id: str | None = None
    """The episode, or the episode that it was merged into; None if it was refused."""
    reason: str | None = None
    """Why it was refused, in a word."""
    clipped: tuple[Clipped, ...] = ()
    redacted: int = 0
    """Number of masked secrets and internal addresses."""
    left_out: int = 0
    """How many sentences were left out, since they say what must never be saved."""

    @property
    def notice(self) -> str | None:
        """Return a sentence on what was left out; None if nothing was."""
        if not self.left_out:
            return None
        told = "1 sentence was" if self.left_out == 1 else f"{self.left_out} sentences were"
        return (
            f"{told} left out: how a tool is called (its parameters, fields, a guessed or failed"
            " call) is never saved,"
            " since its live definition has it. A workaround, a gotcha or an owner is saved."
        )
