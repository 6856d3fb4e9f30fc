"""Memory over HTTP, by the contract's names: real stores, no agent."""

from datetime import datetime
from pathlib import Path
from typing import Any

import anyio

from memory.clock import utc_now
from memory.intents.builders import Happening, intent_from_tool_result, intent_from_turn_received
from memory.outbox.delivery import Delivery, NewDelivery
from memory.outbox.store import enqueue_blocking
from tests.service.http.client import Client
from tests.service.http.stage import (
    LIMIT_S,
    Json,
    Stage,
    assert_error,
    one_client,
    staged,
    two_clients,
)

EPISODE: Json = {
    "episode_type": "bugfix",
    "title": "Nightly import failed with ERR_CONN_RESET",
    "scope": {"project_id": "billing", "workflow_id": "nightly"},
    "tags": ["import"],
    "source_refs": ["int_1"],
    "sections": {
        "context": "The nightly import of invoices broke off.",
        "pitfalls": "The proxy cuts connections after 60 s: ERR_CONN_RESET.",
        "recipe": "Set keepalive to 30 s and run the import again.",
    },
}


async def write(client: Client, **changes: Any) -> Json:
    answer = await client.post("/memory/episodes", json={**EPISODE, **changes})
    assert answer.status_code == 201, answer.text
    written: Json = answer.json()
    return written


async def find(client: Client, q: str, **params: Any) -> list[Json]:
    answer = await client.get("/memory/search", params={"q": q, **params})
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) >= {"items", "degraded"}
    items: list[Json] = answer.json()["items"]
    return items


async def test_an_episode_is_stored_found_shown_and_forgotten(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        written = await write(client, occurred_at="2025-03-01T10:00:00+08:00")
        assert written["status"] == "stored"
        assert (written["clipped"], written["redacted"]) == ([], 0)
        item_id = written["episode_id"]
        (found,) = await find(client, "why did the nightly import fail?")
        assert found["id"] == item_id
        assert set(found) >= {
            *("id", "kind", "title", "summary", "score", "why", "source", "occurred_at")
        }
        assert (found["kind"], found["title"]) == ("episode", EPISODE["title"])
        assert 0 < found["score"] <= 1
        shown = await client.read(f"/memory/items/{item_id}")
        assert shown["sections"] == EPISODE["sections"]
        assert shown["source_refs"] == ["int_1"]
        assert shown["occurred_at"] == "2025-03-01T02:00:00.000Z"
        assert shown["scope"] == EPISODE["scope"]
        assert "keepalive" in shown["body"]
        assert (await client.delete(f"/memory/items/{item_id}")).status_code == 204
        assert_error(await client.get(f"/memory/items/{item_id}"), 404, "not_found")
        assert_error(await client.delete(f"/memory/items/{item_id}"), 404, "not_found")
        assert await find(client, "why did the nightly import fail?") == []


async def test_what_became_of_an_episode_is_told_by_its_fields(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    masked = f"The token {secret} is used against http://10.1.2.3/admin to restart the import."
    long = "\n".join(f"line {n}: the import of invoice {n * 7919} went well" for n in range(3000))
    call = "mcp__ata__q takes {topic: string}."
    async with one_client(tmp_path) as client:
        first = await write(client)
        again = await write(client)
        assert (again["status"], again["episode_id"]) == ("merged", first["episode_id"])
        refused = await write(client, title="hi", sections={"context": "ok"})
        assert (refused["status"], refused["episode_id"]) == ("refused", None)
        assert refused["reason"]
        hidden = await write(client, title="Restarting the import", sections={"recipe": masked})
        assert hidden["redacted"] >= 2
        shown = (await client.get(f"/memory/items/{hidden['episode_id']}")).text
        assert secret not in shown
        assert "10.1.2.3" not in shown
        cut = await write(client, title="Invoices", sections={"actions": long, "recipe": "Run it."})
        (clipped,) = cut["clipped"]
        assert (clipped["section"], clipped["chars"] > 1000) == ("actions", True)
        never = await write(client, title="Orders", sections={"decisions": call})
        assert (never["status"], never["reason"]) == ("refused", "never_saved")
        (notice,) = never["notices"]
        assert (notice["code"], "left out" in notice["message"]) == ("never_saved", True)


async def test_no_query_is_an_error(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        await write(client)
        for query in ('"', "* OR NEAR(", "AND", "a" * 5000, "🙂", "'; DROP TABLE items"):
            assert await find(client, query) == []


async def test_labels_narrow_and_never_widen(tmp_path: Path) -> None:
    async with two_clients(tmp_path) as (ada, bob):
        await write(ada)
        assert len(await find(ada, "nightly import", project_id="billing")) == 1
        assert await find(ada, "nightly import", project_id="shop") == []
        assert await find(ada, "nightly import", project_id="billing", workflow_id="x") == []
        for params in ({}, {"user_id": "ada"}, {"project_id": "billing"}):
            assert await find(bob, "nightly import", **params) == []
        asked = {"queries": ["nightly import"], "scope": {"user_id": "ada"}}
        pack = (await bob.post("/memory/context", json=asked)).json()
        assert (pack["items"], pack["text"]) == ([], "")


async def test_a_context_pack_has_the_contracts_parts_within_its_budget(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for n in range(12):
            sections = {"recipe": f"The nightly import of shop {n * 13} needs keepalive {n * 17}."}
            await write(client, title=f"Import of shop {n * 13}", sections=sections, tags=[f"s{n}"])
        asked = {"queries": ["nightly import keepalive"], "mode": "rag", "budget_chars": 1500}
        pack = (await client.post("/memory/context", json=asked)).json()
        assert set(pack) == {
            *("categories", "items", "resources", "held_back", "next_step_query", "degraded"),
            "text",
        }
        assert 0 < len(pack["text"]) <= 1500
        assert 0 < len(pack["items"]) < 12
        assert pack["next_step_query"]
        assert all(item["id"] in pack["text"] for item in pack["items"])


async def told(stage: Stage, owner_id: str, turn_id: str, tool: str) -> None:
    at = Happening(
        owner_id=owner_id, occurred_at=utc_now(), conversation_id="cnv_1", turn_id=turn_id
    )
    await stage.memory.recorder.record_intents(
        [
            intent_from_turn_received(at, message="secret plan of " + owner_id),
            intent_from_tool_result(
                at, tool_name=tool, status="ok", tool_use_id="t1", args={}, result="done"
            ),
        ]
    )


async def test_the_chronicle_is_listed_newest_first_page_by_page_and_ones_own(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        for n in range(3):
            await told(stage, "ada", f"trn_{n}", "Bash")
        first = await ada.read("/memory/intents?limit=4")
        assert [intent["key"] for intent in first["intents"]] == [
            "tool.Bash.ok",
            "turn.received",
        ] * 2
        rest = await ada.read(f"/memory/intents?cursor={first['next_cursor']}")
        assert [intent["turn_id"] for intent in rest["intents"]] == ["trn_0", "trn_0"]
        assert rest["next_cursor"] is None
        keyed = await ada.read("/memory/intents?key=tool.Bash.ok&conversation_id=cnv_1")
        assert len(keyed["intents"]) == 3
        assert await ada.read("/memory/intents?key=tool.") == keyed | {"next_cursor": None}
        none = await ada.read("/memory/intents?key=tool.Read.ok&conversation_id=cnv_1")
        assert none == {"intents": [], "next_cursor": None}
        family = await ada.get("/memory/intents", params={"key": "tool.{tool_name}.ok"})
        assert family.json()["intents"] == keyed["intents"]
        assert (await ada.get("/memory/intents?key=tool.Bash.won")).status_code == 422
        one = keyed["intents"][0]
        assert await ada.read(f"/memory/intents/{one['id']}") == one
        assert_error(await bob.get(f"/memory/intents/{one['id']}"), 404, "not_found")
        fields = (await ada.read("/memory/intents/fields?key=tool.Bash.ok"))["fields"]
        assert {"name": "tool_name", "type": "text", "seen": 3} in fields
        assert (await bob.read("/memory/intents/fields?key=tool.Bash.ok"))["fields"] == []
        unknown = await ada.get("/memory/intents?conversation_id=cnv_none")
        assert_error(unknown, 404, "not_found")
        assert (await bob.read("/memory/intents"))["intents"] == []


UNFIT: list[tuple[Json, str]] = [
    ({"episode_type": "novel"}, "episode_type"),
    ({"title": "two\nlines"}, "title"),
    ({"title": " "}, "title"),
    ({"sections": {}}, "sections"),
    ({"sections": {"context": "  "}}, "sections"),
    ({"sections": {"secrets": "x"}}, "sections.secrets"),
    ({"occurred_at": "yesterday"}, "occurred_at"),
    ({"occurred_at": "2026-11-20T10:00:00"}, "occurred_at"),
    ({"occurred_at": 1700000000}, "occurred_at"),
    ({"occurred_at": "5"}, "occurred_at"),
    ({"occurred_at": "2026-13-01T00:00:00Z"}, "occurred_at"),
    ({"occurred_at": "2026-01-01T25:00:00Z"}, "occurred_at"),
    ({"occurred_at": "9999-12-31T23:59:59-12:00"}, "occurred_at"),
    ({"occurred_at": "0001-01-01T00:00:00+12:00"}, "occurred_at"),
    ({"tags": "one"}, "tags"),
    ({"scope": {"project_id": 7}}, "scope.project_id"),
]


async def test_an_episode_that_cannot_be_is_told_by_its_field(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        asked = {"queries": ["x"], "scope": {"owner_id": "ada"}}
        answer = await client.post("/memory/context", json=asked)
        assert "owner_id" in assert_error(answer, 422, "invalid_request")["message"]
        for change, field in UNFIT:
            answer = await client.post("/memory/episodes", json={**EPISODE, **change})
            error = assert_error(answer, 422, "invalid_request")
            assert error["details"]["field"] == field
            assert "is not valid" not in error["message"]


async def test_a_dead_delivery_is_listed_and_tried_again(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        now = utc_now()
        taken = await _taken_delivery(stage, now)
        await stage.memory.outbox.failed(taken, "It is full.", now, due_at=None)
        (dead,) = (await ada.read("/memory/outbox?status=dead"))["deliveries"]
        assert (dead["last_error"], dead["attempts"]) == ("It is full.", 1)
        assert_error(await bob.post(f"/memory/outbox/{dead['id']}/retry"), 404, "not_found")
        again = (await ada.post(f"/memory/outbox/{dead['id']}/retry")).json()
        assert (again["status"], again["attempts"]) == ("pending", 0)
        for unknown in ("0", "x", "9" * 30, "-1"):
            answer = await ada.post(f"/memory/outbox/{unknown}/retry")
            assert_error(answer, 404, "not_found")


async def test_a_delivery_that_was_made_is_not_tried_again(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",)) as stage:
        ada, now = stage.client("ada"), utc_now()
        taken = await _taken_delivery(stage, now)
        await stage.memory.outbox.delivered(taken, None, now)
        listed = await ada.read("/memory/outbox?status=delivered")
        (made,) = listed["deliveries"]
        answer = await ada.post(f"/memory/outbox/{made['id']}/retry")
        assert_error(answer, 409, "already_delivered")
        assert await ada.read("/memory/outbox?status=delivered") == listed


async def _taken_delivery(stage: Stage, now: datetime) -> Delivery:
    """Enqueue a delivery of ada's; return it as its backend gets it."""
    new = NewDelivery(backend="memu", operation="put", item_id="epi_x", owner_id="ada", revision=1)
    await stage.memory.database.write(lambda writer: enqueue_blocking(writer, [new], now))
    (taken,) = await stage.memory.outbox.due("memu", now, limit=1, until=now)
    return taken


async def test_what_is_told_of_conversations_is_recorded_in_the_background(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        first = await client.new_conversation()
        body = {"conversation_id": first}
        second = (await client.post("/new-conversation", json=body)).json()["conversation_id"]
        with anyio.fail_after(LIMIT_S):
            while len(await _conversations(client)) < 2:
                await anyio.lowlevel.checkpoint()
        reset, started = await _conversations(client)
        assert (started["key"], started["conversation_id"]) == ("conversation.started", first)
        assert (reset["key"], reset["conversation_id"]) == ("conversation.reset", second)
        assert reset["payload"]["from_conversation_id"] == first


async def _conversations(client: Client) -> list[Json]:
    found: list[Json] = (await client.read("/memory/intents?key=conversation."))["intents"]
    return found
