"""Makes one episode of two that tell the same: what the second says otherwise becomes a variant."""

import json
import re
from dataclasses import replace
from typing import Final

from memory.episodes.clipping.clip import clip_text
from memory.episodes.episode import Episode, Variant
from memory.episodes.store import MAX_VARIANTS

MAX_VARIANT_CHARS: Final = 1_500
_SPACE: Final = re.compile(r"\s+")

_BY_TAGS: Final = frozenset(
    {"bugfix", "decision", "postmortem", "spec_update", "howto", "incident"}
)


def tags_key_of(episode: Episode) -> str | None:
    """Name the tags as one text; None where they do not make it like another one.

    What every turn is says nothing, nor do no tags; and a thread's record stands for itself.
    """
    if episode.episode_type not in _BY_TAGS or not episode.tags or episode.thread is not None:
        return None
    return json.dumps(sorted(map(str.casefold, episode.tags)), ensure_ascii=False)


def room_of(episode: Episode) -> int:
    """Tell how many variants can still be added."""
    return 0 if episode.thread is not None else max(0, MAX_VARIANTS - len(episode.variants))


def merged(existing: Episode, new: Episode) -> Episode:
    """Add to an episode what a like one says otherwise; where that is nothing, only count it.

    With all its variants, it counts whatever comes.
    """
    difference = _difference(existing, new)
    if not difference or len(existing.variants) >= MAX_VARIANTS:
        return replace(existing, repeats=existing.repeats + 1)
    variant = Variant(occurred_at=new.occurred_at, text=difference)
    return replace(
        existing,
        variants=(*existing.variants, variant),
        updated_at=max(existing.updated_at, new.updated_at),
        revision=existing.revision + 1,
    )


def _difference(existing: Episode, new: Episode) -> str:
    """The lines of the new one that the existing one does not have, each section's under its name."""
    texts = [
        existing.title,
        existing.sections.text,
        *(variant.text for variant in existing.variants),
    ]
    known = {_plain(line) for text in texts for line in text.split("\n")}
    parts: list[str] = []
    if _plain(new.title) not in known and not _begins(new.title, new.sections.text):
        parts.append(new.title)
    for name, text in new.sections.named().items():
        lines = [line for line in text.split("\n") if line.strip() and _plain(line) not in known]
        if lines:
            parts.append("\n".join([f"{name.capitalize()}:", *lines]))
    return clip_text("\n".join(parts), MAX_VARIANT_CHARS).strip()


def _plain(line: str) -> str:
    return _SPACE.sub(" ", line).strip()


def _begins(title: str, text: str) -> bool:
    """Whether a title is but the beginning of the text."""
    return _plain(text).startswith(_plain(title).removesuffix("…").rstrip())
