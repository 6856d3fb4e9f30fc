"""Logs over HTTP: the user's own, by their listed names alone."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.service.http.stage import Json, Stage, assert_error, staged


def _write(stage: Stage, turn: Json, at: int, lines: int = 2, tail: str = "") -> None:
    path = stage.settings.log_dir / turn["log_file"]
    path.parent.mkdir(parents=True, exist_ok=True)
    head: dict[str, Any] = {
        "ts": f"2026-11-20T10:00:{at:02}.000Z",
        "seq": 1,
        "conversation_id": turn["conversation_id"],
        "turn_id": turn["turn_id"],
    }
    text = ""
    for seq in range(1, lines):
        line = {**head, "seq": seq, "kind": "message", "text": "x" * 100}
        text += json.dumps(line, separators=(",", ":")) + "\n"
    last = {**head, "seq": lines, "kind": "response", "outcome": "answered"}
    text += json.dumps(last, separators=(",", ":")) + "\n"
    path.write_text(text + tail)


async def _turn(stage: Stage, client: httpx.AsyncClient, at: int, **more: Any) -> Json:
    turn: Json = (await client.post("/chat", json={"message": "a"})).json()
    await anyio.to_thread.run_sync(lambda: _write(stage, turn, at, **more))
    return turn


async def test_logs_are_listed_newest_first_page_by_page(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        turns = [await _turn(stage, client, at) for at in range(5)]
        found: list[Json] = []
        cursor = ""
        while True:
            answer = await client.get("/logs", params={"limit": 2, "cursor": cursor})
            page = answer.json()
            found += page["logs"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert [one["turn_id"] for one in found] == [one["turn_id"] for one in turns[::-1]]
        assert found[0] == {
            "log_file": turns[4]["log_file"],
            "conversation_id": turns[4]["conversation_id"],
            "turn_id": turns[4]["turn_id"],
            "started_at": "2026-11-20T10:00:04.000Z",
            "size_bytes": (stage.settings.log_dir / turns[4]["log_file"]).stat().st_size,
            "outcome": "answered",
        }
        only = {"conversation_id": turns[2]["conversation_id"]}
        some = (await client.get("/logs", params=only)).json()
        assert [one["turn_id"] for one in some["logs"]] == [turns[2]["turn_id"]]


async def test_a_list_holds_the_users_own_logs_alone(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        own = []
        for at in range(0, 12, 2):
            own.append(await _turn(stage, ada, at))
            await _turn(stage, bob, at + 1)
        listed = (await ada.get("/logs", params={"limit": 4})).json()
        assert [one["turn_id"] for one in listed["logs"]] == [one["turn_id"] for one in own[:1:-1]]
        rest = (await ada.get("/logs", params={"cursor": listed["next_cursor"]})).json()
        assert [one["turn_id"] for one in rest["logs"]] == [own[1]["turn_id"], own[0]["turn_id"]]
        assert_error(await bob.get(f"/logs/{own[0]['log_file']}"), 404, "not_found")


async def test_a_log_is_given_as_json_lines_whatever_its_file_holds(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        turn = await _turn(stage, client, 1, lines=5000, tail='{"torn": ')
        answer = await client.get(f"/logs/{turn['log_file']}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert answer.headers["x-content-type-options"] == "nosniff"
        lines = [json.loads(one) for one in answer.text.splitlines()]
        assert [one["seq"] for one in lines[:-1]] == list(range(1, 5001))
        assert lines[-1]["kind"] == "error"


@pytest.mark.parametrize(
    "name",
    [
        "{turn}.jsonl",
        "2026-11-21/{turn}.jsonl",
        "2026-11-20/{turn}",
        "2026-11-20/%2e/{turn}.jsonl",
        "2026-11-20%2F..%2F2026-11-20%2F{turn}.jsonl",
        "2026-11-20/{turn}.jsonl%00",
        "%2e%2e/logs/2026-11-20/{turn}.jsonl",
        "/2026-11-20/{turn}.jsonl",
        "..%5C{turn}.jsonl",
        "2026-11-20%5C{turn}.jsonl",
        "2026-11-20/link.jsonl",
        "",
    ],
)
async def test_a_name_that_is_not_listed_is_not_found(tmp_path: Path, name: str) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        turn = await _turn(stage, client, 1)
        answer = await client.get("/logs/" + name.format(turn=turn["turn_id"]))
        assert_error(answer, 404, "not_found")


async def test_the_log_of_a_deleted_conversation_is_nobodys(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        turn = await _turn(stage, client, 1)
        await client.delete(f"/conversations/{turn['conversation_id']}")
        assert_error(await client.get(f"/logs/{turn['log_file']}"), 404, "not_found")
        assert (await client.get("/logs")).json() == {"logs": [], "next_cursor": None}
