"""Are look-alikes kept apart? Cases are sent through the tool, and every relation that it wrote is judged."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from bench.cases_incidents import Teller, Told
from bench.cases_memory import caller, memory_in
from bench.report import percentile, show
from memory.cases.results import UpsertAnswer
from memory.service.memory import Memory

STRONG = ("same_root_cause", "similar_diagnosis")
MAX_WRITING_S = 540
"""After so long, what was sent until then is judged."""
_TELL_EVERY = 1000


@dataclass
class Book:
    """What became of the cases that were sent."""

    told: dict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))
    """By the id of the case that each went into; the first one made it."""
    upsert_s: list[float] = field(default_factory=list)

    def family(self, case_id: str) -> str:
        return self.told[case_id][0].family


async def write_all(memory: Memory, cases: Sequence[Told]) -> Book:
    """Send each as a conversation of its own would, as many as there is time for."""
    book = Book()
    ends_at = time.perf_counter() + MAX_WRITING_S
    for place, one in enumerate(cases):
        if time.perf_counter() > ends_at:
            print(f"  stopped after {place} of {len(cases)}", flush=True)
            break
        asker = caller(f"cnv_w{place}", one.environment)
        started = time.perf_counter()
        answer = await memory.cases.upsert(asker, one.case)
        book.upsert_s.append(time.perf_counter() - started)
        assert isinstance(answer, UpsertAnswer), answer
        case_id = answer.case.case_id
        book.told[case_id].append(one)
        if (place + 1) % _TELL_EVERY == 0:
            print(f"  {place + 1} sent, {len(book.told)} cases", flush=True)
    return book


async def relations(memory: Memory, book: Book) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    """Judge every pair that the book wrote; and how many cases know one that is truly theirs."""
    rows = await memory.database.rows("SELECT lesser, greater, relation FROM case_relations")
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    wrong_of: set[str] = set()
    right_of: set[str] = set()
    wrong = []
    for row in rows:
        ends = [book.told[row[name]][0] for name in ("lesser", "greater")]
        verdict = _verdict(*ends)
        kinds[row["relation"]][verdict] += 1
        if row["relation"] not in STRONG:
            continue
        spoken = "/".join(sorted(end.language for end in ends))
        kinds[f"strong, {spoken}"][verdict] += 1
        (right_of if verdict == "right" else wrong_of).update((row["lesser"], row["greater"]))
        if verdict != "right":
            wrong.append({"relation": row["relation"], "ends": [_told(end) for end in ends]})
    strong = sum((kinds[relation] for relation in STRONG), Counter())
    return {
        "pairs": {name: dict(counted) for name, counted in sorted(kinds.items())},
        "strong": sum(strong.values()),
        "strong_wrong_percent": _percent(
            sum(strong.values()) - strong["right"], sum(strong.values())
        ),
        "strong_look_alikes_percent": _percent(strong["look-alike"], sum(strong.values())),
        "cases_with_a_wrong_one_percent": _percent(len(wrong_of), len(book.told)),
        "cases_with_a_right_one_percent": _percent(len(right_of), len(book.told)),
    }, wrong


def _verdict(one: Told, other: Told) -> str:
    if one.family == other.family:
        return "right"
    return "look-alike" if one.group == other.group else "stranger"


def _told(one: Told) -> Mapping[str, str]:
    return {"family": one.family, "cause": one.case.get("root_cause", ""), **_sections(one)}


def _sections(one: Told) -> Mapping[str, str]:
    return {name: one.case[name] for name in ("symptom_summary", "diagnosis")}


def _percent(part: int, whole: int) -> float:
    return round(100 * part / max(1, whole), 2)


def _times(samples: Sequence[float]) -> dict[str, float]:
    return {f"p{p}": round(1000 * percentile(samples, p / 100), 2) for p in (50, 95)}


async def run(count: int, examples: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Write so many cases and judge what became of them; wrong relations are added to `examples`."""
    async with (
        anyio.TemporaryDirectory(prefix="cases-") as directory,
        memory_in(Path(directory)) as memory,
    ):
        started = time.perf_counter()
        book = await write_all(memory, Teller().cases(count))
        took = time.perf_counter() - started
        related, wrong = await relations(memory, book)
    examples += wrong
    show(
        f"Relations that were written with {len(book.upsert_s)} cases, pairs",
        ["", "right", "look-alike", "stranger"],
        [
            [name, *(str(one.get(kind, 0)) for kind in ("right", "look-alike", "stranger"))]
            for name, one in related["pairs"].items()
        ],
    )
    figures = {
        "sent": len(book.upsert_s),
        "cases": len(book.told),
        "written_per_s": round(len(book.upsert_s) / took, 1),
        "upsert_ms": _times(book.upsert_s),
        **related,
    }
    for name, value in figures.items():
        if name != "pairs":
            print(f"  {name}: {value}")
    return figures
