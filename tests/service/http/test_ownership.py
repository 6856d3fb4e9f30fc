"""Two users who try each other's ids on every route there is.

The routes are asked of the app itself: one that takes an id and is not tried here fails the test.
"""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx

from tests.service.http.client import Client
from tests.service.http.every_route import routes_of
from tests.service.http.reading import streaming
from tests.service.http.stage import ASK, HOLD, Json, Stage, assert_error, staged, two_clients

_ID = re.compile(r"\{(\w+)(?::path)?\}")
NOT_OWNED = {
    *{"/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/static/{name:path}"},
    *{"/healthz/ready", "/auth/sign-in", "/auth/callback"},
    *{"/openai/v1/models", "/openai/v1/models/{name:path}"},
}
"""The page and the server's own state, which are the same for everybody."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to name somebody's thing to a route."""

    method: str
    template: str
    body: Mapping[str, Any] = field(default_factory=dict)
    """Fields, each with an id's name in braces or a plain value."""
    query: Mapping[str, str] = field(default_factory=dict)


CASE = {
    "symptom_summary": "my gateway answers 503",
    "diagnosis": "its pool was empty",
    "resolution": "filled it",
    "confidence": 0.7,
}
SCHEDULE = {"name": "mine", "cron": "0 8 * * *", "time_zone": "UTC", "message": "hi"}
RESPONSES = "/openai/v1/responses"
ATTEMPTS = [
    Attempt("POST", "/chat", {"message": "hi", "conversation_id": "{conversation_id}"}),
    Attempt("POST", "/chat/stream", {"message": "hi", "conversation_id": "{conversation_id}"}),
    Attempt("POST", "/new-conversation", {"conversation_id": "{conversation_id}"}),
    Attempt("GET", "/conversations/{conversation_id}"),
    Attempt("PATCH", "/conversations/{conversation_id}", {"title": "taken"}),
    Attempt("GET", "/conversations/{conversation_id}/messages"),
    Attempt("GET", "/conversations/{conversation_id}/branches"),
    Attempt("GET", "/conversations/{conversation_id}/matches", query={"q": "a"}),
    Attempt("GET", "/conversations/{conversation_id}/export"),
    Attempt("GET", "/conversations/{conversation_id}/usage"),
    Attempt("GET", "/conversations/{conversation_id}/worktree"),
    Attempt("POST", "/conversations/{conversation_id}/worktree/merge"),
    Attempt("DELETE", "/conversations/{conversation_id}/worktree"),
    Attempt("GET", "/conversations/{conversation_id}/turns/{turn_id}/tools/{index}"),
    Attempt("GET", "/conversations/{conversation_id}/turns/{turn_id}/changes"),
    Attempt("GET", "/conversations/{conversation_id}/events"),
    Attempt("GET", "/conversations/{conversation_id}/events", query={"after": "{turn_id}:1"}),
    Attempt("POST", "/conversations/{conversation_id}/interrupt"),
    Attempt("POST", "/conversations/{conversation_id}/interrupt", query={"wait": "1"}),
    Attempt("POST", "/conversations/{conversation_id}/fork", {"turn_id": "{turn_id}"}),
    Attempt("DELETE", "/conversations/{conversation_id}/queue/{turn_id}"),
    Attempt("DELETE", "/conversations/{conversation_id}"),
    Attempt("POST", "/schedules", {**SCHEDULE, "conversation_id": "{conversation_id}"}),
    Attempt("GET", "/schedules/{schedule_id}"),
    Attempt("PATCH", "/schedules/{schedule_id}", {"name": "taken"}),
    Attempt("POST", "/schedules/{schedule_id}/run"),
    Attempt("DELETE", "/schedules/{schedule_id}"),
    Attempt("GET", "/approvals", query={"conversation_id": "{conversation_id}"}),
    Attempt("POST", "/approvals/{approval_id}", {"decision": "allow"}),
    Attempt("POST", "/approvals/{approval_id}/extend"),
    Attempt("GET", "/approvals/{approval_id}/input"),
    Attempt("GET", "/conversations/{conversation_id}/permissions"),
    Attempt("DELETE", "/conversations/{conversation_id}/permissions/{approval_id}"),
    Attempt("GET", "/logs", query={"conversation_id": "{conversation_id}"}),
    Attempt("GET", "/logs/{log_file:path}"),
    Attempt(
        "POST", "/memory/context", {"queries": ["mine"], "conversation_id": "{conversation_id}"}
    ),
    Attempt("GET", "/memory/items/{item_id}"),
    Attempt("DELETE", "/memory/items/{item_id}"),
    Attempt("PATCH", "/memory/items/{item_id}", {"text": "taken"}),
    Attempt("POST", "/memory/outbox/{delivery_id}/retry"),
    Attempt("GET", "/memory/intents/{intent_id}"),
    Attempt("POST", "/memory/cases", {"case": CASE, "conversation_id": "{conversation_id}"}),
    Attempt(
        "GET", "/memory/cases/search", query={"q": "mine", "conversation_id": "{conversation_id}"}
    ),
    Attempt("GET", "/memory/cases/{case_id}"),
    Attempt("POST", "/memory/cases/{case_id}/feedback", {"helpful": False}),
    Attempt("PATCH", "/webhooks/{webhook_id}", {"state": "off"}),
    Attempt("DELETE", "/webhooks/{webhook_id}"),
    Attempt("POST", "/webhooks/{webhook_id}/secret"),
    Attempt("POST", "/webhooks/{webhook_id}/test"),
    Attempt("GET", "/webhooks/{webhook_id}/deliveries"),
    Attempt("POST", "/webhooks/{webhook_id}/deliveries/{message_id}/retry"),
    Attempt("GET", "/anthropic/v1/agents/{agent_id}"),
    Attempt("POST", "/anthropic/v1/agents/{agent_id}", {"name": "taken"}),
    Attempt("POST", "/anthropic/v1/agents/{agent_id}/archive"),
    Attempt("GET", "/anthropic/v1/environments/{environment_id}"),
    Attempt("POST", "/anthropic/v1/environments/{environment_id}/archive"),
    Attempt(
        "POST",
        "/anthropic/v1/sessions",
        {"agent": "{agent_id}", "environment_id": "{environment_id}"},
    ),
    Attempt("GET", "/anthropic/v1/sessions/{conversation_id}"),
    Attempt("POST", "/anthropic/v1/sessions/{conversation_id}", {"title": "taken"}),
    Attempt("POST", "/anthropic/v1/sessions/{conversation_id}/archive"),
    Attempt("DELETE", "/anthropic/v1/sessions/{conversation_id}"),
    Attempt(
        "POST",
        "/anthropic/v1/sessions/{conversation_id}/events",
        {"events": [{"type": "user.interrupt"}]},
    ),
    Attempt("GET", "/anthropic/v1/sessions/{conversation_id}/events"),
    Attempt("GET", "/anthropic/v1/sessions/{conversation_id}/events/stream"),
    Attempt("POST", RESPONSES, {"input": "hi", "conversation": "{conversation_id}"}),
    Attempt("POST", RESPONSES, {"input": "hi", "previous_response_id": "{response_id}"}),
    Attempt("POST", f"{RESPONSES}/compact", {"previous_response_id": "{response_id}"}),
    Attempt("GET", f"{RESPONSES}/{{response_id}}"),
    Attempt("GET", f"{RESPONSES}/{{response_id}}", query={"stream": "true"}),
    Attempt("GET", f"{RESPONSES}/{{response_id}}/input_items"),
    Attempt("POST", f"{RESPONSES}/{{response_id}}/cancel"),
    Attempt("DELETE", f"{RESPONSES}/{{response_id}}"),
    Attempt("GET", "/openai/v1/files/{file_id}"),
    Attempt("GET", "/openai/v1/conversations/{conversation_id}"),
    Attempt("GET", "/openai/v1/conversations/{conversation_id}/items"),
    Attempt("GET", "/openai/v1/conversations/{conversation_id}/items/{item_id}"),
    Attempt("DELETE", "/openai/v1/conversations/{conversation_id}"),
]
LISTS = {
    "/conversations": "conversations",
    "/schedules": "schedules",
    "/approvals": "approvals",
    "/logs": "logs",
    "/memory/outbox": "deliveries",
    "/webhooks": "webhooks",
    "/anthropic/v1/agents": "data",
    "/anthropic/v1/environments": "data",
    "/anthropic/v1/sessions": "data",
}
"""Routes that name nobody's thing, and where their answer lists the caller's own."""
OWN_ALONE = {
    ("GET", "/operations"),
    ("GET", "/quota"),
    ("GET", "/audit"),
    ("GET", "/session"),
    ("GET", "/users/me"),
    ("POST", "/auth/sign-out"),
    ("GET", "/mcp-servers"),
    ("GET", "/skills"),
    ("GET", "/memory/search"),
    ("GET", "/memory/items"),
    ("GET", "/memory/export"),
    ("GET", "/memory/intents"),
    ("GET", "/memory/intents/fields"),
    ("GET", "/memory/health"),
    ("POST", "/memory/episodes"),
    ("POST", "/webhooks"),
    ("POST", "/memory/facts"),
    ("POST", "/memory/import"),
    ("GET", "/memory/profile"),
    ("PUT", "/memory/profile"),
    ("GET", "/workspace"),
    ("GET", "/workspace/file"),
    ("POST", "/workspace/files"),
    ("POST", "/openai/v1/files"),
    ("POST", "/openai/v1/chat/completions"),
    ("POST", "/openai/v1/conversations"),
    ("POST", "/mcp"),
    ("POST", "/anthropic/v1/agents"),
    ("POST", "/anthropic/v1/environments"),
    ("POST", "/ag-ui"),
}
"""Routes that take no id; what they show of others' is tried in `test_memory*.py`.

The workspace belongs to all users of a server, as it does to their agents.
"""

UNKNOWN = {
    "conversation_id": "cnv_" + "a" * 26,
    "turn_id": "trn_" + "a" * 26,
    "index": "1",
    "approval_id": "apr_" + "a" * 26,
    "schedule_id": "sch_" + "a" * 26,
    "item_id": "epi_" + "a" * 26,
    "case_id": "cas_" + "a" * 26,
    "delivery_id": "999999",
    "step_id": "999999",
    "intent_id": "int_" + "a" * 26,
    "agent_id": "agent_" + "a" * 26,
    "environment_id": "env_" + "a" * 26,
    "webhook_id": "whk_" + "a" * 26,
    "file_id": "file-Z29uZQ",
    "message_id": "msg_" + "a" * 32,
    "log_file": f"2026-11-20/trn_{'a' * 26}.jsonl",
}


def fill(given: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    return {key: one.format(**ids) if isinstance(one, str) else one for key, one in given.items()}


async def attempt(client: Client, one: Attempt, ids: Mapping[str, str]) -> Any:
    ids = {**ids, "response_id": f"resp_{ids['turn_id']}"}  # a response is a turn
    path = one.template.replace(":path", "").format(**ids)
    body = fill(one.body, ids) if one.body else None
    return await client.request(one.method, path, params=fill(one.query, ids), json=body)


async def test_every_route_is_tried_or_belongs_to_nobody(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        there = set(routes_of(stage.app))
    tried = {(trial.method, trial.template) for trial in ATTEMPTS}
    lists = {("GET", path) for path in LISTS}
    assert len(there) > 15
    assert there == tried | lists | OWN_ALONE | {("GET", path) for path in NOT_OWNED}
    for method, template in there - {("GET", path) for path in NOT_OWNED}:
        assert not _ID.search(template) or (method, template) in tried


@asynccontextmanager
async def things_of(stage: Stage, client: Client) -> AsyncIterator[list[Json]]:
    """Create one thing of each kind for a user: an ended, a running and a waiting turn, an approval."""
    done = await client.say("mine")
    await _write_log(stage, done)
    ended = {key: done[key] for key in ("conversation_id", "turn_id", "log_file")}
    async with streaming(client, ASK) as asking, streaming(client, HOLD) as holding:
        question = (await asking.until("approval.requested"))[-1].data
        runs = (await holding.until("text.delta"))[-1].data
        place = {"conversation_id": runs["conversation_id"]}
        async with streaming(client, "waits", runs["conversation_id"]) as queued:
            waits = (await queued.until("turn.queued"))[-1].data
            yield [
                {**UNKNOWN, **ended},
                {**UNKNOWN, **place, "turn_id": runs["turn_id"]},
                {**UNKNOWN, **place, "turn_id": waits["turn_id"]},
                {**UNKNOWN, **await _remembered(client)},
                {**UNKNOWN, **{key: question[key] for key in ("conversation_id", "approval_id")}},
            ]
            stage.release()
            await client.post(f"/approvals/{question['approval_id']}", json={"decision": "deny"})
            assert (await queued.rest())[-1].data["outcome"] == "answered"


async def _remembered(client: Client) -> dict[str, str]:
    sections = {"recipe": "restart the gateway with make run"}
    episode = {"episode_type": "howto", "title": "Restarting", "sections": sections}
    written = (await client.post("/memory/episodes", json=episode)).json()
    deliveries = (await client.read("/memory/outbox"))["deliveries"]
    case = (await client.post("/memory/cases", json={"case": CASE})).json()
    schedule = (await client.post("/schedules", json=SCHEDULE)).json()
    named = {"name": "mine", "model": "candor"}
    agent = (await client.post("/anthropic/v1/agents", json=named)).json()
    place = (await client.post("/anthropic/v1/environments", json=named)).json()
    hook = {"url": "https://hooks.example.org", "events": ["conversation.created"]}
    webhook_id = (await client.post("/webhooks", json=hook)).json()["id"]
    await client.post("/new-conversation", json={})
    told = (await client.read(f"/webhooks/{webhook_id}/deliveries"))["deliveries"]
    return {
        "webhook_id": webhook_id,
        "message_id": told[0]["id"],
        "agent_id": agent["id"],
        "environment_id": place["id"],
        "item_id": written["episode_id"],
        "delivery_id": deliveries[0]["id"],
        "case_id": case["case_id"],
        "schedule_id": schedule.get("id", UNKNOWN["schedule_id"]),
    }


async def _write_log(stage: Stage, turn: Json) -> None:
    path = anyio.Path(stage.settings.log_dir / turn["log_file"])
    line = {"ts": "2026-11-20T10:00:00.000Z", "seq": 1, "conversation_id": turn["conversation_id"]}
    line |= {"turn_id": turn["turn_id"], "kind": "response"}
    await path.parent.mkdir(parents=True, exist_ok=True)
    await path.write_text(json.dumps(line, separators=(",", ":")) + "\n")


async def _all_of(client: Client, things: list[Json]) -> list[Any]:
    """Read everything that a user has."""
    paths = [*LISTS, f"/logs/{things[0]['log_file']}"]
    for thing in things:
        if thing["webhook_id"] != UNKNOWN["webhook_id"]:
            paths.append(f"/webhooks/{thing['webhook_id']}/deliveries")
        if thing["item_id"] != UNKNOWN["item_id"]:
            paths.append(f"/memory/items/{thing['item_id']}")
        if thing["conversation_id"] != UNKNOWN["conversation_id"]:
            place = f"/conversations/{thing['conversation_id']}"
            paths += [place, f"{place}/messages"]
    answers = [await client.get(path) for path in paths]
    assert all(answer.status_code == 200 for answer in answers)
    return [answer.text for answer in answers]


def _plain(answer: httpx.Response) -> tuple[int, Any, set[str]]:
    """What an answer tells, without its own name."""
    error = answer.json()["error"]
    del error["request_id"]
    return answer.status_code, error, set(answer.headers)


async def test_what_is_anothers_is_exactly_as_unknown_as_what_never_was(tmp_path: Path) -> None:
    users = ("ada", "bob")
    async with staged(tmp_path, on_port=True, users=users, schedules="on", webhooks="on") as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        async with things_of(stage, ada) as things:
            before = await _all_of(ada, things)
            for trial in ATTEMPTS:
                unknown = await attempt(bob, trial, UNKNOWN)
                assert_error(unknown, 404, "not_found")
                for ids in things:
                    assert _plain(await attempt(bob, trial, ids)) == _plain(unknown), (trial, ids)
            for path, name in LISTS.items():
                assert (await bob.read(path))[name] == []
            assert await _all_of(ada, things) == before


async def test_anothers_turn_is_unknown_in_ones_own_conversation_too(tmp_path: Path) -> None:
    users = ("ada", "bob")
    async with staged(tmp_path, on_port=True, users=users, webhooks="on") as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        own = (await bob.say("his"))["conversation_id"]
        tried = [trial for trial in ATTEMPTS if "turn_id" in repr(trial)]
        assert len(tried) == 5
        async with things_of(stage, ada) as things:
            for item in tried:
                unknown = await attempt(bob, item, {**UNKNOWN, "conversation_id": own})
                for ids in things[:3]:
                    mixed = {**ids, "conversation_id": own}
                    assert _plain(await attempt(bob, item, mixed)) == _plain(unknown), item
                assert unknown.status_code == 404


async def test_the_name_and_the_history_of_anothers_conversation_begin_ones_own(
    tmp_path: Path,
) -> None:
    async with two_clients(tmp_path) as (ada, bob):
        history = [{"role": "user", "content": "mine"}]
        body: Json = {"model": "candor", "messages": history}
        path, name = "/openai/v1/chat/completions", "X-Candor-Conversation"
        first = await ada.post(path, json=body, headers={name: "ours"})
        reply = first.json()["choices"][0]["message"]
        more = {**body, "messages": [*history, reply, {"role": "user", "content": "and?"}]}
        for headers in ({name: "ours"}, {name: first.headers[name]}, {}):
            for asked in (body, more):
                answer = await bob.post(path, json=asked, headers=headers)
                assert answer.status_code == 200
                assert answer.headers[name] != first.headers[name]
        (own,) = (await ada.read("/conversations"))["conversations"]
        assert (own["id"], own["turns"]) == (first.headers[name], 1)


async def test_the_thread_the_run_and_the_interrupt_of_another_are_unknown(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        said = {"id": "m", "role": "user", "content": "mine"}
        run = {"threadId": "t", "runId": "r", "messages": [said]}
        for client in (ada, bob):
            answer = await client.post("/ag-ui", json=run)
            assert "RUN_FINISHED" in answer.text
        for client in (ada, bob):
            (own,) = (await client.read("/conversations"))["conversations"]
            assert own["turns"] == 1
        async with streaming(ada, ASK) as asking:
            question = (await asking.until("approval.requested"))[-1].data
            for name in (question["approval_id"], UNKNOWN["approval_id"]):
                answers = {"interruptId": name, "status": "resolved", "payload": {"approved": True}}
                answer = await bob.post("/ag-ui", json={**run, "runId": "2", "resume": [answers]})
                assert_error(answer, 404, "not_found")
            await ada.post(f"/approvals/{question['approval_id']}", json={"decision": "deny"})


async def test_a_key_against_repeats_is_each_users_own(tmp_path: Path) -> None:
    async with two_clients(tmp_path) as (ada, bob):
        body = {"message": "mine", "idempotency_key": "k"}
        first = (await ada.post("/chat", json=body)).json()
        other = (await bob.post("/chat", json=body)).json()
        assert other["turn_id"] != first["turn_id"]
        assert (await bob.post("/chat", json={**body, "message": "x"})).status_code == 409
        assert (await ada.post("/chat", json=body)).json() == first
