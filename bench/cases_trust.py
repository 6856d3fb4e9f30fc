"""What trust does to the order of found cases: how far it may move one, next to trust alone.

Votes are made up, seeded: half of the cases have some, and each case helps those who have its root cause to a
share of its own. A case is accepted as the tool would accept it. Relevance comes from the real search. "helps" is
the share of questions whose first case helps: it has the right root cause, and its share of votes is for it.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import anyio

from bench.cases_finding import SEED, TOP
from bench.cases_incidents import Teller
from bench.cases_loading import START, Loader
from bench.cases_memory import caller, memory_in
from bench.report import show
from memory.cases import finder
from memory.cases.case import Case, Vote
from memory.cases.ranking import MAX_BOOST, RankedCase, rank, trust
from memory.cases.results import SearchAnswer
from memory.cases.votes import confidence_of, tally, tally_for

NOW: Final = START + timedelta(days=60)
"""When is asked: trust fades."""
VOTE_SEEDS: Final = (1, 2, 3, 4, 5)
BOUNDS: Final = (0.0, 0.1, MAX_BOOST, 0.4, 0.8)
COUNTS: Final = (0, 0, 0, 0, 2, 4, 8, 16)
"""How many votes a case has; each as likely."""
LEAST_HELP: Final = 0.2
ACCEPTED_FROM: Final = 0.8
"""The confidence of an accepted case, which also needs two voters who did not write it."""

Order = Callable[[Sequence[RankedCase], Mapping[str, Sequence[Vote]]], Sequence[RankedCase]]


class Voters:
    """How far each case helps, and what was voted on it."""

    def __init__(self, case_ids: Sequence[str], seed: int) -> None:
        self._random = random.Random(seed)
        self.help = {case_id: self._random.uniform(LEAST_HELP, 1) for case_id in case_ids}
        self.votes = {case_id: self._votes(case_id) for case_id in case_ids}

    def _votes(self, case_id: str) -> list[Vote]:
        return [
            Vote(
                case_id=case_id,
                voter=f"cnv_v{number}",
                helpful=self._random.random() < self.help[case_id],
                app_code="shop",
                environment="production",
                at=START + timedelta(days=1),
            )
            for number in range(self._random.choice(COUNTS))
        ]

    def judged(self, found: RankedCase) -> RankedCase:
        """Return a found case with what the votes make of it."""
        votes = self.votes[found.case.case_id]
        return replace(found, case=_judged(found.case, votes))


def _judged(case: Case, votes: Sequence[Vote]) -> Case:
    confidence = confidence_of(case, votes)
    is_accepted = confidence >= ACCEPTED_FROM and tally(case, votes).conversations > 1
    return replace(
        case, confidence=confidence, lifecycle="accepted" if is_accepted else case.lifecycle
    )


def _moved_by(bound: float) -> Order:
    """Order by relevance and trust, which moves a case by at most `bound`."""

    def order(
        found: Sequence[RankedCase], votes: Mapping[str, Sequence[Vote]]
    ) -> Sequence[RankedCase]:
        relevance = {hit.case.case_id: hit.score for hit in found}
        moved = []
        for hit in rank(found, votes, caller().scope, NOW):
            fit = relevance[hit.case.case_id]
            score = fit + (hit.score - fit) * bound / MAX_BOOST
            moved.append(replace(hit, score=score))
        return sorted(moved, key=lambda hit: -hit.score)

    return order


def _trust_alone(
    found: Sequence[RankedCase], votes: Mapping[str, Sequence[Vote]]
) -> Sequence[RankedCase]:
    """Order all hits by trust."""
    scope = caller().scope
    trusted = [
        replace(
            hit, score=trust(hit.case, tally_for(hit.case, votes[hit.case.case_id], scope), NOW)
        )
        for hit in found
        if hit.case.is_findable
    ]
    return sorted(trusted, key=lambda hit: -hit.score)


def _as_the_document(
    found: Sequence[RankedCase], votes: Mapping[str, Sequence[Vote]]
) -> Sequence[RankedCase]:
    """Order by trust alone, and show accepted cases only, where there is one."""
    accepted = [hit for hit in found if hit.case.lifecycle == "accepted"]
    return _trust_alone(accepted or found, votes)


ORDERS: Final[Mapping[str, Order]] = {
    **{f"trust moves at most {bound:.0%}": _moved_by(bound) for bound in BOUNDS},
    "trust alone": _trust_alone,
    "trust alone, accepted ones only": _as_the_document,
}


async def _found(directory: Path) -> list[tuple[str, Sequence[RankedCase]]]:
    """Return each question's root cause and what the search hands over to be ranked."""
    pools: list[Sequence[RankedCase]] = []
    ranked = finder.rank

    def keep(found: Sequence[RankedCase], *more: Any) -> list[RankedCase]:
        pools.append(found)
        return ranked(found, *more)

    questions = Teller(SEED).questions()
    finder.rank = keep
    try:
        async with memory_in(directory) as memory:
            for number, asked in enumerate(questions):
                answer = await memory.cases.search(caller(f"cnv_q{number}"), asked.text, TOP)
                assert isinstance(answer, SearchAnswer), answer
    finally:
        finder.rank = ranked
    return [(asked.family, pool) for asked, pool in zip(questions, pools, strict=True)]


async def run(count: int) -> dict[str, Any]:
    """Measure among so many cases."""
    async with anyio.TemporaryDirectory(prefix="cases-") as name:
        directory, loaded = Path(name), Loader()
        await loaded.load(directory, count, is_related=False)
        found = await _found(directory)
    shares: dict[str, list[tuple[bool, bool, float]]] = defaultdict(list)
    for seed in VOTE_SEEDS:
        voters = Voters(list(loaded.families), seed)
        for family, pool in found:
            judged = [voters.judged(hit) for hit in pool]
            for order_name, order in ORDERS.items():
                best = [hit.case.case_id for hit in order(judged, voters.votes)[:TOP]]
                right = [loaded.families[case_id] == family for case_id in best]
                is_first = bool(right) and right[0]
                helps = voters.help[best[0]] if is_first else 0.0
                shares[order_name].append((is_first, any(right), helps))
    figures = {
        order_name: {
            part: round(100 * sum(row[index] for row in rows) / len(rows), 1)
            for index, part in enumerate(("top-1", f"@{TOP}", "helps"))
        }
        for order_name, rows in shares.items()
    }
    show(
        f"{len(found)} questions among {count} cases, votes made up {len(VOTE_SEEDS)} times; in %",
        ["", "right cause first", f"right cause among {TOP}", "the first one helps"],
        [[order_name, *map(str, row.values())] for order_name, row in figures.items()],
    )
    return {"cases": count, **figures}
