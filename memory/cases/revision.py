"""What an update of a case comes to: what changes, what is left out of what was sent, and why. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.cases.answer_notes import FOUND_RIGHT, NOT_REPLACED, NOT_STATED, of_full
from memory.cases.case import Case, CaseCaller, CaseContent, Report, Vote
from memory.cases.changes import is_reachable, may_change, owns, rewritten
from memory.cases.content_merge import Place, changed_fields, held_back, revised, without_room
from memory.cases.input import SentCase
from memory.cases.lifecycle import restated
from memory.cases.results import CaseRefused
from memory.cases.store import CaseChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """An update, decided on one state of a case."""

    content: CaseContent
    """What the case says then."""
    change: CaseChange | None
    """None: nothing is different. Its relations are left open."""
    stripped: tuple[str, ...]
    notes: tuple[str, ...]


def revision_of(
    caller: CaseCaller,
    case: Case,
    votes: Sequence[Vote],
    sent: SentCase,
    *,
    at: datetime,
    reports: Sequence[Report],
) -> Revision:
    """Decide on an update by the caller; `reports` are the newest merged ones.

    Raises:
        CaseRefused: the case is of another scope than the caller may change.
    """
    content, held, notes = _content_of(caller, case, votes, sent)
    stated = restated(case, votes, sent.confidence, writer=caller.voter, by=caller.by)
    if stated is None and sent.confidence not in {None, case.stated_confidence}:
        held, notes = ("confidence", *held), (NOT_STATED, *notes)
    change = rewritten(caller, case, votes, content=content, stated=stated, at=at, reports=reports)
    return Revision(content=content, change=change, stripped=held, notes=notes)


def _content_of(
    caller: CaseCaller, case: Case, votes: Sequence[Vote], sent: SentCase
) -> tuple[CaseContent, tuple[str, ...], tuple[str, ...]]:
    """Give what the case says then, what was left out, and why."""
    content = revised(case.content, sent, place=_place(caller, case))
    if content != case.content and not is_reachable(caller, case):
        raise CaseRefused(
            "INVALID_CASE",
            "This case belongs to another scope; record what you found as a new case, or judge it.",
        )
    if not may_change(caller, case, votes):
        held = changed_fields(case.content, revised(case.content, sent))
        return case.content, tuple(held), (FOUND_RIGHT,) if held else ()
    held_values = () if owns(caller, case) else held_back(case.content, sent)
    full = () if caller.by == "person" else without_room(case.content.metadata, sent.metadata)
    return (
        content,
        held_values,
        (*((NOT_REPLACED,) if held_values else ()), *of_full(full)),
    )


def _place(caller: CaseCaller, case: Case) -> Place:
    if caller.by == "person":
        return "all"
    return "values" if owns(caller, case) else "gaps"
