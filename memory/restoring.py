"""Restores exported episodes, facts, cases and profiles.

Restoring the same lines twice changes nothing. What was written since is newer: a statement is left out where
one in its place is held, and a profile where the person has one.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from memory.cases.case import ExportedCase
from memory.cases.results import CaseRefused
from memory.episodes.episode import EpisodeDraft, Written
from memory.fact_keeper import FactKeeper
from memory.transfer import ToldFact, ToldProfile, read_entries

_BATCH: Final = 100

WriteAll = Callable[[Sequence[EpisodeDraft]], Awaitable[Sequence[Written]]]
RestoreCase = Callable[[ExportedCase], Awaitable[bool]]


async def restore_lines(
    lines: Iterable[str],
    owner_id: str | None,
    *,
    write_all: WriteAll,
    facts: FactKeeper,
    restore_case: RestoreCase,
) -> Counter[str]:
    """Restore lines for a person, or for the owners that they name; return how many went which way.

    The keys are `stored`, `merged`, `there` and `refused`, `left_out` for lines that are not restored, and
    `never_saved` for sentences that an episode must not hold.

    Raises:
        NotTransferable: a line is of no exported kind; nothing was written.
        StoreUnavailable: some may have been written; repeating it restores the rest.
    """
    entries = list(read_entries(lines, owner_id))
    counts: Counter[str] = Counter(left_out=entries.count(None))
    drafts = [entry for entry in entries if isinstance(entry, EpisodeDraft)]
    for start in range(0, len(drafts), _BATCH):
        for written in await write_all(drafts[start : start + _BATCH]):
            counts[written.status] += 1
            counts["never_saved"] += written.left_out if written.status != "there" else 0
    for entry in entries:
        if isinstance(entry, ToldFact):
            is_new = await facts.restore(entry.text, entry.scope, told_at=entry.told_at)
            counts["stored" if is_new else "there"] += 1
        elif isinstance(entry, ExportedCase):
            try:
                counts["stored" if await restore_case(entry) else "there"] += 1
            except CaseRefused:
                counts["refused"] += 1
        elif isinstance(entry, ToldProfile):
            is_new = not await facts.profile_text(entry.owner_id) and bool(entry.text)
            if is_new:
                await facts.put_profile(entry.owner_id, entry.text)
            counts["stored" if is_new else "there"] += 1
    return counts
