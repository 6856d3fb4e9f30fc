"""What a caller should know of a change that they made, a sentence each."""

from collections.abc import Sequence
from typing import Final

from memory.cases.case import LEAST_CONFIDENCE, Case, Vote
from memory.cases.input import MAX_NAMES
from memory.cases.lifecycle import is_spoken_against
from memory.cases.votes import is_for_and_against
from memory.recall.query import Degradation

NOT_STATED: Final = (
    "The confidence was left out: only who wrote a case first states it, and once it was judged only lower;"
    " say by feedback whether the case helped."
)
NOT_REPLACED: Final = (
    "What the metadata say already stays: who did not write a case fills gaps and adds to lists."
)
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
_OLDER_WORDS: Final = (
    "What you were shown of this case was rewritten since, so your vote vouches for nothing that it says now:"
    " render {} and judge it again."
)
_HELD: Final = "Others found it not helpful, so telling it again does not make it any surer."


def of_full(names: Sequence[str]) -> tuple[str, ...]:
    """Tell of lists that had no room for all; of none, nothing."""
    return (_FULL.format(", ".join(f"`{name}`" for name in names), MAX_NAMES),) if names else ()


def of_new(case: Case, degraded: Sequence[Degradation] = ()) -> tuple[str, ...]:
    """Return the notes on a new case; `degraded`: parts of the search for related cases that failed."""
    told = (_NOT_ALL.format(", ".join(degraded)),) if degraded else ()
    return (*told, *_hidden(case))


def of_merged(case: Case, votes: Sequence[Vote], *, is_own: bool) -> tuple[str, ...]:
    """Tell of a case that a like one went into; `is_own`: it gives way to whoever told it."""
    same = f"It tells the same as {case.case_id}, which keeps it as report {case.reports}."
    is_held = case.lifecycle == "draft" and not case.is_findable and is_spoken_against(case, votes)
    own = f"To change what the case itself says, update it by its case_id {case.case_id}."
    return (same, *((own,) if is_own else ()), *((_HELD,) if is_held else ()), *_hidden(case))


def of_twin(twin: Case | None) -> tuple[str, ...]:
    """Tell of another case that says the same as one that was updated; None: there is none."""
    return () if twin is None else (f"It tells the same as {twin.case_id} now.",)


def of_updated(before: Case, after: Case) -> tuple[str, ...]:
    """Tell of an update; of one that changed nothing, too."""
    if after.revision == before.revision:
        return ("The case says all of that already; nothing was changed.", *_hidden(after))
    told = []
    if before.lifecycle == "accepted" and after.lifecycle == "draft":
        told.append(
            "What it says has changed, so it is a draft again until two conversations find it helpful,"
            " one of them another than wrote it."
        )
    return (*told, *_hidden(after))


def of_vote(before: Case, after: Case | None, *, words: int) -> tuple[str, ...]:
    """Tell of a vote on what the case said at the revision `words`; None: it was said and counted before."""
    is_older = words < before.content_revision
    old = (_OLDER_WORDS.format(before.case_id),) if is_older else ()
    if after is None:
        return ("This conversation's vote is counted already; nothing was changed.", *old)
    if before.lifecycle != after.lifecycle:
        told = f"The case was {before.lifecycle} and is {after.lifecycle} now."
        return (*old, told, *_hidden(after))
    return (*old, *_hidden(after))


def of_both_sides(vote: Vote) -> tuple[str, ...]:
    """Tell a voter that spoke for a case and against it that the latter counts."""
    if not is_for_and_against(vote):
        return ()
    return (_BOTH_SIDES.format(str(vote.helpful).lower(), vote.signal),)


def _hidden(case: Case) -> tuple[str, ...]:
    if case.lifecycle == "rejected":
        told = "The case was found wrong: search does not show it until a person rewrites it"
        return (f"{told}, by its case_id {case.case_id}.",)
    if case.lifecycle == "stale":
        told = "The case is stale, it holds no more: search does not show it until somebody rewrites it"
        return (f"{told}, by its case_id {case.case_id}, to say what holds now.",)
    if case.confidence < LEAST_CONFIDENCE:
        return (
            f"With a confidence below {LEAST_CONFIDENCE} search does not show it; a helpful vote raises it.",
        )
    return ()
