"""How long each tool takes among so many cases, next to a plain table with one FTS5 column of the same rows."""

import random
import sqlite3
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bench.cases_incidents import Teller
from bench.cases_loading import Loader
from bench.cases_memory import caller, memory_in
from bench.recall_plain import PLAIN
from bench.report import percentile, show
from memory.cases.results import Refusal, SearchAnswer
from memory.service.assemble import FILE
from memory.service.memory import Memory

ASKED = 200
WRITTEN = 100
WARM = 20
TOOLS = ("search", "render", "feedback", "upsert")


class Plain:
    """The same rows as one takes them otherwise: unigrams and bigrams in one column, no owner, no trust."""

    def __init__(self, directory: Path) -> None:
        self._table = sqlite3.connect(directory / "plain.sqlite3", check_same_thread=False)
        self._table.execute("PRAGMA journal_mode = WAL")
        self._table.execute(
            "CREATE VIRTUAL TABLE words USING fts5 (text, tokenize='porter unicode61')"
        )
        self._table.execute("CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT, votes INTEGER)")
        self._written, self._asked = PLAIN["unigram+bigram"][1:]
        source = sqlite3.connect(directory / FILE)
        for seq, text in source.execute("SELECT seq, title || ' ' || body FROM items"):
            self._put(seq, text)
        self._table.commit()
        source.close()

    def _put(self, number: int | None, text: str) -> None:
        made = self._table.execute("INSERT INTO texts VALUES (?, ?, 0)", (number, text)).lastrowid
        self._table.execute(
            "INSERT INTO words (rowid, text) VALUES (?, ?)", (made, self._written(text))
        )

    def search(self, question: str) -> list[int]:
        asked = " OR ".join(f'"{term}"' for term in dict.fromkeys(self._asked(question)))
        rows = self._table.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 5", (asked,)
        )
        return [row[0] for row in rows]

    def upsert(self, text: str) -> None:
        self.search(text)
        self._put(None, text)
        self._table.commit()

    def feedback(self, number: int) -> None:
        self._table.execute("UPDATE texts SET votes = votes + 1 WHERE id = ?", (number,))
        self._table.commit()

    def render(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._table.execute("SELECT text FROM texts WHERE id = ?", (number,)).fetchone()

    def close(self) -> None:
        self._table.close()


class Watch:
    """Notes how long calls take, and how much of the processor this process had meanwhile; the first warm up."""

    def __init__(self) -> None:
        self._taken: dict[str, list[tuple[float, float]]] = defaultdict(list)

    async def ours(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        started, used = time.perf_counter(), time.process_time()
        answer = await work()
        self._taken[name].append((time.perf_counter() - started, time.process_time() - used))
        assert not isinstance(answer, Refusal), answer
        return answer

    def plain(self, name: str, work: Callable[[], Any]) -> Any:
        started, used = time.perf_counter(), time.process_time()
        answer = work()
        self._taken[name].append((time.perf_counter() - started, time.process_time() - used))
        return answer

    def times(self, name: str) -> dict[str, float]:
        taken = self._taken[name][WARM:]
        return {
            f"{kind}p{p}": round(
                1000 * percentile([seconds[place] for seconds in taken], p / 100), 2
            )
            for place, kind in enumerate(("", "cpu_"))
            for p in (50, 95)
        }


async def _time_tools(memory: Memory, plain: Plain) -> Watch:
    watch, tools = Watch(), memory.cases
    questions = [question.text for question in Teller(11).questions()]
    random.Random(3).shuffle(questions)
    shown: list[tuple[list[str], list[int]]] = []
    for number, question in enumerate(questions[: ASKED + WARM]):
        asker = caller(f"cnv_q{number}")
        answer: SearchAnswer = await watch.ours(
            "search", lambda asker=asker, question=question: tools.search(asker, question)
        )
        assert not answer.degraded, answer.degraded
        numbers = watch.plain("plain search", lambda question=question: plain.search(question))
        shown.append(([case.case_id for case in answer.cases], numbers))
    some = [item for item in shown if item[0] and item[1]][: WRITTEN + WARM]
    for number, (ids, numbers) in enumerate(some):
        asker = caller(f"cnv_q{number}")
        await watch.ours("render", lambda asker=asker, ids=ids: tools.render(asker, ids))
        watch.plain("plain render", lambda numbers=numbers: plain.render(numbers))
    for number, (ids, numbers) in enumerate(some):
        asker = caller(f"cnv_q{number}")
        await watch.ours(
            "feedback", lambda asker=asker, ids=ids: tools.feedback(asker, ids[0], helpful=True)
        )
        watch.plain("plain feedback", lambda numbers=numbers: plain.feedback(numbers[0]))
    for number, told in enumerate(Teller(12).cases(WRITTEN + WARM)):
        writer = caller(f"cnv_u{number}", told.environment)
        await watch.ours("upsert", lambda writer=writer, told=told: tools.upsert(writer, told.case))
        watch.plain("plain upsert", lambda told=told: plain.upsert(told.text))
    return watch


async def measure(count: int) -> dict[str, Any]:
    async with anyio.TemporaryDirectory(prefix="cases-") as name:
        directory = Path(name)
        loaded_s = await Loader().load(directory, count, is_related=True)
        plain = await anyio.to_thread.run_sync(Plain, directory)
        try:
            async with memory_in(directory) as memory:
                watch = await _time_tools(memory, plain)
        finally:
            plain.close()
        size = (directory / FILE).stat().st_size / 2**20
    tools = {}
    for tool in TOOLS:
        ours, bare = watch.times(tool), watch.times(f"plain {tool}")
        ratios = {f"ratio_{p}": round(ours[p] / max(bare[p], 0.001), 2) for p in ours}
        tools[tool] = {**ours, "plain": bare, **ratios}
    return {
        "cases": count,
        "tools": tools,
        "loaded_per_s": round(count / loaded_s),
        "file_mib": round(size, 1),
    }


async def run(sizes: Sequence[int]) -> list[dict[str, Any]]:
    measured = []
    for size in sizes:
        measured.append(await measure(size))
        print(measured[-1], flush=True)
    show(
        "Tools among so many cases, ms; plain: one FTS5 column and one table of the same rows",
        ["cases", "tool", "p50", "p95", "cpu p50", "cpu p95", "plain p50", "plain p95", "ratio"],
        [
            [
                f"{row['cases']}",
                tool,
                *(f"{times[p]:.1f}" for p in ("p50", "p95", "cpu_p50", "cpu_p95")),
                *(f"{times['plain'][p]:.2f}" for p in ("p50", "p95")),
                f"{times['ratio_p50']:.2f} / {times['ratio_p95']:.2f}",
            ]
            for row in measured
            for tool, times in row["tools"].items()
        ],
    )
    return measured
