"""A memory of many made-up items in two languages, kept between runs in the user's cache.

Two of five items are episodes, written by `MemoryWriter`; the others are turns of conversations.
"""

import os
import shutil
import sqlite3
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from bench.made_up_texts import START, Corpus
from bench.recall_memory import MIGRATIONS, Memory, line, open_memory
from gateway.ids import LOCAL_USER
from memory.items.item import Item
from memory.items.scope import Scope
from memory.service.assemble import FILE
from memory.stores.sqlite.items import put_item_blocking

_BATCH = 1_000
_TURNS_A_CONVERSATION = 20
_EPISODES_OF_FIVE = 2


async def fill(data_dir: Path, count: int) -> None:
    """Put a memory of so many items into a data directory, before its server starts."""
    made = await _cached(count)
    await anyio.Path(data_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    await anyio.to_thread.run_sync(shutil.copyfile, made, data_dir / FILE)


async def _cached(count: int) -> anyio.Path:
    """Return the file of a memory of so many items, made now if no run has made it before."""
    base = os.environ.get("XDG_CACHE_HOME") or await anyio.Path.home() / ".cache"
    directory = anyio.Path(base) / "candor-bench"
    kept = directory / f"memory-{count}-items-{len(MIGRATIONS)}-migrations.sqlite3"
    if not await kept.exists():
        print(f"  makes a memory of {count} items in {kept}", flush=True)
        await directory.mkdir(parents=True, exist_ok=True)
        async with anyio.TemporaryDirectory(prefix="making-", dir=str(directory)) as name:
            async with open_memory(Path(name)) as memory:
                await _write(memory, count)
            await (anyio.Path(name) / FILE).rename(kept)
    return kept


async def _write(memory: Memory, count: int) -> None:
    corpus = Corpus()
    for first in range(0, count, _BATCH):
        numbers = range(first, min(first + _BATCH, count))
        episodes = [
            line(LOCAL_USER, f"epi_{n}", corpus.sentence(40), START + timedelta(minutes=n))
            for n in numbers
            if n % 5 < _EPISODES_OF_FIVE
        ]
        turns = [_turn(corpus, n) for n in numbers if n % 5 >= _EPISODES_OF_FIVE]
        await memory.writer.write_all(episodes)
        await memory.database.write(partial(_put_blocking, turns))


def _put_blocking(turns: Sequence[Item], writer: sqlite3.Connection) -> None:
    for turn in turns:
        put_item_blocking(writer, turn)


def _turn(corpus: Corpus, number: int) -> Item:
    message, reply = corpus.sentence(12), corpus.sentence(40)
    conversation, position = divmod(number, _TURNS_A_CONVERSATION)
    at = START + timedelta(minutes=number)
    return Item(
        id=f"trn_filled{number}",
        kind="turn",
        scope=Scope(owner_id=LOCAL_USER),
        title=message[:80],
        summary=message[:200],
        body=f"{message}\n{reply}",
        source=f"conversation cnv_filled{conversation}",
        occurred_at=at,
        updated_at=at,
        conversation_id=f"cnv_filled{conversation}",
        turn_id=f"trn_filled{number}",
        thread=f"cnv_filled{conversation}",
        position=position,
    )
