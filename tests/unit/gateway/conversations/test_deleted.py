"""What is deleted is gone from the disk: from the file, and from the log beside it."""

from pathlib import Path

import anyio

from gateway.conversations.testing.values import conversation, event, turn
from tests.support.stores import open_file, stores_on

SECRET = "Nachtfalke 甲乙丙"


async def on_disk(directory: Path) -> bytes:
    files = [one async for one in anyio.Path(directory).iterdir()]
    return b"".join([await one.read_bytes() for one in files])


async def test_nothing_of_a_deleted_conversation_is_on_the_disk_while_the_server_runs(
    tmp_path: Path,
) -> None:
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        one = await stores.turns.accept(
            turn(message=SECRET), create=conversation(title=SECRET), key=None
        )
        await stores.events.append([event(1, one, 1)])
        assert SECRET.encode() in await on_disk(tmp_path), "else there is nothing to show here"
        await stores.conversations.delete(one.conversation_id, one.created_at)
        assert SECRET.encode() not in await on_disk(tmp_path)
