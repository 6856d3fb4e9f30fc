"""An episode as search sees it."""

import re
from typing import Final

from memory.clock import rfc3339
from memory.episodes.episode import Episode, SectionName, Sections
from memory.items.item import Item
from memory.text.lines import one_line

MAX_SUMMARY_CHARS: Final = 300

_TELLING_FIRST: Final[tuple[SectionName, ...]] = (
    "decisions",
    "pitfalls",
    "recipe",
    "verification",
    "actions",
    "context",
    "links",
)
_MARKS: Final = re.compile(r"^[^\S\n]*(?:[-*•]|\d{1,3}\.)\s+|[=_\-*~]{4,}|`", re.MULTILINE)
"""Marks of lists, rulers and code, which only take room in one line."""
_HEADING: Final = re.compile(r"^(\\*)(?=#)", re.MULTILINE)
"""A line of a section that looks like a heading, which is escaped with a backslash."""


def to_item(episode: Episode) -> Item:
    """Return the searchable item of an episode, with the episode's id and without the header."""
    return Item(
        id=episode.episode_id,
        kind="episode",
        scope=episode.scope,
        title=episode.title,
        summary=summary_of(episode.sections),
        body=_body(episode),
        source=source_of(episode),
        occurred_at=episode.occurred_at,
        updated_at=episode.updated_at,
        tags=episode.tags,
        conversation_id=episode.conversation_id,
        turn_id=episode.turn_id,
        revision=episode.revision,
    )


def _body(episode: Episode) -> str:
    """Return the sections and variants as Markdown; of a single section only its text."""
    named = episode.sections.named()
    if len(named) == 1 and not episode.variants:
        return next(iter(named.values()))
    parts = [f"## {name.capitalize()}\n\n{_escaped(text)}\n" for name, text in named.items()]
    if episode.variants:
        parts.append("## Variants\n")
    parts += [
        f"### {rfc3339(variant.occurred_at)}\n\n{_escaped(variant.text)}\n"
        for variant in episode.variants
    ]
    return "\n".join(parts).strip()


def _escaped(text: str) -> str:
    return _HEADING.sub(lambda match: f"\\{match[1]}", text)


def summary_of(sections: Sections) -> str:
    """Return the beginnings of the sections in one line, decisions and pitfalls first."""
    named = {name: _MARKS.sub(" ", text) for name, text in sections.named().items()}
    if len(named) == 1:
        return one_line(next(iter(named.values())), MAX_SUMMARY_CHARS)
    told = [name for name in _TELLING_FIRST if name in named]
    share = max(MAX_SUMMARY_CHARS // max(len(told), 1), _LEAST_SHARE)
    parts = [f"{name.capitalize()}: {one_line(named[name], share)}" for name in told]
    return one_line(" · ".join(parts), MAX_SUMMARY_CHARS)


_LEAST_SHARE = 90


def source_of(episode: Episode) -> str:
    """Return the origin of an episode for a reader."""
    if episode.turn_id is not None and episode.conversation_id is not None:
        return f"turn {episode.turn_id} of {episode.conversation_id}"
    return f"episode {episode.episode_id}"
