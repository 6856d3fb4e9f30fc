"""Is the right root cause found? The search tool, next to what one would take over the same texts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from bench.cases_incidents import Asked, Teller
from bench.cases_loading import Loader
from bench.cases_memory import caller, memory_in
from bench.recall_plain import PLAIN, PlainIndex
from bench.report import show
from memory.cases.results import SearchAnswer
from memory.service.memory import Memory

TOP = 5
SEED = 7
"""Of the questions; the cases have another one."""


async def ask_all(
    memory: Memory, loaded: Loader, questions: Sequence[Asked]
) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    plain: dict[str, Any] = {name: PlainIndex(name, loaded.texts) for name in PLAIN}
    places: dict[str, dict[str, list[int | None]]] = defaultdict(lambda: defaultdict(list))
    missed = []
    for number, one in enumerate(questions):
        found = {name: index.find(one.text, TOP) for name, index in plain.items()}
        answer = await memory.cases.search(caller(f"cnv_q{number}"), one.text, TOP)
        assert isinstance(answer, SearchAnswer), answer
        assert not answer.degraded, answer.degraded
        found["Candor"] = [case.case_id for case in answer.cases]
        for name, ids in found.items():
            families = [loaded.families[case_id] for case_id in ids]
            place = families.index(one.family) + 1 if one.family in families else None
            for part in ("all", one.kind, "crossing" if one.is_crossing else one.language):
                places[name][part].append(place)
            if name == "Candor" and place is None:
                missed.append({"asked": one.text, "right": one.family, "found": families})
    return {name: _shares(parts) for name, parts in places.items()}, missed


def _shares(parts: Mapping[str, Sequence[int | None]]) -> dict[str, dict[str, float]]:
    return {
        part: {
            "questions": len(places),
            "top-1": _percent(sum(place == 1 for place in places), len(places)),
            f"@{TOP}": _percent(sum(place is not None for place in places), len(places)),
        }
        for part, places in parts.items()
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / max(1, whole), 1)


async def run(count: int, examples: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Measure among so many cases; questions that were missed are added to `examples`."""
    async with anyio.TemporaryDirectory(prefix="cases-") as name:
        directory, loaded = Path(name), Loader()
        await loaded.load(directory, count, is_related=False)
        async with memory_in(directory) as memory:
            found, missed = await ask_all(memory, loaded, Teller(SEED).questions())
    examples += missed
    parts = found["Candor"]
    show(
        f"The right root cause among {count} cases, {len(set(loaded.families.values()))} root causes;"
        f" top-1 / Recall@{TOP} in %",
        ["", *(f"{part} ({one['questions']})" for part, one in parts.items())],
        [
            [name, *(f"{one[part]['top-1']} / {one[part][f'@{TOP}']}" for part in parts)]
            for name, one in found.items()
        ],
    )
    return {"cases": count, **found}
