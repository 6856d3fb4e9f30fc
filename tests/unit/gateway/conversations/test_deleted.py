"""What is deleted is gone from the disk: from the file, and from the log beside it."""

from pathlib import Path

import anyio

from gateway.conversations.sqlite.conversations import SqliteConversationStore
from tests.conformance.suites.conversation_values import ANN, conversation, ended, event, turn
from tests.support.stores import open_file, stores_on

SECRET = "Nachtfalke 甲乙丙"


async def on_disk(directory: Path) -> bytes:
    files = [path async for path in anyio.Path(directory).iterdir()]
    return b"".join([await file.read_bytes() for file in files])


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


async def test_its_words_leave_the_search_index_too(tmp_path: Path) -> None:
    """The index marks what was deleted; merging its segments takes the words out."""
    async with open_file(tmp_path) as database:
        stores = stores_on(database)
        gone = await stores.turns.accept(turn(message=SECRET), create=conversation())
        kept = await stores.turns.accept(turn("b1", "b", message="kept"), create=conversation("b"))
        await stores.turns.finish([ended(gone), ended(kept)], [])
        await stores.conversations.delete(gone.conversation_id, gone.created_at)
        assert "甲乙".encode() in await on_disk(tmp_path), "else there is nothing to show here"
        assert await SqliteConversationStore(database).vacuum.vacuum()
        assert "甲乙".encode() not in await on_disk(tmp_path)
        found = await stores.conversations.page(ANN, limit=9, query="kept")
        assert [each_conversation.id for each_conversation in found.conversations] == [
            kept.conversation_id
        ]
        await database.write(
            lambda writer: writer.execute(
                "INSERT INTO search_words (search_words) VALUES ('integrity-check')"
            )
        )
