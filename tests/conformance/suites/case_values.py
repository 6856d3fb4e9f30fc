"""Cases for the suite of case stores, and what an open store is to it."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.cases.case import Case, CaseContent, CaseMetadata, HistoryEntry, RelatedCase, Vote
from memory.cases.case_writes import CaseChange
from memory.cases.fingerprint import fingerprint_of
from memory.cases.item import to_item
from memory.cases.store import SqlCaseStore
from memory.items.item import Item
from memory.items.scope import Scope

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANN = Scope(owner_id="ann", app_code="shop", environment="production")
BOB = Scope(owner_id="bob")
BACKENDS = ("memu", "vector")
TEXTS = (
    "plain words",
    "支付超时：连接池耗尽",
    "🧑‍🚀 e\u0301 \u202e right to left",
    "'; DROP TABLE cases; --\n\t\\ \"",
    "nul\0inside",
    "长" * 20_000,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCases:
    """An open store, and how to look at what goes with its cases."""

    store: SqlCaseStore
    item: Callable[[str], Awaitable[Item | None]]
    deliveries: Callable[[str], Awaitable[Sequence[str]]]
    """The idempotency keys of an item's deliveries that are there, sorted."""
    forget: Callable[[str], Awaitable[bool]]
    """Remove a case's own rows; False: there were none."""


Opening = Callable[[], AbstractAsyncContextManager[OpenCases]]


def later(minutes: float) -> datetime:
    """Return a moment so many minutes after `AT`."""
    return AT + timedelta(minutes=minutes)


def case(name: str = "1", text: str = "", **fields: Any) -> Case:
    """Make a case with the id `cas_<name>` whose words are its own."""
    blank = Case(
        case_id=f"cas_{name}",
        scope=ANN,
        content=CaseContent(
            symptom_summary=text or f"checkout {name} answers 503",
            diagnosis=f"the pool of {name} is exhausted",
            resolution=f"raise the pool of {name}",
            root_cause=f"a leak in {name}",
            metadata=CaseMetadata(failure_layer="db", tags=("pool", "连接池")),
        ),
        stated_confidence=0.8,
        confidence=0.8,
        authors=("cnv_author",),
        created_at=AT,
        updated_at=AT,
    )
    return replace(blank, **fields)


def new(one: Case, **fields: Any) -> CaseChange:
    """Make the change that records a case."""
    return _change(one, 0, **fields)


def next_of(one: Case, *, case_fields: dict[str, Any] | None = None, **fields: Any) -> CaseChange:
    """Make the change that follows on a case's present state."""
    after = replace(one, revision=one.revision + 1, **(case_fields or {}))
    return _change(after, one.revision, **fields)


def _change(one: Case, expected_revision: int, **fields: Any) -> CaseChange:
    blank = CaseChange(
        case=one,
        expected_revision=expected_revision,
        fingerprint=fingerprint_of(one.content, one.scope),
        history=[entry("created" if expected_revision == 0 else "updated")],
        item=to_item(one),
    )
    return replace(blank, **fields)


def entry(event: Any = "updated", **fields: Any) -> HistoryEntry:
    """Make an entry of a history."""
    return replace(HistoryEntry(at=AT, event=event, by="agent", user_id="ann"), **fields)


def vote(one: Case, voter: str, **fields: Any) -> Vote:
    """Make a vote on a case."""
    return replace(Vote(case_id=one.case_id, voter=voter, at=AT), **fields)


def related(name: str, score: float, relation: Any = "same_root_cause") -> RelatedCase:
    """Make a relation to `cas_<name>`."""
    return RelatedCase(case_id=f"cas_{name}", relation=relation, score=score)
