"""Logs over HTTP: the user's own, by their listed names alone."""

import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import anyio

from tests.service.http.client import Client
from tests.service.http.stage import Json, Stage, assert_error, staged
from tests.service.http.wired import HOST, raw
from tests.support.asgi import served


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


async def _turn(stage: Stage, client: Client, at: int, **more: Any) -> Json:
    turn: Json = await client.say("a")
    await anyio.to_thread.run_sync(lambda: _write(stage, turn, at, **more))
    return turn


async def test_logs_are_listed_newest_first_page_by_page(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        turns = [await _turn(stage, client, at) for at in range(5)]
        found = await client.pages("/logs", "logs", limit=2)
        assert [entry["turn_id"] for entry in found] == [turn["turn_id"] for turn in turns[::-1]]
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
        assert [log["turn_id"] for log in some["logs"]] == [turns[2]["turn_id"]]


async def test_a_list_holds_the_users_own_logs_alone(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        own = []
        for at in range(0, 12, 2):
            own.append(await _turn(stage, ada, at))
            await _turn(stage, bob, at + 1)
        listed = await ada.read("/logs", limit=4)
        assert [log["turn_id"] for log in listed["logs"]] == [
            turn["turn_id"] for turn in own[:1:-1]
        ]
        rest = await ada.read("/logs", cursor=listed["next_cursor"])
        assert [log["turn_id"] for log in rest["logs"]] == [own[1]["turn_id"], own[0]["turn_id"]]
        assert_error(await bob.get(f"/logs/{own[0]['log_file']}"), 404, "not_found")


async def test_a_log_is_given_as_json_lines_whatever_its_file_holds(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        turn = await _turn(stage, client, 1, lines=5000, tail='{"torn": ')
        answer = await client.get(f"/logs/{turn['log_file']}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert answer.headers["x-content-type-options"] == "nosniff"
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert [line["seq"] for line in lines[:-1]] == list(range(1, 5001))
        assert lines[-1]["kind"] == "error"


NOT_LISTED = [
    *("{turn}.jsonl", "2026-11-21/{turn}.jsonl", "2026-11-20/{turn}", "2026-11-20/link.jsonl", ""),
    *("2026-11-20/%2e/{turn}.jsonl", "2026-11-20%2F..%2F2026-11-20%2F{turn}.jsonl"),
    *("2026-11-20/{turn}.jsonl%00", "%2e%2e/logs/2026-11-20/{turn}.jsonl", "..%5C{turn}.jsonl"),
    *("/2026-11-20/{turn}.jsonl", "2026-11-20%5C{turn}.jsonl", "２０２６-11-20/{turn}.jsonl"),
]


async def test_a_name_that_is_not_listed_is_not_found(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        turn = await _turn(stage, client, 1)
        for name in NOT_LISTED:
            answer = await client.get("/logs/" + name.format(turn=turn["turn_id"]))
            assert_error(answer, 404, "not_found")


def _plant_links(stage: Stage, turn: Json, secret: Path) -> list[str]:
    """Put links where logs are looked for; each would give the secret if it were followed."""
    logs, mine = stage.settings.log_dir, turn["turn_id"]
    elsewhere = secret.parent / "days" / "2026-11-19"
    elsewhere.mkdir(parents=True)
    (elsewhere / f"{mine}.jsonl").write_text(secret.read_text(encoding="utf-8"), encoding="utf-8")
    (logs / "2026-11-19").symlink_to(elsewhere, target_is_directory=True)
    (logs / "2026-11-18").mkdir()
    (logs / "2026-11-18" / f"{mine}.jsonl").symlink_to(secret)
    (logs / "2026-11-17").mkdir()
    (logs / "2026-11-17" / f"{mine}.jsonl").mkdir()
    os.mkfifo(logs / "2026-11-17" / "trn_pipe.jsonl")
    return [f"2026-11-{day}/{mine}.jsonl" for day in (19, 18, 17)]


async def test_a_link_among_the_logs_leads_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text('{"seq":1,"text":"outside"}\n', encoding="utf-8")
    async with staged(tmp_path) as stage:
        client = stage.client()
        turn = await _turn(stage, client, 1)
        names = await anyio.to_thread.run_sync(lambda: _plant_links(stage, turn, secret))
        for name in names:
            answer = await client.get(f"/logs/{name}")
            assert_error(answer, 404, "not_found")
            assert "outside" not in answer.text
        listed = (await client.read("/logs"))["logs"]
        assert [entry["log_file"] for entry in listed] == [turn["log_file"]]


PREFIXES = [
    *("..%2f", "..%2Flogs%2F", "%2e%2e/", "%2e%2e%2f", "..%5c", "....//", "//", "%2f", "%00"),
    *("%252e%252e%252f", "..%c0%af", "%c0%ae%c0%ae/", "..%ef%bc%8f", "file:///", "~/", "./"),
    *("C:%5c", "%5c%5chost%5cshare%5c", "2026-11-20/../", "2026-11-20//", "%20", "%0a"),
]


async def test_no_spelling_leaves_the_list(tmp_path: Path) -> None:
    """The path goes over the wire as it stands; a client library would tidy it up before."""
    (tmp_path / "secret.jsonl").write_text('{"text":"outside"}\n', encoding="utf-8")
    async with staged(tmp_path) as stage, served(stage.app) as port, raw(port) as client:
        turn = await _turn(stage, stage.client(), 1)
        for prefix, name in product(PREFIXES, (turn["log_file"], "secret.jsonl", "etc/passwd")):
            target = f"/logs/{prefix}{name}"
            await client.send(f"GET {target} HTTP/1.1\r\n".encode() + HOST + b"\r\n")
            answer = await client.expect(404)
            assert answer.json["error"]["code"] == "not_found", target


async def test_the_log_of_a_deleted_conversation_is_nobodys(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        turn = await _turn(stage, client, 1)
        await client.delete(f"/conversations/{turn['conversation_id']}")
        assert_error(await client.get(f"/logs/{turn['log_file']}"), 404, "not_found")
        assert await client.read("/logs") == {"logs": [], "next_cursor": None}
