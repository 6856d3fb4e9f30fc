"""One episode: what happened once, written so that it helps the next time.

A header says what, whose and when, and which intents it was made of; seven sections tell it. A draft is
an episode before the writer has clipped, redacted and judged it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

from memory.scope import Scope

EpisodeType = Literal[
    "run", "bugfix", "decision", "postmortem", "spec_update", "howto", "incident", "dialogue"
]
"""`run` is any turn with tool calls that is nothing more telling; `dialogue` one line of a conversation."""

EPISODE_TYPES: Final[tuple[EpisodeType, ...]] = get_args(EpisodeType)

SectionName = Literal[
    "context", "actions", "decisions", "pitfalls", "recipe", "verification", "links"
]
SECTIONS: Final[tuple[SectionName, ...]] = get_args(SectionName)

MAX_TITLE_CHARS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The seven parts of an episode, in Markdown; an empty one is not written."""

    context: str = ""
    """What was wanted, and under which constraints."""
    actions: str = ""
    """What was done."""
    decisions: str = ""
    """What was decided, and why."""
    pitfalls: str = ""
    """What went wrong or would have."""
    recipe: str = ""
    """Steps that can be taken again."""
    verification: str = ""
    """How it was checked, and what came out."""
    links: str = ""
    """Files, commands, documents."""

    @classmethod
    def of(cls, texts: Mapping[str, str] | Mapping[SectionName, str]) -> "Sections":
        """Take sections by name; a name that is none is left out."""
        given = {str(name): text for name, text in texts.items()}
        return cls(**{name: given[name] for name in SECTIONS if name in given})

    def named(self) -> dict[SectionName, str]:
        """Give the sections that say something, by name, in their order."""
        texts: dict[SectionName, str] = {name: getattr(self, name) for name in SECTIONS}
        return {name: text for name, text in texts.items() if text.strip()}

    @property
    def text(self) -> str:
        """All of it, without headings."""
        return "\n\n".join(self.named().values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What a like episode said that this one did not; all that is kept of it."""

    occurred_at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """An episode as it is remembered."""

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
    """Ids of the intents that it was made of."""
    variants: tuple[Variant, ...] = ()
    """What merging added, oldest first."""
    repeats: int = 0
    """How many times the very same came again."""
    conversation_id: str | None = None
    turn_id: str | None = None
    thread: str | None = None
    position: int | None = None
    revision: int = 1
    """Grows with each change that a reader can see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What merging had made of an episode that was written out and comes back."""

    variants: tuple[Variant, ...] = ()
    repeats: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeDraft:
    """An episode that somebody wants to be remembered."""

    episode_type: EpisodeType
    title: str
    """May be empty: the text's beginning stands in for it."""
    scope: Scope
    sections: Sections
    tags: tuple[str, ...] = ()
    source_refs: tuple[str, ...] = ()
    occurred_at: datetime | None = None
    """None: now."""
    conversation_id: str | None = None
    turn_id: str | None = None
    thread: str | None = None
    """What it is a part of. With `position`, a record of its own: never merged, however alike."""
    position: int | None = None
    recalled_ids: tuple[str, ...] = ()
    """Items that were put into the prompt: what merely repeats them is taken out."""
    recalled_texts: tuple[str, ...] = ()
    """The same, as texts."""
    was_shown_forgotten: bool = False
    """Whether something was put into the prompt that is forgotten by now: nobody can tell what repeats it."""
    tools: tuple[str, ...] = ()
    """Names of the tools that it speaks of."""
    is_evidence: bool = False
    """Made of what happened: apart from its decisions and what tools put out, nothing of it can be an echo."""
    episode_id: str | None = None
    """None: a new one. One that is stored already is left as it is."""
    kept: Kept | None = None
    """Of one that comes back from an export: it is stored as it was, and merged with nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clipped:
    """How much was left out of a section."""

    section: str
    chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of a draft."""

    status: Literal["stored", "merged", "there", "refused"]
    """`there`: it came back from an export, and is there already."""
    episode_id: str | None = None
    """The one that it is or went into; None exactly where it was refused."""
    reason: str | None = None
    """Why it was refused, in a word; None otherwise."""
    clipped: tuple[Clipped, ...] = ()
    redacted: int = 0
    """How many secrets and internal addresses were masked."""
    left_out: int = 0
    """How many sentences were left out, since they say what must never be saved."""

    @property
    def notice(self) -> str | None:
        """Say in words that sentences were left out, and why; None where none was."""
        if not self.left_out:
            return None
        told = "1 sentence was" if self.left_out == 1 else f"{self.left_out} sentences were"
        return (
            f"{told} left out: how a tool is called (its parameters, fields, a guessed or failed call) is never saved,"
            " since its live definition has it. A workaround, a gotcha or an owner is saved."
        )
