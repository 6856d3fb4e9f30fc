"""Data directories of every released state are opened by the newest code; see tests/data/README.md."""

import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_server import Event, LiveClient, LiveServer, script, started_server

pytestmark = pytest.mark.e2e

ARCHIVES = sorted((Path(__file__).parents[1] / "data").glob("*.tar.xz"))
MEMU = {"memu": "server", "memu_url": "http://127.0.0.1:9"}
"""Deliveries to it stay in the outbox, as they did when the archives were made."""
CHANGING = {"status", "attempts", "last_error", "due_at", "delivered_at"}
"""What a delivery's next attempt changes."""
OF_NOTES = {"summary", "revision", "updated_at", "occurred_at"}
"""What changes when a note's file is read again, as sections; files of an archive have no time."""


@dataclass(frozen=True, slots=True)
class OldData:
    """A running server on the data of an older one, and what the older one told."""

    server: LiveServer
    archive: Path
    told: Mapping[str, Any]

    def answers(self, beginning: str) -> dict[str, Any]:
        """Return the old answers by path."""
        return {k: v for k, v in self.told["answers"].items() if k.startswith(beginning)}


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda path: path.name.split(".")[0])
def old(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OldData]:
    directory = tmp_path_factory.mktemp("old")
    with tarfile.open(request.param) as archive:
        archive.extractall(directory, filter="data")
    shutil.copytree(directory / "logs", directory / "archived")
    with started_server(directory, **MEMU) as server:
        told = json.loads((directory / "told.json").read_text("utf-8"))
        yield OldData(server, directory / "archived", told)


def missing(told: Any, now: Any, where: str = "") -> list[str]:
    """List what was told and is told no longer; fields may have been added."""
    if isinstance(told, dict) and isinstance(now, dict):
        return [
            lost
            for key, value in told.items()
            for lost in (
                missing(value, now[key], f"{where}.{key}") if key in now else [f"{where}.{key}"]
            )
        ]
    if isinstance(told, list) and isinstance(now, list) and len(told) == len(now):
        pairs = enumerate(zip(told, now, strict=True))
        return [lost for n, (a, b) in pairs for lost in missing(a, b, f"{where}[{n}]")]
    return [] if told == now else [f"{where}: {told!r} became {now!r}"]


def results(messages: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the turn results among a conversation's messages."""
    return [message["result"] for message in messages["messages"] if message["role"] == "assistant"]


async def settled(client: LiveClient, old: OldData) -> list[dict[str, Any]]:
    """Return the turn results of the conversation that was cut off, once its queue is empty."""
    path = f"/conversations/{old.told['conversations']['first']}/messages"
    return results(await client.wait_until(path, lambda now: all(results(now))))


async def test_every_message_and_result_is_there(old: OldData) -> None:
    async with old.server.client() as client:
        for path, told in old.answers("/conversations/").items():
            now = await client.get(path)
            count = len(told["messages"])
            assert missing(told["messages"], now["messages"][:count]) == []
        first = old.told["conversations"]["first"]
        assert (await client.get(f"/conversations/{first}"))["title"] == "Plover 与 grebe"


async def test_the_turns_cut_off_by_a_kill_are_told_and_run(old: OldData) -> None:
    async with old.server.client() as client:
        *_, running, queued = (await settled(client, old))[: len(TURNS)]
    assert (running["outcome"], running["stop_reason"]) == ("engine_failed", "engine_crash")
    assert [(call["summary"], call["status"]) for call in running["tools"]] == [("ls", "ok")]
    assert (queued["outcome"], queued["reply"]) == ("answered", "Answered later.")


TURNS = ("codeword", "write", "missing file", "denied", "cut off", "queued")
"""Of the conversation that make.py calls `first`."""


async def test_the_events_of_every_turn_can_be_replayed(old: OldData) -> None:
    async with old.server.client() as client:
        await settled(client, old)
        for path in old.answers("/conversations/"):
            conversation_id = path.split("/")[2]
            for result in results(await client.get(path)):
                events = await client.replay(conversation_id, result["turn_id"])
                mine = [event for event in events if event.data["turn_id"] == result["turn_id"]]
                assert [number(item) for item in mine] == list(range(1, len(mine) + 1))
                assert missing(result, mine[-1].data) == []


def number(event: Event) -> int:
    """Return an event's place in its turn."""
    return int(event.id.split(":")[1])


DOORS = {
    "export": "/conversations/{}/export",
    "exported lines": "/conversations/{}/export?format=jsonl",
    "items": "/openai/v1/conversations/{}/items?limit=100",
    "events": "/anthropic/v1/sessions/{}/events?limit=1000",
}


async def test_every_conversation_is_exported_and_read_by_other_protocols(old: OldData) -> None:
    async with old.server.client() as client:
        await settled(client, old)
        for path in old.answers("/conversations/"):
            told = results(await client.get(path))
            calls = [call for result in told for call in result["tools"]]
            read = {}
            for name, door in DOORS.items():
                answer = await client.http.get(door.format(path.split("/")[2]))
                assert answer.status_code == 200, name
                read[name] = answer
            for result in told:
                assert result["reply"].strip().splitlines()[-1] in read["export"].text
            assert all(f"({call['status']}" in read["export"].text for call in calls)
            items = [item for item in read["items"].json()["data"] if item["type"] == "mcp_call"]
            assert len(items) == len(calls)
            events = read["events"].json()["data"]
            uses = [event["id"] for event in events if event["type"] == "agent.tool_use"]
            ended = [event for event in events if event["type"] == "agent.tool_result"]
            assert len(uses) == len(calls)
            assert {event["tool_use_id"] for event in ended} <= set(uses)


async def test_every_log_is_served_as_it_was_written(old: OldData) -> None:
    async with old.server.client() as client:
        await settled(client, old)
        listed = {log["log_file"] for log in (await client.get("/logs?limit=100"))["logs"]}
        archived = sorted(old.archive.glob("*/*.jsonl"))
        assert archived
        for file in archived:
            name = str(file.relative_to(old.archive))
            served = await client.http.get(f"/logs/{name}")
            assert served.content.startswith(file.read_bytes())
            assert name in listed


async def test_what_was_remembered_is_there_and_found(old: OldData) -> None:
    """Items are the same to the letter, apart from what is read from a note's file again.

    Of deliveries only what the next attempt changes may differ.
    """
    items = old.answers("/memory/items/")
    async with old.server.client() as client:
        for path, told in items.items():
            changing = OF_NOTES if told["kind"] == "note" else set()
            kept = {key: value for key, value in told.items() if key not in changing}
            now_told = await client.get(path)
            assert missing(kept, now_told) == []
            assert now_told["summary"] == told["summary"].removeprefix("# ")
        found = (await client.get("/memory/search?q=grebe&limit=20"))["items"]
        assert {path.split("/")[-1] for path in items} <= {item["id"] for item in found}
        for path, told in old.answers("/memory/intents").items():
            now = {item["id"]: item for item in (await client.get(path))["intents"]}
            for intent in told["intents"]:
                assert missing(intent, now[intent["id"]]) == []
        for path, told in old.answers("/memory/outbox").items():
            now = {item["id"]: item for item in (await client.get(path))["deliveries"]}
            for delivery in told["deliveries"]:
                if delivery["item_id"].startswith("not_"):
                    continue  # a newer revision is delivered in its place
                if delivery["backend"] == "vectors":
                    continue  # without an embedding model there is no index to deliver to
                kept = {k: v for k, v in delivery.items() if k not in CHANGING}
                assert missing(kept, now[delivery["id"]]) == []


async def test_a_key_of_before_answers_with_the_turn_of_before(old: OldData) -> None:
    async with old.server.client() as client:
        first = await settled(client, old)
        again = await client.ask("my codeword is plover", idempotency_key="state-1")
        assert again == first[0]


async def test_an_old_conversation_goes_on_and_tells_that_its_session_is_lost(old: OldData) -> None:
    async with old.server.client() as client:
        failed = old.told["conversations"]["failed"]
        result = await client.ask(script({"text": "Here again."}), failed)
        assert (result["outcome"], result["reply"]) == ("answered", "Here again.")
        assert "session_lost" in [notice["code"] for notice in result["notices"]]
        fresh = await client.ask("remember that the grebe service listens on port 7432", failed)
        assert fresh["outcome"] == "answered"
        ready = await client.get("/readyz")
        assert [name for name, part in ready["parts"].items() if not part["ok"]] == []
