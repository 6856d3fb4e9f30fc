"""What grows with the data: one long conversation, and many conversations, asked over HTTP.

The database is filled before the server starts, in Chinese and English, each turn with its result and
six events. Then a turn is asked in the long conversation (its time to first text), and the
conversation is read, followed, forked and deleted; the many are listed and searched.
"""

import random
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio

from bench.report import median, save, show
from bench.server import Connection, connection, running_gateway
from bench.stand_in import stand_in
from bench.warm_turns import SCRIPT
from gateway.conversations import migrations
from gateway.ids import LOCAL_USER
from gateway.jsonsafe import json_text
from memory.stores.sqlite.database import migrations_of, open_database

LENGTHS = (10, 100, 1_000, 10_000)
COUNTS = (1_000, 10_000)
_TURNS_EACH = 5
_EVENTS_EACH = 6
_SLOW_ROUNDS = 3
"""For what copies or deletes a whole conversation."""
_LONG = "cnv_long"
_AT = "2026-11-20T12:00:00.000Z"
_WORDS = [
    "server",
    "deploy",
    "error",
    "log",
    "test",
    "file",
    "memory",
    "user",
    "config",
    "build",
    "retry",
    "cache",
    "index",
    "page",
]
_CHINESE = [
    "服务器",
    "部署",
    "错误",
    "日志",
    "测试",
    "文件",
    "内存",
    "用户",
    "配置",
    "构建",
    "重试",
    "缓存",
    "索引",
    "页面",
]
_QUERIES = {
    "no hit, en": "zebra quartz",
    "no hit, zh": "斑马",
    "one hit": "needle 针",
    "rare part of a word": "needl",
    "common, en": "deploy",
    "common, zh": "部署",
    "one letter": "e",
}


async def run(rounds: int) -> None:
    lengths = {length: await _long(length, rounds) for length in LENGTHS}
    _show("One conversation by its turns", "turns", lengths, rounds)
    counts = {count: await _many(count, rounds) for count in COUNTS}
    _show("A user's conversations", "conversations", counts, rounds)
    save("growth", {"samples": rounds, "turns_ms": lengths, "conversations_ms": counts})


def _show(title: str, unit: str, figures: dict[int, dict[str, float]], rounds: int) -> None:
    kinds = list(figures[next(iter(figures))])
    show(
        f"{title}, ms over HTTP, medians of {rounds} ({_SLOW_ROUNDS} of fork and delete)",
        [unit, *(f"{size:,}".replace(",", " ") for size in figures)],
        [[kind, *(f"{found[kind]:.1f}" for found in figures.values())] for kind in kinds],
    )


async def _long(length: int, rounds: int) -> dict[str, float]:
    async def measure(link: Connection) -> dict[str, float]:
        body = {"message": SCRIPT, "conversation_id": _LONG}
        for _ in range(3):
            await link.ask(body)
        first = [(await link.ask(body))[0] for _ in range(rounds)]
        times = {"first text of a warm turn": median(first) * 1000}
        path = f"/conversations/{_LONG}"
        reads = {"read it": path, "its last 50 messages": f"{path}/messages?limit=50"}
        for kind, wanted in reads.items():
            times[kind] = await _median(rounds, partial(link.call, "GET", wanted))
        forks: list[str] = []

        async def fork() -> tuple[float, Any]:
            taken, made = await link.call("POST", f"{path}/fork", {"turn_id": f"trn_0_{length}"})
            forks.append(made["conversation_id"])
            return taken, made

        async def delete() -> tuple[float, Any]:
            return await link.call("DELETE", f"/conversations/{forks.pop()}")

        times["fork it at its last turn"] = await _median(_SLOW_ROUNDS, fork)
        times["delete that fork"] = await _median(_SLOW_ROUNDS, delete)
        return times

    return await _with([(_LONG, length)], measure)


async def _many(count: int, rounds: int) -> dict[str, float]:
    async def measure(link: Connection) -> dict[str, float]:
        path = "/conversations?limit=50"
        times = {"list the newest 50": await _median(rounds, partial(link.call, "GET", path))}
        for kind, query in _QUERIES.items():
            search = partial(link.call, "GET", f"{path}&q={quote(query)}")
            times[f"search, {kind}"] = await _median(rounds, search)
        return times

    return await _with([(f"cnv_{n}", _TURNS_EACH) for n in range(count)], measure)


async def _median(rounds: int, call: Callable[[], Awaitable[tuple[float, Any]]]) -> float:
    return median([(await call())[0] for _ in range(rounds)]) * 1000


async def _with(
    conversations: list[tuple[str, int]],
    measure: Callable[[Connection], Awaitable[dict[str, float]]],
) -> dict[str, float]:
    """Run a measurement against a server on a database with these conversations and their turns."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        await anyio.Path(directory / "data").mkdir(mode=0o700)
        database = await open_database(
            directory / "data" / "candor.sqlite3", migrations_of(migrations.__name__)
        )
        await database.write(partial(_fill_blocking, conversations))
        await database.close()
        async with stand_in() as url:
            model = {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "none",
                "CANDOR_MODEL": "candor-demo",
            }
            async with running_gateway(directory, **model) as gateway, connection(gateway) as link:
                await anyio.sleep(3)  # the prewarmed agent starts meanwhile
                return await measure(link)


def _fill_blocking(conversations: list[tuple[str, int]], writer: sqlite3.Connection) -> None:
    draw = random.Random(7)
    for number, (conversation_id, turns) in enumerate(conversations):
        writer.execute(
            "INSERT INTO conversations (id, user_id, title, created_at, last_activity_at)"
            " VALUES (?, ?, ?, ?, ?)",
            (conversation_id, LOCAL_USER, _message(draw)[:60], _AT, _AT),
        )
        ids = [f"trn_{number}_{n}" for n in range(1, turns + 1)]
        writer.executemany(
            "INSERT INTO turns (id, conversation_id, user_id, seq, state, message, created_at)"
            " VALUES (?, ?, ?, ?, 'running', ?, ?)",
            [
                (turn_id, conversation_id, LOCAL_USER, n, _message(draw), _AT)
                for n, turn_id in enumerate(ids, start=1)
            ],
        )
        writer.executemany(
            "INSERT INTO events (own_seq, conversation_id, turn_id, n, type, data)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            _events(conversation_id, ids),
        )
    needle = "UPDATE turns SET message = 'a needle 针 in here' WHERE id = 'trn_0_1'"
    writer.execute(needle)
    writer.execute(
        "UPDATE turns SET state = 'completed', started_at = :at, finished_at = :at, session_id = 's',"
        " last_entry_id = 'e', result = json_set(:result, '$.turn_id', id, '$.conversation_id',"
        " conversation_id)",
        {"at": _AT, "result": json_text({"reply": "x" * 500, "outcome": "answered", "tools": []})},
    )


def _events(
    conversation_id: str, turn_ids: list[str]
) -> Iterator[tuple[int, str, str, int, str, str]]:
    seq = count(1)
    for turn_id in turn_ids:
        for n in range(1, _EVENTS_EACH):
            piece = json_text({"text": "x" * 80})
            yield next(seq), conversation_id, turn_id, n, "text.delta", piece
        ended = (conversation_id, turn_id, _EVENTS_EACH, "turn.completed", json_text({}))
        yield next(seq), *ended


def _message(draw: random.Random) -> str:
    if draw.random() < 0.5:
        return " ".join(draw.choices(_WORDS, k=draw.randint(5, 40)))
    return "".join(draw.choices(_CHINESE, k=draw.randint(4, 40)))
