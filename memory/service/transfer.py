"""Exports what is remembered as JSON lines, and reads episodes, facts, cases and profiles from such
lines.

The lines hold no secrets: these were masked before anything was stored. An episode is read with its
id and with what was merged into it, a fact with its id and its turn. The lines of other kinds are
for readers: notes are copied as files.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast, get_args

from memory.cases.case import Case, ExportedCase, Lifecycle
from memory.cases.store import SqlCaseStore
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
from memory.episodes.store import SqlEpisodeStore
from memory.facts.fact import Fact
from memory.facts.gate import MAX_FACT_CHARS
from memory.facts.profile import Profile
from memory.facts.rows import SqlFactStore
from memory.items.item import Item
from memory.items.scope import LABELS, Scope, is_users_name
from memory.items.store import ItemStore

FORMAT: Final = "candor-episode-1"
CASE_FORMAT: Final = "candor-case-1"
ITEM_FORMAT: Final = "candor-item-1"
PROFILE_FORMAT: Final = "candor-profile-1"
_BATCH: Final = 100
_ID: Final = re.compile(r"epi_[0-9A-Za-z]{1,100}")
_FACT_ID: Final = re.compile(r"fac_[0-9A-Za-z]{1,100}")
_CASE_ID: Final = re.compile(r"cas_[0-9A-Za-z]{1,100}")
_MAX_NUMBER: Final = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldProfile:
    """A person's profile as it was exported."""

    owner_id: str
    text: str


Entry = EpisodeDraft | Fact | ToldProfile | ExportedCase


class NotTransferable(ValueError):
    """A line is not an episode; the text says which and why."""


class _Mistake(ValueError):
    """What a line contains that it must not, as the end of a sentence about it."""


async def export_lines(
    items: ItemStore,
    episodes: SqlEpisodeStore,
    cases: SqlCaseStore,
    facts: SqlFactStore,
    owner_ids: Sequence[str] = (),
) -> AsyncIterator[str]:
    """Yield a line for each item of these owners or of all, in the order of writing.

    Cases that search does not show follow at the end.
    """
    seq = 0
    while some := await items.after(seq, _BATCH, owner_ids=owner_ids):
        seq = some[-1].seq
        for entry in some:
            yield await _line_of(entry.item, episodes, cases, facts)
    for case in await cases.hidden(owner_ids):
        yield _case_line(case)


def profile_line(owner_id: str, profile: Profile) -> str:
    """Return the line of a person's profile."""
    return _json_line(PROFILE_FORMAT, asdict(profile), Scope(owner_id=owner_id))


async def _line_of(
    item: Item, episodes: SqlEpisodeStore, cases: SqlCaseStore, facts: SqlFactStore
) -> str:
    scope = Scope(owner_id=item.scope.owner_id)
    if item.kind == "episode" and (episode := await episodes.get(item.id, scope)) is not None:
        return _episode_line(episode)
    if item.kind == "case" and (found := await cases.get([item.id], scope.owner_id)):
        return _case_line(found[0])
    if item.kind == "fact" and (fact := await facts.get(item.id, scope)) is not None:
        own = {"body": fact.text, "lasting": fact.lasting, "evidence": fact.evidence}
        return _json_line(ITEM_FORMAT, asdict(item) | own, item.scope)
    return _json_line(ITEM_FORMAT, asdict(item), item.scope)


def read_entries(lines: Iterable[str], owner_id: str | None = None) -> Iterator[Entry | None]:
    """Yield what exported lines hold, None for a line that is left out; `owner_id` replaces their
    owners.

    Raise `NotTransferable` if a line is of no exported kind; those before it were yielded.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            json.dumps(value, ensure_ascii=False).encode()  # fails on half of a character
            if owner_id is not None:
                value["owner_id"] = owner_id
            entry = _READERS[value["format"]](value)
        except _Mistake as exc:
            raise NotTransferable(f"Line {number} has {exc}.") from None
        except _UNREADABLE as exc:
            raise NotTransferable(f"Line {number} is not an exported line.") from exc
        yield entry


def _episode_line(episode: Episode) -> str:
    fields = asdict(episode)
    del fields["updated_at"], fields["revision"]
    return _json_line(FORMAT, fields | {"sections": episode.sections.named()}, episode.scope)


def _case_line(case: Case) -> str:
    return _json_line(CASE_FORMAT, asdict(case), case.scope)


def _json_line(line_format: str, fields: Mapping[str, Any], scope: Scope) -> str:
    own = {"owner_id": scope.owner_id, "scope": scope.labels}
    value = {"format": line_format, **fields, **own}
    return json.dumps(value, ensure_ascii=False, default=rfc3339)


def _draft(value: Any) -> EpisodeDraft:
    if value["episode_type"] not in EPISODE_TYPES:
        raise ValueError("another type")
    occurred_at = _moment(value["occurred_at"])
    return EpisodeDraft(
        episode_id=_id(value["episode_id"]),
        episode_type=cast("EpisodeType", value["episode_type"]),  # it is one of them, see above
        title=_text(value["title"]),
        scope=_scope(value),
        sections=Sections.of({name: _text(text) for name, text in value["sections"].items()}),
        tags=tuple(map(_text, value["tags"])),
        source_refs=tuple(map(_text, value["source_refs"])),
        occurred_at=occurred_at,
        conversation_id=_text_or_none(value.get("conversation_id")),
        turn_id=_text_or_none(value.get("turn_id")),
        kept=Kept(
            variants=tuple(_variant(variant, occurred_at) for variant in value["variants"]),
            repeats=_number_or_none(value.get("repeats")) or 0,
        ),
    )


def _fact(value: Any) -> Fact | None:
    """Read a fact; other items, and facts that held no longer, are left out."""
    if value["kind"] != "fact" or value["valid_until"] is not None:
        return None
    if not _FACT_ID.fullmatch(_text(value["id"])):
        raise ValueError("not the id of a fact")
    if len(_text(value["body"])) > MAX_FACT_CHARS:
        raise _Mistake(f"a fact of more than {MAX_FACT_CHARS} characters")
    return Fact(
        id=value["id"],
        text=value["body"],
        scope=_scope(value),
        origin="person",
        lasting=value.get("lasting") is True,
        evidence=_text_or_none(value.get("evidence")),
        valid_from=_moment(value["occurred_at"]),
        updated_at=_moment(value["updated_at"]),
        conversation_id=_text_or_none(value["conversation_id"]),
        turn_id=_text_or_none(value["turn_id"]),
        revision=_number_or_none(value["revision"]) or 1,
    )


def _profile(value: Any) -> ToldProfile:
    return ToldProfile(owner_id=_owner(value["owner_id"]), text=_text(value["text"]))


def _case(value: Any) -> ExportedCase:
    """Read a case; what it says is checked when it is restored."""
    content = value["content"]
    lifecycle = value["lifecycle"]
    if lifecycle not in get_args(Lifecycle):
        raise ValueError("another lifecycle")
    if not isinstance(content, dict) or not _CASE_ID.fullmatch(_text(value["case_id"])):
        raise TypeError("not a case")
    return ExportedCase(
        case_id=value["case_id"],
        scope=_scope(value),
        sent=content | {"confidence": value["confidence"]},
        lifecycle="draft" if lifecycle == "accepted" else lifecycle,
        told_at=_moment(value["created_at"]),
    )


_UNREADABLE: Final = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What reading a line raises if it is no exported one; the last one, if it is nested too deeply."""

_READERS: Final[Mapping[str, Callable[[Any], Entry | None]]] = {
    FORMAT: _draft,
    ITEM_FORMAT: _fact,
    PROFILE_FORMAT: _profile,
    CASE_FORMAT: _case,
}


def _scope(value: Any) -> Scope:
    labels = {name: _text(label) for name, label in value["scope"].items() if name in LABELS}
    return Scope(owner_id=_owner(value["owner_id"]), **labels)


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
