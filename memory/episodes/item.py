"""An episode as search sees it."""

import re
from typing import Final

from memory.episodes.episode import Episode, SectionName, Sections
from memory.episodes.markdown import body_of
from memory.items import Item
from memory.text_lines import one_line

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
_MARKS: Final = re.compile(r"^\s*(?:[-*•]|\d{1,3}\.)\s+|[=_\-*~]{4,}|`", re.MULTILINE)
"""Marks of lists, rulers and code, which only take room in one line."""


def to_item(episode: Episode) -> Item:
    """Return the searchable item of an episode, with the episode's id and without the header."""
    return Item(
        id=episode.episode_id,
        kind="episode",
        scope=episode.scope,
        title=episode.title,
        summary=summary_of(episode.sections),
        body=body_of(episode),
        source=source_of(episode),
        occurred_at=episode.occurred_at,
        updated_at=episode.updated_at,
        tags=episode.tags,
        conversation_id=episode.conversation_id,
        turn_id=episode.turn_id,
        thread=episode.thread,
        position=episode.position,
        revision=episode.revision,
    )


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
    if episode.thread is not None:
        return f"{episode.thread}, line {episode.position}"
    return f"episode {episode.episode_id}"
