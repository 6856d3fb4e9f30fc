"""Sentences that tell a caller what became of its change, beyond the status."""

from collections.abc import Sequence
from typing import Final

from memory.cases.case import LEAST_CONFIDENCE, Case, Vote
from memory.cases.input import MAX_NAMES
from memory.cases.lifecycle import is_spoken_against
from memory.cases.votes import is_for_and_against
from memory.recall.query import Degradation

NOT_STATED: Final = (
    "The confidence was left out: only the first author states it, and after a vote only a lower one;"
    " use feedback to say whether the case helped."
)
NOT_REPLACED: Final = "Known metadata stay as they are: only an author or a person replaces them, others fill gaps and add to lists."
FOUND_RIGHT: Final = (
    "Others found this case right, so only its authors and a person change it; record what you found without"
    " its case_id, or judge it."
)
_FULL: Final = (
    "No room was left in {} for all names ({} each); a list that a person sends takes its place."
)
_NOT_ALL: Final = "Not all of the search took part ({}), so related cases may be missing."
_BOTH_SIDES: Final = (
    "helpful={} and signal={} contradict each other; what speaks against the case counts."
)
_OLDER_CONTENT: Final = (
    "The case was rewritten after you were shown it, so your vote does not confirm what it says now:"
    " render {} and judge it again."
)
_HELD: Final = "Others found it not helpful, so reporting it again does not raise its confidence."


def of_full(names: Sequence[str]) -> tuple[str, ...]:
    """Return the note on lists that had no room for all names."""
    return (_FULL.format(", ".join(f"`{name}`" for name in names), MAX_NAMES),) if names else ()


def of_new(case: Case, degraded: Sequence[Degradation] = ()) -> tuple[str, ...]:
    """Return the notes on a new case; `degraded`: parts of the search for related cases that failed."""
    notes = (_NOT_ALL.format(", ".join(degraded)),) if degraded else ()
    return (*notes, *_hidden(case))


def of_merged(case: Case, votes: Sequence[Vote], *, is_own: bool) -> tuple[str, ...]:
    """Return the notes on a case that a report was merged into; `is_own`: the caller may rewrite it."""
    notes = [f"It tells the same as {case.case_id}, which keeps it as report {case.reports}."]
    if is_own:
        notes.append(
            f"To change what the case itself says, update it by its case_id {case.case_id}."
        )
    if case.lifecycle == "draft" and not case.is_findable and is_spoken_against(case, votes):
        notes.append(_HELD)
    return (*notes, *_hidden(case))


def of_updated(before: Case, after: Case) -> tuple[str, ...]:
    """Return the notes on an update, also on one that changed nothing."""
    notes = []
    if after.revision == before.revision:
        notes.append("The case says all of that already; nothing was changed.")
    elif before.lifecycle == "accepted" and after.lifecycle == "draft":
        notes.append(
            "What it says has changed, so it is a draft again until two conversations find it helpful,"
            " one of which did not write it."
        )
    return (*notes, *_hidden(after))


def of_vote(before: Case, after: Case | None, vote: Vote) -> tuple[str, ...]:
    """Return the notes on a vote; `after` is None if the same vote was counted before."""
    notes = []
    if after is not None and is_for_and_against(vote):
        notes.append(_BOTH_SIDES.format(str(vote.helpful).lower(), vote.signal))
    if after is None:
        notes.append("This conversation's vote is counted already; nothing was changed.")
    if vote.content_revision < before.content_revision:
        notes.append(_OLDER_CONTENT.format(before.case_id))
    if after is not None and before.lifecycle != after.lifecycle:
        notes.append(f"The case was {before.lifecycle} and is {after.lifecycle} now.")
    return (*notes, *(_hidden(after) if after is not None else ()))


def _hidden(case: Case) -> tuple[str, ...]:
    if case.lifecycle == "rejected":
        why = "The case was found wrong: search does not show it until a person rewrites it"
        return (f"{why}, by its case_id {case.case_id}.",)
    if case.lifecycle == "stale":
        why = "The case is stale: search does not show it until somebody rewrites it"
        return (f"{why}, by its case_id {case.case_id}, to say what holds now.",)
    if case.confidence < LEAST_CONFIDENCE:
        return (
            f"With a confidence below {LEAST_CONFIDENCE} search does not show it; a helpful vote raises it.",
        )
    return ()
