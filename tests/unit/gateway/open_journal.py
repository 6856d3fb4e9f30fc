"""A journal on a directory while a block runs, what it wrote there, and a disk that does not answer."""

import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio

from gateway.journal.writer import Journal, TurnJournal

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DAY = "2026-11-20"


def mask(text: str) -> str:
    return text.replace("s3cret", "***")


def make(directory: Path, **options: Any) -> Journal:
    return Journal(directory, mask=options.pop("mask", mask), now=lambda: AT, **options)


@asynccontextmanager
async def running(journal: Journal) -> AsyncIterator[None]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(journal.run)
            yield
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def open_turn(directory: Path, **options: Any) -> AsyncIterator[TurnJournal]:
    """Open a turn's journal while the block runs."""
    journal = make(directory, **options)
    async with running(journal):
        yield journal.open("cnv_c", "trn_a", AT)


def lines_of(directory: Path, turn_id: str = "trn_a", day: str = DAY) -> list[dict[str, Any]]:
    raw = (directory / day / f"{turn_id}.jsonl").read_bytes()
    assert raw.endswith(b"\n")
    return [json.loads(line) for line in raw.split(b"\n")[:-1]]


def line_text(time: str, seq: int, kind: str, **fields: Any) -> str:
    """Return a line of 2026-11-20 as a file holds it; `fields` may replace the line's own."""
    own = {"ts": f"{DAY}T{time}.000Z", "seq": seq, "conversation_id": "cnv_c", "turn_id": "trn_a"}
    line = {**own, "kind": kind, **fields}
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def seqs(directory: Path) -> list[int]:
    return [line["seq"] for line in lines_of(directory)]


class Gate:
    """A mask that holds the writer's thread until it is opened: a disk that does not answer."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, text: str) -> str:
        self.reached.set()
        self.opened.wait(30)
        return text

    async def wait_reached(self) -> None:
        await anyio.to_thread.run_sync(self.reached.wait, 30)
