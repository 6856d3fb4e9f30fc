"""How long a recall takes among so many episodes, next to the bare query; writing, and the loop meanwhile."""

import gc
import sqlite3
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.to_thread

from bench.made_up_texts import START, Corpus
from bench.recall_memory import Memory, line, open_memory
from bench.recall_plain import PLAIN
from bench.report import percentile, show
from memory.items.item import Item
from memory.items.scope import Scope
from memory.recall.query import RECALLED_KINDS, QueryPack
from memory.recall.reader import RecallReader
from memory.stores.sqlite.items import put_item_blocking
from memory.text.terms import terms

OWNER = "ann"
OWNERS = 10
QUERIES = 200
MAX_QUERIES_OF_A_MILLION = 60
WARM = 20
BATCH = 100
THROUGH_WRITER = 2000
IDLE_S = 10


def made_item(corpus: Corpus, number: int) -> Item:
    at = START + timedelta(minutes=number)
    body = corpus.sentence(40)
    return Item(
        id=f"epi_{number}",
        kind="episode",
        scope=Scope(owner_id=OWNER if number % 2 else f"owner{number % OWNERS}"),
        title=corpus.sentence(6),
        summary=body[:120],
        body=body,
        source=f"episode epi_{number}",
        occurred_at=at,
        updated_at=at,
    )


async def _longest_stall(work: Callable) -> tuple[float, float]:
    """Run `work` and give its seconds and the longest time in which the loop did nothing else, in ms."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await anyio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before - 0.001)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await anyio.sleep(0.05)
        longest = 0.0
        started = time.perf_counter()
        await work()
        took = time.perf_counter() - started
        tasks.cancel_scope.cancel()
    return took, 1000 * longest


def _write(connection: sqlite3.Connection, items: Sequence[Item]) -> None:
    for item in items:
        put_item_blocking(connection, item)


async def _fill(memory: Memory, corpus: Corpus, count: int) -> tuple[float, float]:
    async def work() -> None:
        for start in range(0, count, BATCH):
            items = await anyio.to_thread.run_sync(
                lambda start=start: [
                    made_item(corpus, n) for n in range(start, min(start + BATCH, count))
                ]
            )
            await memory.database.write(lambda writer, items=items: _write(writer, items))

    return await _longest_stall(work)


async def _fill_through_writer(corpus: Corpus) -> tuple[float, float]:
    drafts = [line(OWNER, f"epi_w{n}", corpus.sentence(40)) for n in range(THROUGH_WRITER)]
    async with (
        anyio.TemporaryDirectory(prefix="recall-") as directory,
        open_memory(Path(directory)) as memory,
    ):
        return await _longest_stall(lambda: memory.writer.write_all(drafts))


def _bare(directory: Path, memory_file: Path) -> sqlite3.Connection:
    """The same rows as one takes them otherwise: one column, unigrams and bigrams, no owner."""
    table = sqlite3.connect(directory / "bare.sqlite3", check_same_thread=False)
    table.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize='porter unicode61')")
    source = sqlite3.connect(memory_file)
    written = PLAIN["unigram+bigram"][1]
    rows = source.execute("SELECT seq, title || ' ' || body FROM items")
    table.executemany(
        "INSERT INTO words (rowid, text) VALUES (?, ?)",
        ((seq, written(text)) for seq, text in rows),
    )
    table.commit()
    source.close()
    return table


def _times(samples: Sequence[float]) -> dict[str, float]:
    return {
        "p50": round(1000 * percentile(samples, 0.5), 2),
        "p95": round(1000 * percentile(samples, 0.95), 2),
    }


async def _time_questions(
    memory: Memory,
    bare: sqlite3.Connection,
    same_words: sqlite3.Connection,
    questions: Sequence[tuple[str, str]],
) -> dict:
    """Time searches for the first question of each pair, and what a turn with the second one is told."""
    search, scope = memory.search(), Scope(owner_id=OWNER)
    reader = RecallReader(search)
    asked_plain = PLAIN["unigram+bigram"][2]
    turn: list[float] = []
    whole: list[float] = []
    plain: list[float] = []
    same: list[float] = []
    for place, (question, message) in enumerate(questions):
        started = time.perf_counter()
        found = await search.search(question, scope=scope, limit=20)
        whole_s = time.perf_counter() - started
        assert not found.degraded, found.degraded
        started = time.perf_counter()
        pack = await reader.recall(QueryPack(queries=(message,), scope=scope, kinds=RECALLED_KINDS))
        turn_s = time.perf_counter() - started
        assert not pack.degraded, pack.degraded
        expression = " OR ".join(f'"{name}"' for name in dict.fromkeys(asked_plain(question)))
        started = time.perf_counter()
        bare.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 20", (expression,)
        ).fetchall()
        plain_s = time.perf_counter() - started
        expression = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms(question)))
        started = time.perf_counter()
        same_words.execute(
            "SELECT rowid FROM item_words WHERE item_words MATCH ? ORDER BY rank LIMIT 20",
            (expression,),
        ).fetchall()
        same_s = time.perf_counter() - started
        if place >= WARM:
            turn.append(turn_s)
            whole.append(whole_s)
            plain.append(plain_s)
            same.append(same_s)
    return {
        "turn": _times(turn),
        "recall": _times(whole),
        "bare": _times(plain),
        "bare, our words": _times(same),
    }


async def measure(count: int) -> dict:
    corpus = Corpus()
    async with anyio.TemporaryDirectory(prefix="recall-") as name:
        directory = Path(name)
        async with open_memory(directory) as memory:
            took, stall = await _fill(memory, corpus, count)
            bare = await anyio.to_thread.run_sync(_bare, directory, memory.database.path)
            same = sqlite3.connect(memory.database.path)
            asked = QUERIES if count < 1_000_000 else MAX_QUERIES_OF_A_MILLION
            questions = [(corpus.question(), corpus.question()) for _ in range(asked + WARM)]
            times = await _time_questions(memory, bare, same, questions)
            bare.close()
            same.close()
        size = (directory / "memory.sqlite3").stat().st_size / 2**20
    ratio = times["recall"]["p50"] / times["bare"]["p50"]
    return {
        "episodes": count,
        **times,
        "ratio_p50": round(ratio, 2),
        "ratio_p95": round(times["recall"]["p95"] / times["bare"]["p95"], 2),
        "written_per_s": round(count / took),
        "loop_stall_ms": round(stall, 1),
        "file_mib": round(size, 1),
    }


async def run(sizes: Sequence[int]) -> dict:
    gc.freeze()  # as the server does when it is up
    measured = []
    for size in sizes:
        measured.append(await measure(size))
        print(measured[-1], flush=True)
    _, idle_stall = await _longest_stall(lambda: anyio.sleep(IDLE_S))
    took, stall = await _fill_through_writer(Corpus(2))
    show(
        "Recall among so many episodes, ms: a search, and what a turn is told from memory; the bare query is"
        " one FTS5 column of the same rows",
        [
            *(
                "episodes",
                "search p50",
                "p95",
                "turn p50",
                "p95",
                "bare p50",
                "p95",
                "ratio of searches",
            ),
            *("rows/s", "loop stall", "MiB"),
        ],
        [
            [
                f"{row['episodes']}",
                *(
                    f"{row[side][p]:.1f}"
                    for side in ("recall", "turn", "bare")
                    for p in ("p50", "p95")
                ),
                f"{row['ratio_p50']:.2f} / {row['ratio_p95']:.2f}",
                f"{row['written_per_s']}",
                f"{row['loop_stall_ms']:.1f}",
                f"{row['file_mib']:.0f}",
            ]
            for row in measured
        ],
    )
    writer = {"episodes_per_s": round(THROUGH_WRITER / took), "loop_stall_ms": round(stall, 1)}
    print(f"  through MemoryWriter, 200 a transaction: {writer}")
    print(f"  an idle loop's longest stall in {IDLE_S} s on this machine: {idle_stall:.1f} ms\n")
    return {"sizes": measured, "writer": writer, "idle_loop_stall_ms": round(idle_stall, 1)}
