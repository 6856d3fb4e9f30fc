"""Two real servers on one PostgreSQL that answer as one."""

import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.fault_cluster import SKEWED_APP
from tests.support.later_versions import TAKING_AWAY
from tests.support.live_server import (
    LiveClient,
    LiveServer,
    bash,
    let_go,
    opened_pipe,
    running_server,
    script,
    started_server,
)
from tests.support.postgres import new_database_blocking
from tests.support.program import one_sentence, run_app
from tests.support.repositories import lay_repository

pytestmark = pytest.mark.e2e

ANY_PORT = "http://127.0.0.1:0"


@pytest.fixture
def url() -> Iterator[str]:
    with new_database_blocking("hunter2-of-the-nodes") as address:
        yield address


@dataclass(frozen=True, slots=True)
class Nodes:
    """Two servers, and a client of each."""

    one: LiveServer
    other: LiveServer
    here: LiveClient
    there: LiveClient


@asynccontextmanager
async def two_nodes(directory: Path, url: str, **settings: Any) -> AsyncIterator[Nodes]:
    """Start two servers on one database and one workspace."""
    shared = {
        "database_url": url,
        "workspace": directory / "ws",
        "node_ttl_s": 60,  # a busy machine gives a server no processor for seconds
        **settings,
    }
    async with (
        node(directory / "one", **shared) as one,
        node(directory / "other", **shared) as other,
        one.client() as here,
        other.client() as there,
    ):
        yield Nodes(one, other, here, there)


@asynccontextmanager
async def node(directory: Path, **settings: Any) -> AsyncIterator[LiveServer]:
    """Start a server that is not alone."""
    async with running_server(
        directory, node_url=ANY_PORT, interrupt_grace_s=2, **settings
    ) as server:
        yield server


async def test_either_server_answers_for_a_conversation_that_one_of_them_runs(
    tmp_path: Path, url: str
) -> None:
    """Messages, streams, interrupts, the queue and deletion: all at the server that has it not."""
    async with two_nodes(tmp_path, url) as nodes:
        here, there = nodes.here, nodes.there
        told = await here.ask("Remember the zebra.")
        where = told["conversation_id"]
        again = await there.ask("And again?", where)
        assert again["outcome"] == "answered"
        assert len(nodes.one.agents()) == 1
        assert not nodes.other.agents()
        assert await results(there, where) == [told, again]
        pipe = nodes.one.make_pipe("pipe")
        async with there.stream(script(bash("cat pipe")), where) as events:
            await events.until("tool.started")
            view = await there.get(f"/conversations/{where}")
            assert view["state"] == "running"
            waits = await there.http.post(
                "/chat", json={"message": "x", "conversation_id": where, "when_busy": "reject"}
            )
            assert waits.status_code == 409
            await let_go(pipe)
            last = (await events.rest())[-1]
            assert last.type == "turn.completed"
        nodes.one.make_pipe("other")
        async with there.stream(script(bash("cat other")), where) as events:
            await events.until("tool.started")
            await there.post(f"/conversations/{where}/interrupt", status=202)
            assert (await events.rest())[-1].data["outcome"] == "interrupted"
        gone = await there.http.delete(f"/conversations/{where}")
        assert gone.status_code == 204
        assert (await here.http.get(f"/conversations/{where}")).status_code == 404


async def test_sessions_of_the_vendors_client_are_listed_wherever_they_are_held(
    tmp_path: Path, url: str
) -> None:
    """A list that needs two holders can be passed on to none."""
    async with two_nodes(tmp_path, url) as nodes:
        told = [await client.ask("Hello.") for client in (nodes.here, nodes.there)]
        for client in (nodes.here, nodes.there):
            listed = (await client.get("/anthropic/v1/sessions"))["data"]
            assert {one["id"] for one in listed} == {one["conversation_id"] for one in told}


async def test_what_runs_at_one_server_is_read_live_at_the_other(tmp_path: Path, url: str) -> None:
    async with two_nodes(tmp_path, url) as nodes:
        here, there = nodes.here, nodes.there
        where = (await here.ask("Hello."))["conversation_id"]
        pipe = nodes.one.make_pipe("pipe")
        async with (
            there.follow(where) as read,
            here.stream(script(bash("cat pipe")), where) as events,
        ):
            await read.until("tool.started")
            await let_go(pipe)
            await read.until("turn.completed")
            await events.rest()
            assert [event.id for event in read.seen] == [event.id for event in events.seen]
            await here.http.delete(f"/conversations/{where}")
            assert (await read.until("error")).data["error"]["code"] == "conversation_deleted"


async def results(client: LiveClient, conversation_id: str) -> list[Any]:
    """Return the results of a conversation's turns."""
    messages = (await client.get(f"/conversations/{conversation_id}/messages"))["messages"]
    return [one["result"] for one in messages if "result" in one]


async def test_a_message_reaches_another_server_when_the_one_that_had_it_is_dead(
    tmp_path: Path, url: str
) -> None:
    """The process has ended on the same machine, so nobody waits for its lease."""
    async with two_nodes(tmp_path, url) as nodes:
        told = await nodes.here.ask("Hello.")
        where = told["conversation_id"]
        nodes.one.make_pipe("pipe")
        async with nodes.here.stream(script(bash("cat pipe")), where) as events:
            await events.until("tool.started")
            await anyio.to_thread.run_sync(nodes.one.kill)
        again = await nodes.there.ask("Are you there?", where)
        assert again["outcome"] == "answered"
        told_of = [one["outcome"] for one in await results(nodes.there, where)]
        assert told_of == ["answered", "engine_failed", "answered"]


async def test_a_message_that_a_full_server_passed_on_is_answered_though_its_taker_was_killed(
    tmp_path: Path, url: str
) -> None:
    """Without a key of the client; the turn ended when its server died, and is not begun again."""
    async with two_nodes(tmp_path, url, max_running_turns=1) as nodes:
        nodes.one.make_pipe("first")
        second = nodes.other.make_pipe("second")
        async with nodes.here.stream(script(bash("cat first"))) as events:
            await events.until("tool.started")
            told: list[Any] = []

            async def ask() -> None:
                told.append(await nodes.here.ask(script(bash("cat second"))))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await opened_pipe(second)
                await anyio.to_thread.run_sync(nodes.other.kill)
            listed = (await nodes.here.get("/conversations"))["conversations"]
            assert len(listed) == 2
            assert told[0]["outcome"] == "engine_failed"
            assert await results(nodes.here, told[0]["conversation_id"]) == told


async def test_a_conversation_goes_on_in_its_work_tree_at_another_server(
    tmp_path: Path, url: str
) -> None:
    await anyio.to_thread.run_sync(lambda: lay_repository(tmp_path / "ws", a_txt="a\n"))
    write = {"tool": "Write", "input": {"file_path": "b.txt", "content": "zebra\n"}}
    read = {"tool": "Read", "input": {"file_path": "b.txt"}}
    async with two_nodes(tmp_path, url, worktrees="on") as nodes:
        where = (await nodes.here.ask(script(write, {"text": "Written."})))["conversation_id"]
        await anyio.to_thread.run_sync(nodes.one.kill)
        again = await nodes.there.ask(script(read, {"echo": "messages"}), where)
        assert (again["outcome"], again["notices"]) == ("answered", [])
        call = f"/conversations/{where}/turns/{again['turn_id']}/tools/1"
        assert "zebra" in (await nodes.there.get(call))["output"]
        assert "Written." in again["reply"]
        assert not (tmp_path / "ws/b.txt").exists()
        new = await nodes.there.ask(script(write, {"text": "Written."}))
        shown = await nodes.there.get(f"/conversations/{new['conversation_id']}/worktree")
        assert [file["path"] for file in shown["files"]] == ["b.txt"]
        await nodes.there.post(f"/conversations/{where}/worktree/merge")
        assert (tmp_path / "ws/b.txt").read_text() == "zebra\n"


async def test_one_approval_of_the_workspaces_configuration_counts_at_all_servers(
    tmp_path: Path, url: str
) -> None:
    """It is given with a data directory that no server uses."""
    acting = tmp_path / "ws/.claude/settings.json"
    given: dict[str, Any] = {
        "database_url": url,
        "node_url": ANY_PORT,
        "workspace": tmp_path / "ws",
        "directory": tmp_path / "operator",
    }
    async with two_nodes(tmp_path, url) as nodes:
        acting.write_text('{"env": {"GREETING": "hello"}}', encoding="utf-8")
        for client in (nodes.here, nodes.there):
            told = await client.ask("Hello?")
            assert "policy trust" in told["reply"]
        trust = partial(run_app, "policy", "trust", "--yes", **given)
        done = await anyio.to_thread.run_sync(trust)
        assert "Approved as it stands" in done.stdout, done.stderr
        for server, client in ((nodes.one, nodes.here), (nodes.other, nodes.there)):
            with anyio.fail_after(30):
                while "settings.json" not in (server.data_dir / "trusted.json").read_text():  # noqa: ASYNC110  nothing tells
                    await anyio.sleep(0.05)
            assert (await client.ask("Hello."))["outcome"] == "answered"
        acting.write_text('{"env": {"GREETING": "bye"}}', encoding="utf-8")
        assert "policy trust" in (await nodes.there.ask("Hello?"))["reply"]
        audit = partial(run_app, "audit", **given)
        assert "configuration.approved" in (await anyio.to_thread.run_sync(audit)).stdout


def test_tools_that_are_accepted_with_one_data_directory_are_with_another(
    tmp_path: Path, url: str
) -> None:
    given: dict[str, Any] = {"database_url": url, "node_url": ANY_PORT}
    told = ["Reads a file.", {"type": "object"}]
    waiting = tmp_path / "one/data/mcp/waiting-tools.json"
    waiting.parent.mkdir(parents=True)
    waiting.write_text(json.dumps({"files": {"read": told}}), encoding="utf-8")
    done = run_app("mcp", "accept", "files", directory=tmp_path / "one", **given)
    assert "Accepted of files: read." in done.stdout, done.stderr
    done = run_app("mcp", "list", directory=tmp_path / "other", **given)
    assert "files read: accepted" in done.stdout, done.stderr


def test_a_server_that_is_not_alone_takes_a_database_that_others_share(
    tmp_path: Path, url: str
) -> None:
    done = run_app("demo", directory=tmp_path / "none", node_url=ANY_PORT)
    assert one_sentence(done.stderr).startswith("CANDOR_NODE_URL takes CANDOR_DATABASE_URL")
    with started_server(tmp_path / "alone", database_url=url):
        done = run_app("demo", directory=tmp_path / "one", database_url=url, node_url=ANY_PORT)
    assert one_sentence(done.stderr).startswith("Another Candor server uses the database")
    with started_server(tmp_path / "one", database_url=url, node_url=ANY_PORT):
        done = run_app("demo", directory=tmp_path / "alone", database_url=url)
    assert one_sentence(done.stderr).startswith("Another Candor server uses the database")


def test_doctor_names_the_settings_in_which_another_node_differs(tmp_path: Path, url: str) -> None:
    shared: dict[str, Any] = {
        "database_url": url,
        "workspace": tmp_path / "ws",
        "log_dir": tmp_path / "logs",
        "node_ttl_s": 60,
        "demo": "on",
    }
    with started_server(tmp_path / "one", node_url=ANY_PORT, **shared) as one:
        for approvals in ("off", "on"):
            given = {"node_url": "http://10.0.0.6:8000", "approvals": approvals, **shared}
            done = run_app("doctor", directory=tmp_path / "other", **given)
            told = f" note  Nodes with other settings (CANDOR_APPROVALS) run: {one.url}.\n"
            assert ("other settings" in done.stdout) == (approvals == "on"), done.stdout
            assert (told in done.stdout) == (approvals == "on")


def test_a_version_that_takes_away_what_others_need_starts_when_none_of_them_runs(
    tmp_path: Path, url: str
) -> None:
    later: dict[str, Any] = {
        "program": SKEWED_APP,
        "environ": {"CLOCK_SKEW_S": "0", "LATER_VERSIONS": TAKING_AWAY},
        "database_url": url,
        "node_url": ANY_PORT,
    }
    with started_server(tmp_path / "one", database_url=url, node_url=ANY_PORT) as one:
        done = run_app("demo", directory=tmp_path / "later", **later)
        assert "stop all of them, then start this one" in one_sentence(done.stderr)
        assert one.new_conversation()
    with started_server(tmp_path / "later", **later):
        pass
    done = run_app("demo", directory=tmp_path / "one", database_url=url, node_url=ANY_PORT)
    assert "written by a newer version" in one_sentence(done.stderr)


async def test_the_agents_of_a_paused_server_are_killed_before_it_goes_on(
    tmp_path: Path, url: str
) -> None:
    async with two_nodes(tmp_path, url, node_ttl_s=10) as nodes:
        pipe = nodes.one.make_pipe("pipe")
        async with nodes.here.stream(script(bash("cat pipe"))) as events:
            started = await events.until("tool.started")
            await opened_pipe(pipe)
            nodes.one.signal(signal.SIGSTOP)
            try:
                while nodes.one.agents():  # noqa: ASYNC110  nothing tells
                    await anyio.sleep(0.05)
                again = await nodes.there.ask("Go on.", started.data["conversation_id"])
                assert again["outcome"] == "answered"
            finally:
                nodes.one.signal(signal.SIGCONT)
        assert (await nodes.here.ask("And here?"))["outcome"] == "answered"
        nodes.one.tolerated += ["conversations_let_go"]
