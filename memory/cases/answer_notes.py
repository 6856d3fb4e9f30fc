"""Sentences that tell a caller what became of its change, beyond the status."""

from collections.abc import Sequence
from functools import partial

from memory.cases.case import LEAST_CONFIDENCE, Case, Vote
from memory.cases.results import sentence
from memory.cases.votes import is_for_and_against
from memory.recall.query import Degradation

_note = partial(sentence, "notes")


def of_new(case: Case, degraded: Sequence[Degradation] = ()) -> tuple[str, ...]:
    """Return the notes on a new case; `degraded`: parts of the search for related cases that
    failed.
    """
    notes = (_note("not_all", ", ".join(degraded)),) if degraded else ()
    return (*notes, *_hidden(case))


def of_known(case: Case) -> tuple[str, ...]:
    """Return the notes on a case that was recorded before."""
    return (_note("same_as", case.case_id), *_hidden(case))


def of_updated(before: Case, after: Case) -> tuple[str, ...]:
    """Return the notes on an update, also on one that changed nothing."""
    notes = []
    if after.revision == before.revision:
        notes.append(_note("said_already"))
    elif before.lifecycle == "accepted" and after.lifecycle == "draft":
        notes.append(_note("draft_again"))
    return (*notes, *_hidden(after))


def of_vote(before: Case, after: Case | None, vote: Vote) -> tuple[str, ...]:
    """Return the notes on a vote; `after` is None if the same vote was counted before."""
    notes = []
    if after is not None and is_for_and_against(vote):
        notes.append(_note("both_sides", str(vote.helpful).lower(), vote.signal))
    if after is None:
        notes.append(_note("counted_already"))
    if after is not None and before.lifecycle != after.lifecycle:
        notes.append(_note("stepped", before.lifecycle, after.lifecycle))
    return (*notes, *(_hidden(after) if after is not None else ()))


def _hidden(case: Case) -> tuple[str, ...]:
    if case.lifecycle in {"rejected", "stale"}:
        return (_note(case.lifecycle, case.case_id),)
    return (_note("unsure", LEAST_CONFIDENCE),) if case.confidence < LEAST_CONFIDENCE else ()
