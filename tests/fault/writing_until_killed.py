"""Write turns and events as fast as can be and say after each commit what was committed.

`python writing_until_killed.py DIRECTORY`, until somebody kills it.
"""
# ruff: noqa: T201
# a script talks by printing

import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gateway.conversations.store import IdempotencyKey
from tests.conformance.suites.conversation_values import (
    conversation,
    ended,
    event,
    last_event,
    turn,
)
from tests.support.stores import open_file, stores_on


async def write(directory: Path) -> None:
    async with open_file(directory) as database:
        stores = stores_on(database)
        seq, n = await stores.events.last_seq(), await stores.events.last_seq()
        while True:
            n += 1
            name = f"k{n}"
            key = IdempotencyKey(key=name, request_hash="h")
            one = await stores.turns.accept(
                turn(name, name, message="长" * 2000), create=conversation(name), key=key
            )
            print("accepted", name, flush=True)
            if n % 5 == 0:
                continue  # one that stays queued
            await stores.turns.start(one.id, one.created_at)
            await stores.events.append([event(seq + 1, one, 1), event(seq + 2, one, 2)])
            print("appended", name, flush=True)
            await stores.turns.finish([ended(one)], [last_event(seq + 3, one, 3)])
            print("finished", name, flush=True)
            seq += 3


if __name__ == "__main__":
    anyio.run(write, Path(sys.argv[1]))
