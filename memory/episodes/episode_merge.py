"""Merges an episode into a similar one; what it says otherwise becomes a variant.

Episodes are similar if their texts are equal, or if they are of the same type and tags and about
the same time.
"""

import hashlib
import json
import re
from dataclasses import replace
from typing import Final

from memory.episodes.clipping.clip import clip_text
from memory.episodes.episode import MAX_VARIANTS, Episode, Variant

MAX_VARIANT_CHARS: Final = 1_500
_SPACE: Final = re.compile(r"\s+")

_BY_TAGS: Final = frozenset(
    {"bugfix", "decision", "postmortem", "spec_update", "howto", "incident"}
)


def fingerprint_of(episode: Episode) -> bytes:
    """Return 16 bytes that equal texts of one realm share, ignoring white space."""
    text = f"{episode.title}\n{episode.sections.text}"
    plain = "\0".join(" ".join(part.split()) for part in (realm_of(episode), text))
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def realm_of(episode: Episode) -> str:
    """Return owner and labels as one text; nothing is merged across them."""
    return json.dumps([episode.scope.owner_id, episode.scope.labels], ensure_ascii=False)


def tags_key_of(episode: Episode) -> str | None:
    """Return the tags as one text; None if episodes of this type are not merged by their tags."""
    if episode.episode_type not in _BY_TAGS or not episode.tags:
        return None
    return json.dumps(sorted(map(str.casefold, episode.tags)), ensure_ascii=False)


def room_of(episode: Episode) -> int:
    """Return how many variants can still be added."""
    return max(0, MAX_VARIANTS - len(episode.variants))


def merged(existing: Episode, new: Episode) -> Episode:
    """Add what a similar episode says otherwise as a variant; count it if that is nothing, or if
    there is no room.
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
    """Return the lines that only the new episode has, under their sections' names."""
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
    """Return whether a title is only the beginning of the text."""
    return _plain(text).startswith(_plain(title).removesuffix("…").rstrip())
