"""Schedules on the real server and the real agent; the time for which it was down is made up in its database."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.http.tokens import make_token
from tests.support.live_server import LiveClient, LiveServer, running_server, script
from tests.support.program import run_app

pytestmark = pytest.mark.e2e

FAR = (datetime.now(UTC) + timedelta(hours=12)).hour
DAILY = {"name": "Daily", "cron": f"0 {FAR} * * *", "time_zone": "UTC"}
SAID = script({"text": "Good morning."})


def make_due_blocking(server: LiveServer) -> None:
    """Set the schedules back by two days, as if the server had been down as long."""
    database = sqlite3.connect(server.data_dir / "candor.sqlite3")
    with database:
        database.execute(
            "UPDATE schedules SET due_at ="
            " strftime('%Y-%m-%dT%H:%M:00.000Z', due_at, '-2 days') WHERE due_at IS NOT NULL"
        )
    database.close()


async def turns_of(client: LiveClient, conversation_id: str) -> list[dict[str, Any]]:
    """Wait until a conversation has an ended turn of a schedule; return all such turns' results."""

    def is_done(page: Any) -> bool:
        states = [one["state"] for one in page["messages"] if one["role"] == "assistant"]
        return len(states) > 1 and set(states) == {"completed"}

    page = await client.wait_until(f"/conversations/{conversation_id}/messages", is_done)
    results = [one["result"] for one in page["messages"] if one["role"] == "assistant"]
    return [result for result in results if result["schedule"]]


async def test_what_was_missed_while_the_server_was_down_is_one_turn_that_says_so(
    tmp_path: Path,
) -> None:
    """The server is killed as soon as the turn is accepted: that is still the one turn."""
    async with running_server(tmp_path, schedules="on") as server, server.client() as client:
        place = (await client.ask("hello"))["conversation_id"]
        body = {**DAILY, "message": SAID, "conversation_id": place}
        schedule = await client.post("/schedules", status=201, **body)
        assert len(schedule["next_runs"]) == 3
    await anyio.to_thread.run_sync(make_due_blocking, server)
    async with running_server(tmp_path, schedules="on") as server, server.client() as client:
        messages = f"/conversations/{place}/messages"
        await client.wait_until(messages, lambda page: len(page["messages"]) > 2)
        await anyio.to_thread.run_sync(server.kill)
    async with running_server(tmp_path, schedules="on") as server, server.client() as client:
        (result,) = await turns_of(client, place)
        path = f"/schedules/{schedule['id']}"
        shown = await client.wait_until(path, lambda one: one["last_run"] is not None)
        sent = await client.post(f"{path}/run", status=202)
        again = await client.replay(place, sent["turn_id"])
    assert result["schedule"]["schedule_id"] == schedule["id"]
    assert result["schedule"]["missed"] == 2
    assert [one["code"] for one in result["notices"]].count("runs_missed") == 1
    assert shown["last_run"]["turn_id"] == result["turn_id"]
    assert shown["next_runs"] == schedule["next_runs"]
    assert again[-1].data["reply"] == "Good morning."


async def test_what_a_user_of_the_database_missed_runs_when_the_server_starts(
    tmp_path: Path,
) -> None:
    """And not a minute later, at the next look at what is due."""
    options: dict[str, Any] = {"schedules": "on", "users": "on"}
    run_app("user", "add", "ada", directory=tmp_path, **options)
    told = run_app("token", "add", "ada", directory=tmp_path, **options).stdout
    headers = {"Authorization": f"Bearer {told.split()[-1]}"}
    async with running_server(tmp_path, **options) as server, server.client() as client:
        client.http.headers.update(headers)
        schedule = await client.post("/schedules", status=201, **DAILY, message=SAID)
    await anyio.to_thread.run_sync(make_due_blocking, server)
    async with running_server(tmp_path, **options) as server, server.client() as client:
        client.http.headers.update(headers)
        path = f"/schedules/{schedule['id']}"
        shown = await client.wait_until(path, lambda one: one["last_run"] is not None)
    assert shown["last_run"]["missed"] == 2


async def test_the_schedules_of_a_user_without_a_token_do_not_run(tmp_path: Path) -> None:
    file, users = tmp_path / "tokens", {name: make_token(name) for name in ("ada", "bob")}
    file.touch(mode=0o600)
    file.write_text("\n".join(line for _, line in users.values()))
    options = {"schedules": "on", "tokens_file": file}
    places = {}
    async with running_server(tmp_path, **options) as server, server.client() as client:
        for name, (token, _) in users.items():
            client.http.headers["Authorization"] = f"Bearer {token}"
            places[name] = (await client.ask("hello"))["conversation_id"]
            body = {**DAILY, "message": SAID, "conversation_id": places[name]}
            await client.post("/schedules", status=201, **body)
    await anyio.to_thread.run_sync(make_due_blocking, server)
    file.write_text(users["ada"][1])
    async with running_server(tmp_path, **options) as server, server.client() as client:
        client.http.headers["Authorization"] = f"Bearer {users['ada'][0]}"
        (result,) = await turns_of(client, places["ada"])
        assert result["outcome"] == "answered"
    database = sqlite3.connect(server.data_dir / "candor.sqlite3")
    counts = database.execute("SELECT user_id, count(*) FROM turns GROUP BY user_id").fetchall()
    database.close()
    assert dict(counts) == {"ada": 2, "bob": 1}
