"""An agent's session is resumed on another server of the same PostgreSQL, with what the model knew."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import psutil
import psycopg
import pytest

from gateway.conversations.sql.agent_transcripts import SqlTranscriptStore
from gateway.conversations.sql.conversations import ConversationStore
from gateway.engine.sdk import SdkEngine
from gateway.engine.session_mirror import stored_name
from gateway.ids import ConversationId
from memory.errors import StoreUnavailable
from tests.conformance.suites.conversation_values import conversation
from tests.conformance.suites.leases import A
from tests.support.engine_talk import prompt, read
from tests.support.engine_talk import script as engine_script
from tests.support.engine_world import FRESH, MODEL, real_world
from tests.support.live_server import (
    LiveClient,
    LiveServer,
    bash,
    opened_pipe,
    running_server,
    script,
)
from tests.support.postgres import new_database_blocking
from tests.support.stores import open_file

pytestmark = pytest.mark.e2e

ANY_PORT = "http://127.0.0.1:0"
SLOW = {"text": "A green umbrella. " * 100, "delta_delay_ms": 20}
ECHO = script({"echo": "messages"}, say="What was it?")
TASK = {"subject": "Paint the roof", "description": "Red."}
LIVES = (
    "INSERT INTO candor.nodes (id, incarnation, expires_at)"
    " VALUES ('nod_other', 'inc_other', 9000000000000)"
)
TAKEN = (
    "UPDATE candor.leases SET node_id = 'nod_other', incarnation = 'inc_other', epoch = epoch + 1"
)
COUNT = "SELECT count(*) FROM candor.agent_entries"


@dataclass
class Untaken:
    """A turn of a conversation that no server has ever held."""

    conversation_id: ConversationId = A
    epoch: int = 0

    async def wait_decided(self) -> bool:
        await anyio.lowlevel.checkpoint()
        return True


HAS_SECOND = (
    "SELECT count(*) FROM candor.agent_entries WHERE position('inside two'::bytea IN entry) > 0"
)


@pytest.fixture
def url() -> Iterator[str]:
    with new_database_blocking("hunter2-of-the-database") as address:
        yield address


def server_on(
    url: str, root: Path, name: str, **more: Any
) -> AbstractAsyncContextManager[LiveServer]:
    """Run a server of a database and a workspace that all share, with a directory of its own."""
    shared = {
        "database_url": url,
        "workspace": root / "shared",
        "node_url": ANY_PORT,
        "node_ttl_s": 60,
    }
    return running_server(root / name, **shared, **more)


def on_database(url: str, statement: str) -> int:
    """Run a statement; return what it found, or how many rows it changed."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        found = cursor.fetchone() if cursor.description else None
        return cursor.rowcount if found is None else int(found[0])


def said_to_model(result: Any) -> list[str]:
    """Return the results of tools and the model's own words, as the model was sent them."""
    said = []
    for message in json.loads(result["reply"]):
        content = message["content"]
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_result":
                said.append(str(block["content"]))
            elif block["type"] == "text" and message["role"] == "assistant":
                said.append(block["text"])
    return said


def kill_all(server: LiveServer) -> None:
    """End the server and its agents at once, as a machine does that loses its power."""
    agents = server.agents()
    server.signal(signal.SIGSTOP)
    for process in agents.values():
        with suppress(psutil.NoSuchProcess):
            process.kill()
    server.kill()


async def begin(client: LiveClient) -> str:
    """Start a conversation whose model knows what it was told, and nothing of memory's."""
    made = await client.post("/new-conversation", status=201)
    path = f"/conversations/{made['conversation_id']}"
    changed = await client.http.patch(path, json={"memory": {"enabled": False}})
    assert changed.status_code == 200, changed.text
    return str(made["conversation_id"])


async def test_a_turn_that_was_cut_off_is_remembered_on_another_server(
    tmp_path: Path, url: str
) -> None:
    """The server and its agent are killed in mid-text; the other server's directory is empty."""
    (tmp_path / "shared").mkdir()
    for name in ("one", "two"):
        await anyio.Path(tmp_path / "shared" / f"{name}.txt").write_text(f"inside {name}")
    async with (
        server_on(url, tmp_path, "b") as other,
        server_on(url, tmp_path, "a") as server,
        server.client() as client,
        other.client() as there,
    ):
        conversation = await begin(client)
        await client.ask(script({"text": "A blue door."}), conversation)
        work = script(bash("cat one.txt"), bash("cat two.txt"), SLOW, say="Which colour?")
        async with client.stream(work, conversation) as events:
            await events.until("text.delta")
            with anyio.fail_after(30):  # the agent tells what it wrote a little later
                while not on_database(url, HAS_SECOND):  # noqa: ASYNC110  nothing tells
                    await anyio.sleep(0.05)
            await anyio.to_thread.run_sync(kill_all, server)
        result = await there.ask(ECHO, conversation)
        assert said_to_model(result)[:3] == ["A blue door.", "inside one", "inside two"]
        assert "Which colour?" in result["reply"]
        assert result["notices"] == []


async def test_the_agent_of_a_server_that_lost_the_conversation_stores_nothing_more(
    tmp_path: Path, url: str
) -> None:
    async with server_on(url, tmp_path, "a") as server, server.client() as client:
        conversation = await begin(client)
        await client.ask(script({"text": "A blue door."}), conversation)
        pipe = server.make_pipe("pipe")
        async with client.stream(script(bash("cat pipe"), SLOW), conversation) as events:
            await events.until("tool.started")
            command = await opened_pipe(pipe)
            assert on_database(url, LIVES) == on_database(url, TAKEN) == 1
            before = on_database(url, COUNT)
            assert before > 0
            with suppress(BrokenPipeError):  # the server may know already
                os.write(command, b"through")
            os.close(command)
            with anyio.fail_after(30):
                while server.agents():  # noqa: ASYNC110
                    await anyio.sleep(0.05)
        assert on_database(url, COUNT) == before


async def test_what_one_server_did_another_goes_on_with_and_the_first_again(
    tmp_path: Path, url: str
) -> None:
    """With a sub-agent, a branch, and a deletion; the first one's own file is stale in the end."""
    helper = {"description": "Look", "prompt": script(bash("ls"), {"text": "Found."})}
    delegated = script({"tool": "Agent", "input": helper}, {"text": "Delegated."})
    async with server_on(url, tmp_path, "a") as server, server.client() as client:
        conversation = await begin(client)
        await client.ask(script({"text": "A blue door."}), conversation)
        await client.ask(delegated, conversation)
        await client.ask(script({"tool": "TaskCreate", "input": TASK}), conversation)
    async with server_on(url, tmp_path, "b") as server, server.client() as client:
        await client.ask(script({"text": "A red roof."}), conversation)
        listed = await client.ask(script({"tool": "TaskList", "input": {}}), conversation)
        (call,) = listed["tools"]
        path = f"/conversations/{conversation}/turns/{listed['turn_id']}/tools/{call['index']}"
        assert "Paint the roof" in (await client.get(path))["output"]
        (sub,) = server.data_dir.glob("sessions/projects/*/*/subagents/agent-*.jsonl")
        assert sub.with_suffix(".meta.json").exists()
    async with server_on(url, tmp_path, "a") as server, server.client() as client:
        result = await client.ask(ECHO, conversation)
        assert said_to_model(result)[0] == "A blue door."
        assert {"Delegated.", "A red roof."} <= set(said_to_model(result))
        assert result["notices"] == []
        branch = await client.post(
            f"/conversations/{conversation}/fork", status=201, turn_id=result["turn_id"]
        )
    async with server_on(url, tmp_path, "c") as server, server.client() as client:
        branched = await client.ask(ECHO, branch["conversation_id"])
        assert said_to_model(branched)[: len(said_to_model(result))] == said_to_model(result)
        assert branched["notices"] == []
        for name in (conversation, branch["conversation_id"]):
            answer = await client.http.delete(f"/conversations/{name}")
            assert answer.is_success, answer.text
        assert on_database(url, COUNT) == 0


async def test_a_summary_replaces_what_it_summarises_on_another_server_too(
    tmp_path: Path, url: str
) -> None:
    first = script(
        {"text": "A green umbrella."}, {"on_followup": [{"text": "<summary>All.</summary>"}]}
    )
    async with server_on(url, tmp_path, "a") as server, server.client() as client:
        conversation = await begin(client)
        await client.ask(first, conversation)
        await client.ask("/compact", conversation)
    async with server_on(url, tmp_path, "b") as server, server.client() as client:
        result = await client.ask(ECHO, conversation)
        assert "All." in result["reply"]
        assert "A green umbrella." not in said_to_model(result)


async def test_a_session_older_than_the_store_is_stored_when_it_is_resumed(
    tmp_path: Path, url: str
) -> None:
    """As after an update of a server whose sessions were in files alone."""
    async with server_on(url, tmp_path, "a") as server, server.client() as client:
        conversation = await begin(client)
        await client.ask(script({"text": "A blue door."}), conversation)
    assert on_database(url, "DELETE FROM candor.agent_transcripts") == 1
    async with server_on(url, tmp_path, "a") as server, server.client() as client:
        result = await client.ask(ECHO, conversation)
        assert said_to_model(result) == ["A blue door."]
    async with server_on(url, tmp_path, "b") as server, server.client() as client:
        again = await client.ask(ECHO, conversation)
        assert said_to_model(again)[0] == "A blue door."


async def test_entries_that_could_not_be_stored_are_told_and_come_with_the_next_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        await anyio.lowlevel.checkpoint()
        raise StoreUnavailable("The database cannot be written.")

    async with open_file(tmp_path) as database, real_world(tmp_path) as world:
        await ConversationStore(database).create(conversation())
        store = SqlTranscriptStore(database)
        store.is_fed = True
        client = await SdkEngine(world.setup, world.tasks, transcripts=store).connect(MODEL, FRESH)

        async def play(text: str) -> None:
            given = replace(prompt(engine_script({"text": text})), owner=Untaken())
            assert (await read(await client.start_run(given))).text == text

        with monkeypatch.context() as broken:
            for name in ("append", "replace"):
                broken.setattr(store, name, fail)
            await play("A blue door.")
            name = stored_name(client.session_id or "")
            with anyio.fail_after(30):
                while b"A blue door." not in await written(world.setup.config_dir):  # noqa: ASYNC110
                    await anyio.sleep(0.05)
                while "session_not_stored" not in caplog.text:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            assert await store.load(name) is None
        await play("A red roof.")
        lines = b""
        with anyio.fail_after(30):
            while b"A red roof." not in lines:
                await anyio.sleep(0.05)  # the agent writes a little later than it answers
                lines = b"\n".join(await store.load(name) or [])
        assert lines.index(b"A blue door.") < lines.index(b"A red roof.")


async def written(config_dir: Path | None) -> bytes:
    """Return what the agent's files of sessions hold."""
    assert config_dir is not None
    files = [path async for path in anyio.Path(config_dir).glob("projects/*/*.jsonl")]
    return b"".join([await path.read_bytes() for path in files])
