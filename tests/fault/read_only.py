"""Open a database without the right to write it, and say in JSON what was said.

`python read_only.py DIRECTORY`: makes it there, then gives up being root where it is.
"""
# ruff: noqa: T201
# a script talks by printing

import json
import os
import sys
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory.errors import StoreUnavailable
from tests.conformance.suites.conversation_values import ANN, conversation
from tests.support.stores import FILE, open_file, stores_on

NOBODY = 65534


async def attempt(directory: Path) -> dict[str, object]:
    async with open_file(directory) as database:
        await stores_on(database).conversations.create(conversation())
    (directory / FILE).chmod(0o444)
    directory.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        async with open_file(directory):
            opened = "it opened"
    except StoreUnavailable as exc:
        opened = str(exc)
    if root:
        os.seteuid(0)
    directory.chmod(0o755)
    (directory / FILE).chmod(0o644)
    async with open_file(directory) as database:
        page = await stores_on(database).conversations.page(ANN, limit=9)
    return {"opened": opened, "kept": len(page.conversations)}


if __name__ == "__main__":
    print(json.dumps(anyio.run(attempt, Path(sys.argv[1]))))
