"""Memory out as JSON lines, and in again: episodes whole, each with the id under which it is known.

What is written out holds no secret: those were masked before it was stored. Reading the same lines twice
changes nothing. Notes are files and are copied as files.
"""

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from memory.clock import from_rfc3339, rfc3339
from memory.episodes.episode import (
    EPISODE_TYPES,
    Episode,
    EpisodeDraft,
    EpisodeType,
    Sections,
)
from memory.episodes.store import EpisodeStore
from memory.itemstore import ItemStore
from memory.scope import LABELS, Scope

FORMAT: Final = "candor-episode-1"
_BATCH: Final = 100


class NotTransferable(ValueError):
    """A line is no episode; the text says which and why."""


async def export_episodes(
    items: ItemStore, episodes: EpisodeStore, owner_id: str | None = None
) -> AsyncIterator[str]:
    """Give a line for each episode, in the order of writing; of one owner, or of all."""
    seq = 0
    while some := await items.after(seq, _BATCH):
        seq = some[-1].seq
        for one in some:
            scope = one.item.scope
            if one.item.kind != "episode" or owner_id not in {None, scope.owner_id}:
                continue
            episode = await episodes.get(one.item.id, Scope(owner_id=scope.owner_id))
            if episode is not None:
                yield _line(episode)


def read_drafts(lines: Iterable[str], owner_id: str | None = None) -> Iterator[EpisodeDraft]:
    """Read lines that were written out; `owner_id` takes them all over for one owner.

    Raises:
        NotTransferable: a line is no episode; those before it were given.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            draft = _draft(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as exc:
            raise NotTransferable(f"Line {number} is no episode that was exported here.") from exc
        if owner_id is not None:
            draft = replace(draft, scope=replace(draft.scope, owner_id=owner_id))
        yield draft


def _line(episode: Episode) -> str:
    value = {
        "format": FORMAT,
        "episode_id": episode.episode_id,
        "episode_type": episode.episode_type,
        "title": episode.title,
        "owner_id": episode.scope.owner_id,
        "scope": episode.scope.labels,
        "tags": list(episode.tags),
        "source_refs": list(episode.source_refs),
        "occurred_at": rfc3339(episode.occurred_at),
        "sections": {name: text for name, text in asdict(episode.sections).items() if text},
        "variants": [one.text for one in episode.variants],
        "conversation_id": episode.conversation_id,
        "turn_id": episode.turn_id,
        "thread": episode.thread,
        "position": episode.position,
    }
    return json.dumps(value, ensure_ascii=False)


def _draft(value: Any) -> EpisodeDraft:
    if value["format"] != FORMAT or value["episode_type"] not in EPISODE_TYPES:
        raise ValueError("another format")
    labels = {name: str(one) for name, one in value["scope"].items() if name in LABELS}
    sections = Sections.of({name: str(one) for name, one in value["sections"].items()})
    return EpisodeDraft(
        episode_id=str(value["episode_id"]),
        episode_type=cast("EpisodeType", value["episode_type"]),  # it is one of them, see above
        title=str(value["title"]),
        scope=Scope(owner_id=str(value["owner_id"]), **labels),
        sections=_with_variants(sections, [str(one) for one in value["variants"]]),
        tags=tuple(str(one) for one in value["tags"]),
        source_refs=tuple(str(one) for one in value["source_refs"]),
        occurred_at=_moment(value["occurred_at"]),
        conversation_id=value.get("conversation_id"),
        turn_id=value.get("turn_id"),
        thread=value.get("thread"),
        position=value.get("position"),
    )


def _with_variants(sections: Sections, variants: list[str]) -> Sections:
    """Put what merging had added into the text: variants of their own are made by merging alone."""
    if not variants:
        return sections
    return replace(sections, context="\n\n".join([sections.context, *variants]).strip())


def _moment(text: str) -> datetime:
    moment = from_rfc3339(text)
    if moment.tzinfo is None:
        raise ValueError("a moment without a zone")
    return moment.astimezone(UTC)
