"""Exports episodes as JSON lines and imports them, each with its id.

The lines hold no secrets: these were masked before the episodes were stored. An import restores an episode
as it was, with what was merged into it. Importing the same lines twice changes nothing. Notes are files and
are copied as files.
"""

import json
import re
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
    Kept,
    Sections,
    Variant,
)
from memory.episodes.store import EpisodeStore
from memory.itemstore import ItemStore
from memory.scope import LABELS, Scope, is_users_name

FORMAT: Final = "candor-episode-1"
_BATCH: Final = 100
_ID: Final = re.compile(r"epi_[0-9A-Za-z]{1,100}")
_MAX_NUMBER: Final = 2**53


class NotTransferable(ValueError):
    """A line is not an episode; the text says which and why."""


class _Mistake(ValueError):
    """What a line contains that it must not, as the end of a sentence about it."""


async def export_episodes(
    items: ItemStore, episodes: EpisodeStore, owner_id: str | None = None
) -> AsyncIterator[str]:
    """Yield a line for each episode, of one owner or of all, in the order of writing."""
    seq = 0
    while some := await items.after(seq, _BATCH):
        seq = some[-1].seq
        for entry in some:
            scope = entry.item.scope
            if entry.item.kind != "episode" or owner_id not in {None, scope.owner_id}:
                continue
            episode = await episodes.get(entry.item.id, Scope(owner_id=scope.owner_id))
            if episode is not None:
                yield _line(episode)


def read_drafts(lines: Iterable[str], owner_id: str | None = None) -> Iterator[EpisodeDraft]:
    """Yield the episodes in exported lines; `owner_id` replaces their owners.

    Raises:
        NotTransferable: a line is not an episode; those before it were yielded.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            draft = _draft(json.loads(line))
        except _Mistake as exc:
            raise NotTransferable(f"Line {number} has {exc}.") from None
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as exc:
            raise NotTransferable(f"Line {number} is not an exported episode.") from exc
        if owner_id is not None:
            draft = replace(draft, scope=replace(draft.scope, owner_id=owner_id))
        yield draft


def _line(episode: Episode) -> str:
    fields = asdict(episode)
    del fields["updated_at"], fields["revision"]
    value = {
        "format": FORMAT,
        **fields,
        "owner_id": episode.scope.owner_id,
        "scope": episode.scope.labels,
        "sections": episode.sections.named(),
    }
    return json.dumps(value, ensure_ascii=False, default=rfc3339)


def _draft(value: Any) -> EpisodeDraft:
    if value["format"] != FORMAT or value["episode_type"] not in EPISODE_TYPES:
        raise ValueError("another format")
    json.dumps(value, ensure_ascii=False).encode()  # fails where half of a character stands in it
    labels = {name: _text(label) for name, label in value["scope"].items() if name in LABELS}
    occurred_at = _moment(value["occurred_at"])
    return EpisodeDraft(
        episode_id=_id(value["episode_id"]),
        episode_type=cast("EpisodeType", value["episode_type"]),  # it is one of them, see above
        title=_text(value["title"]),
        scope=Scope(owner_id=_owner(value["owner_id"]), **labels),
        sections=Sections.of({name: _text(text) for name, text in value["sections"].items()}),
        tags=tuple(map(_text, value["tags"])),
        source_refs=tuple(map(_text, value["source_refs"])),
        occurred_at=occurred_at,
        conversation_id=_text_or_none(value.get("conversation_id")),
        turn_id=_text_or_none(value.get("turn_id")),
        thread=_text_or_none(value.get("thread")),
        position=_number_or_none(value.get("position")),
        kept=Kept(
            variants=tuple(_variant(variant, occurred_at) for variant in value["variants"]),
            repeats=_number_or_none(value.get("repeats")) or 0,
        ),
    )


def _id(value: Any) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise _Mistake("an `episode_id` that is none: it must be `epi_` and letters or digits")
    return value


def _owner(value: Any) -> str:
    if not is_users_name(_text(value)):
        raise _Mistake("an `owner_id` that no user has")
    return str(value)


def _variant(value: Any, occurred_at: datetime) -> Variant:
    """Read a variant; an older export has its text alone, and the episode's moment stands in."""
    if isinstance(value, str):
        return Variant(occurred_at=occurred_at, text=_text(value))
    return Variant(occurred_at=_moment(value["occurred_at"]), text=_text(value["text"]))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    if "\0" in value:
        raise _Mistake("a NUL character")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _number_or_none(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_NUMBER:
        raise ValueError("not a number that counts something")
    return value


def _moment(text: str) -> datetime:
    moment = from_rfc3339(text)
    if moment.tzinfo is None:
        raise ValueError("a moment without a zone")
    return moment.astimezone(UTC)
