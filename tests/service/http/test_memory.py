"""Memory over HTTP, by the contract's names: real stores, no agent."""

from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from memory.clock import utc_now
from memory.intents.builders import Happening, intent_from_tool_result, intent_from_turn_received
from memory.outbox.delivery import NewDelivery
from memory.stores.sqlite.outbox import enqueue_blocking
from tests.service.http.stage import LIMIT_S, Json, Stage, assert_error, staged

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
CHINESE: Json = {
    "episode_type": "howto",
    "title": "部署网关",
    "sections": {"recipe": "部署前先运行 make check，再重启网关。"},
}


async def write(client: httpx.AsyncClient, **changes: Any) -> Json:
    answer = await client.post("/memory/episodes", json={**EPISODE, **changes})
    assert answer.status_code == 201, answer.text
    written: Json = answer.json()
    return written


async def find(client: httpx.AsyncClient, q: str, **params: Any) -> list[Json]:
    answer = await client.get("/memory/search", params={"q": q, **params})
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) >= {"items", "degraded"}
    items: list[Json] = answer.json()["items"]
    return items


async def test_an_episode_is_stored_found_shown_and_forgotten(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        written = await write(client)
        assert written["status"] == "stored"
        assert (written["clipped"], written["redacted"]) == ([], 0)
        item_id = written["episode_id"]
        (found,) = await find(client, "why did the nightly import fail?")
        assert found["id"] == item_id
        assert set(found) >= {
            *("id", "kind", "title", "summary", "score", "why", "source", "occurred_at"),
        }
        assert (found["kind"], found["title"]) == ("episode", EPISODE["title"])
        assert 0 < found["score"] <= 1
        shown = (await client.get(f"/memory/items/{item_id}")).json()
        assert shown["sections"] == EPISODE["sections"]
        assert shown["source_refs"] == ["int_1"]
        assert shown["scope"] == EPISODE["scope"]
        assert "keepalive" in shown["body"]
        assert (await client.delete(f"/memory/items/{item_id}")).status_code == 204
        assert_error(await client.get(f"/memory/items/{item_id}"), 404, "not_found")
        assert_error(await client.delete(f"/memory/items/{item_id}"), 404, "not_found")
        assert await find(client, "why did the nightly import fail?") == []


async def test_the_chronicle_keeps_only_that_something_was_forgotten(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        item_id = (await write(client))["episode_id"]
        await client.delete(f"/memory/items/{item_id}")
        (told,) = (await client.get("/memory/intents?key=memory.forgotten")).json()["intents"]
        assert "import" not in str(told).lower()
        assert item_id not in str(told)


async def test_forgetting_is_told_to_every_place_of_delivery(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        item_id = (await write(client))["episode_id"]
        (put,) = (await client.get("/memory/outbox?status=pending")).json()["deliveries"]
        assert (put["operation"], put["item_id"], put["backend"]) == ("put", item_id, "vectors")
        await client.delete(f"/memory/items/{item_id}")
        (forget,) = (await client.get("/memory/outbox")).json()["deliveries"]
        assert (forget["operation"], forget["item_id"]) == ("forget", item_id)


async def test_a_like_episode_goes_into_the_one_that_is_there(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        first = await write(client)
        again = await write(client)
        assert again["status"] == "merged"
        assert again["episode_id"] == first["episode_id"]
        assert len(await find(client, "nightly import")) == 1


async def test_the_worthless_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        written = await write(client, title="hi", sections={"context": "ok"})
        assert written["status"] == "refused"
        assert written["episode_id"] is None
        assert written["reason"]
        assert (await client.get("/memory/outbox")).json()["deliveries"] == []


async def test_sentences_that_are_never_saved_are_told_and_the_others_are_kept(
    tmp_path: Path,
) -> None:
    kept = "OrderService::find got a new parameter tenant_id in release 4.2. 支付网关失败的调用会重试三次。"
    call = "mcp__ata__q takes {topic: string}."
    async with staged(tmp_path) as stage:
        client = stage.client()
        written = await write(client, title="Orders", sections={"decisions": f"{kept}\n{call}"})
        assert written["status"] == "stored"
        (notice,) = written["notices"]
        assert notice["code"] == "never_saved"
        assert notice["message"].startswith("1 sentence was left out: ")
        shown = (await client.get(f"/memory/items/{written['episode_id']}")).json()
        assert shown["sections"]["decisions"] == kept
        refused = await write(client, title="Orders", sections={"decisions": call})
        assert (refused["status"], refused["reason"]) == ("refused", "never_saved")
        assert [one["code"] for one in refused["notices"]] == ["never_saved"]
        assert (await write(client, title="Orders", sections={"decisions": "x y"}))["notices"] == []


async def test_secrets_and_inner_addresses_are_masked_and_counted(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    text = f"The token {secret} is used against http://10.1.2.3/admin to restart the import."
    async with staged(tmp_path) as stage:
        client = stage.client()
        written = await write(client, title="Restarting the import", sections={"recipe": text})
        assert written["redacted"] >= 2
        answer = await client.get(f"/memory/items/{written['episode_id']}")
        assert secret not in answer.text
        assert "10.1.2.3" not in answer.text


async def test_what_was_clipped_is_told_by_section(tmp_path: Path) -> None:
    long = "\n".join(f"line {n}: the import of invoice {n * 7919} went well" for n in range(3000))
    async with staged(tmp_path) as stage:
        written = await write(stage.client(), sections={"actions": long, "recipe": "Run it."})
        (clipped,) = written["clipped"]
        assert clipped["section"] == "actions"
        assert clipped["chars"] > 1000


@pytest.mark.parametrize("query", ["部署", "网关", "部署网关", "怎么部署？", "重启 网关"])
async def test_chinese_is_found_by_words_of_two_characters(tmp_path: Path, query: str) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        await write(client)
        written = await write(client, **CHINESE)
        assert [one["id"] for one in await find(client, query)] == [written["episode_id"]]


@pytest.mark.parametrize(
    "query", ['"', "* OR NEAR(", "AND", "a" * 5000, "🙂", "'; DROP TABLE items"]
)
async def test_no_query_is_an_error(tmp_path: Path, query: str) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        await write(client)
        assert await find(client, query) == []


async def test_labels_narrow_and_never_widen(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        await write(ada)
        assert len(await find(ada, "nightly import", project_id="billing")) == 1
        assert await find(ada, "nightly import", project_id="shop") == []
        assert await find(ada, "nightly import", project_id="billing", workflow_id="x") == []
        for params in ({}, {"user_id": "ada"}, {"project_id": "billing"}):
            assert await find(bob, "nightly import", **params) == []
        asked = {"queries": ["nightly import"], "scope": {"user_id": "ada"}}
        pack = (await bob.post("/memory/context", json=asked)).json()
        assert (pack["items"], pack["text"]) == ([], "")


async def test_the_scope_of_a_body_cannot_name_an_owner(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        body = {"queries": ["x"], "scope": {"owner_id": "ada"}}
        answer = await stage.client().post("/memory/context", json=body)
        assert "owner_id" in assert_error(answer, 422, "invalid_request")["message"]


async def test_a_context_pack_has_the_contracts_parts_within_its_budget(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
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
        assert all(one["id"] in pack["text"] for one in pack["items"])


async def test_a_model_that_is_not_there_is_named_and_the_heuristic_stands(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        await write(client)
        asked = {"queries": ["nightly import"], "mode": "llm"}
        pack = (await client.post("/memory/context", json=asked)).json()
        assert "selector_disabled" in pack["degraded"]
        assert len(pack["items"]) == 1


SCHEMA: Json = {
    "episode_type": "howto",
    "title": "article-list-query",
    "sections": {
        "recipe": "Notes on article-list-query: the gateway answers within 3 s. Its call format was "
        "guessed as topic plus page."
    },
}


async def test_stale_knowledge_of_a_conversations_tools_is_held_back(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        chat = (await client.post("/chat", json={"message": "hello"})).json()
        stage.tools.note(chat["conversation_id"], "mcp__ata__article-list-query")
        note = stage.settings.workspace / "memory" / "tool.md"
        await anyio.Path(note.parent).mkdir(parents=True)
        await anyio.Path(note).write_text("# article-list-query\nParameter schema: topic, page.\n")
        await stage.memory.notes.scan()
        asked: Json = {"queries": ["article-list-query schema"]}
        open_pack = (await client.post("/memory/context", json=asked)).json()
        assert len(open_pack["items"]) == 1
        asked["conversation_id"] = chat["conversation_id"]
        pack = (await client.post("/memory/context", json=asked)).json()
        assert (pack["items"], pack["text"]) == ([], "")
        assert [one["reason"] for one in pack["held_back"]] == ["stale_tool_schema"]


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
        first = (await ada.get("/memory/intents?limit=4")).json()
        assert [one["key"] for one in first["intents"]] == ["tool.Bash.ok", "turn.received"] * 2
        rest = (await ada.get(f"/memory/intents?cursor={first['next_cursor']}")).json()
        assert [one["turn_id"] for one in rest["intents"]] == ["trn_0", "trn_0"]
        assert rest["next_cursor"] is None
        keyed = (await ada.get("/memory/intents?key=tool.Bash.ok&conversation_id=cnv_1")).json()
        assert len(keyed["intents"]) == 3
        assert (await ada.get("/memory/intents?key=tool.")).json() == keyed | {"next_cursor": None}
        none = (await ada.get("/memory/intents?key=tool.Read.ok&conversation_id=cnv_1")).json()
        assert none == {"intents": [], "next_cursor": None}
        unknown = await ada.get("/memory/intents?conversation_id=cnv_none")
        assert_error(unknown, 404, "not_found")
        assert (await bob.get("/memory/intents")).json()["intents"] == []


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/memory/intents?cursor=x", "cursor"),
        ("/memory/outbox?status=lost", "status"),
        ("/memory/outbox?cursor=-1", "cursor"),
        ("/memory/search?q=x&kinds=note,thought", "kinds"),
        ("/memory/search", "q"),
        ("/memory/search?q=x&limit=0", "limit"),
        ("/memory/search?q=x&user_id=%20", "user_id"),
        ("/memory/search?q=x&workflow_id=%00", "workflow_id"),
        ("/memory/search?q=x&environment=%00", "environment"),
    ],
)
async def test_a_wrong_parameter_is_named(tmp_path: Path, path: str, field: str) -> None:
    async with staged(tmp_path) as stage:
        error = assert_error(await stage.client().get(path), 422, "invalid_request")
        assert error["details"]["field"] == field


@pytest.mark.parametrize(
    ("change", "field"),
    [
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
        ({"tags": "one"}, "tags"),
        ({"occurred_at": "9999-12-31T23:59:59-12:00"}, "occurred_at"),
        ({"occurred_at": "0001-01-01T00:00:00+12:00"}, "occurred_at"),
        ({"scope": {"project_id": 7}}, "scope.project_id"),
    ],
)
async def test_an_episode_that_cannot_be_is_told_by_its_field(
    tmp_path: Path, change: Json, field: str
) -> None:
    async with staged(tmp_path) as stage:
        answer = await stage.client().post("/memory/episodes", json={**EPISODE, **change})
        error = assert_error(answer, 422, "invalid_request")
        assert error["details"]["field"] == field
        assert "is not valid" not in error["message"]


async def test_the_moment_of_an_episode_is_kept(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        written = await write(client, occurred_at="2025-03-01T10:00:00+08:00")
        shown = (await client.get(f"/memory/items/{written['episode_id']}")).json()
        assert shown["occurred_at"] == "2025-03-01T02:00:00.000Z"


async def test_a_dead_delivery_is_listed_and_tried_again(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        now = utc_now()
        new = NewDelivery(
            backend="memu", operation="put", item_id="epi_x", owner_id="ada", revision=1
        )
        await stage.memory.database.write(lambda writer: enqueue_blocking(writer, [new], now))
        (taken,) = await stage.memory.outbox.due("memu", now, limit=1, until=now)
        await stage.memory.outbox.failed(taken, "It is full.", now, due_at=None)
        (dead,) = (await ada.get("/memory/outbox?status=dead")).json()["deliveries"]
        assert (dead["last_error"], dead["attempts"]) == ("It is full.", 1)
        assert_error(await bob.post(f"/memory/outbox/{dead['id']}/retry"), 404, "not_found")
        again = (await ada.post(f"/memory/outbox/{dead['id']}/retry")).json()
        assert (again["status"], again["attempts"]) == ("pending", 0)
        for unknown in ("0", "x", "9" * 30, "-1"):
            answer = await ada.post(f"/memory/outbox/{unknown}/retry")
            assert_error(answer, 404, "not_found")


async def test_health_names_each_place_of_delivery(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        answer = await stage.client().get("/memory/health")
        assert answer.status_code == 200
        assert answer.json() == {"backends": []}


async def test_what_is_told_of_conversations_is_recorded_in_the_background(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        first = (await client.post("/new-conversation")).json()["conversation_id"]
        body = {"conversation_id": first}
        second = (await client.post("/new-conversation", json=body)).json()["conversation_id"]
        with anyio.fail_after(LIMIT_S):
            while len(await _conversations(client)) < 2:
                await anyio.lowlevel.checkpoint()
        reset, started = await _conversations(client)
        assert (started["key"], started["conversation_id"]) == ("conversation.started", first)
        assert (reset["key"], reset["conversation_id"]) == ("conversation.reset", second)
        assert reset["payload"]["from_conversation_id"] == first


async def _conversations(client: httpx.AsyncClient) -> list[Json]:
    found: list[Json] = (await client.get("/memory/intents?key=conversation.")).json()["intents"]
    return found
