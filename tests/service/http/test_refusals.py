"""Every route refuses the same things in the same shape."""

import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio.lowlevel
import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute

from gateway.http.routes import (
    approvals,
    chat,
    conversations,
    events,
    health,
    logs,
    memory,
    page,
)
from memory.assemble import Memory
from tests.service.http.stage import Json, assert_error, staged

ROUTES: list[tuple[str, str]] = [
    ("POST", "/chat"),
    ("POST", "/chat/stream"),
    ("GET", "/conversations"),
    ("POST", "/new-conversation"),
    ("GET", "/conversations/{conversation_id}"),
    ("PATCH", "/conversations/{conversation_id}"),
    ("DELETE", "/conversations/{conversation_id}"),
    ("GET", "/conversations/{conversation_id}/messages"),
    ("GET", "/conversations/{conversation_id}/events"),
    ("POST", "/conversations/{conversation_id}/interrupt"),
    ("POST", "/conversations/{conversation_id}/fork"),
    ("DELETE", "/conversations/{conversation_id}/queue/{turn_id}"),
    ("GET", "/approvals"),
    ("POST", "/approvals/{approval_id}"),
    ("GET", "/memory/search"),
    ("POST", "/memory/context"),
    ("GET", "/memory/items/{item_id}"),
    ("DELETE", "/memory/items/{item_id}"),
    ("POST", "/memory/episodes"),
    ("GET", "/memory/intents"),
    ("GET", "/memory/outbox"),
    ("POST", "/memory/outbox/{delivery_id}/retry"),
    ("GET", "/memory/health"),
    ("GET", "/logs"),
    ("GET", "/logs/{log_file:path}"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/"),
    ("GET", "/static/{name:path}"),
]
OPEN = {"/healthz", "/", "/static/{name:path}"}
BODIES: dict[str, Json] = {
    "/chat": {"message": "hi"},
    "/chat/stream": {"message": "hi"},
    "/new-conversation": {},
    "/conversations/{conversation_id}": {"title": "t"},
    "/conversations/{conversation_id}/fork": {"turn_id": "{turn_id}"},
    "/approvals/{approval_id}": {"decision": "allow"},
    "/memory/context": {"queries": ["hi"]},
    "/memory/episodes": {
        "episode_type": "howto",
        "title": "t",
        "sections": {"recipe": "restart the gateway"},
    },
}
QUERIES = {"/memory/search": {"q": "hi"}}
WITH_BODY = [one for one in ROUTES if one[1] in BODIES and one[0] in {"POST", "PATCH"}]
WITH_IDS = [one for one in ROUTES if "_id}" in one[1] or "log_file" in one[1]]
UNKNOWN = {
    "conversation_id": "cnv_unknown",
    "turn_id": "trn_unknown",
    "approval_id": "apr_unknown",
    "item_id": "epi_unknown",
    "delivery_id": "4711",
    "log_file": "2026-11-20/trn_unknown.jsonl",
    "name": "unknown.js",
}


def path_of(template: str, ids: dict[str, str]) -> str:
    return template.replace(":path", "").format(**ids)


def body_of(template: str, ids: dict[str, str]) -> Json:
    body = BODIES.get(template, {})
    return {key: one.format(**ids) if isinstance(one, str) else one for key, one in body.items()}


async def send(
    client: httpx.AsyncClient, method: str, template: str, ids: dict[str, str], **more: Any
) -> httpx.Response:
    if "content" not in more and (method, template) in WITH_BODY:
        more["json"] = body_of(template, ids)
    more.setdefault("params", QUERIES.get(template))
    return await client.request(method, path_of(template, ids), **more)


def all_routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    del app
    for section in (approvals, chat, conversations, events, health, logs, memory, page):
        for route in section.router.routes:
            yield from _of(route)


def _of(route: BaseRoute) -> Iterator[tuple[str, str]]:
    methods: set[str] = getattr(route, "methods", set())
    for method in methods - {"HEAD"}:
        yield method, str(getattr(route, "path", ""))


async def test_the_list_above_holds_every_route(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        assert sorted(all_routes(stage.app)) == sorted(ROUTES)


FOREIGN_HOSTS = [
    "evil.example",
    "127.0.0.1.evil",
    "localhost.",
    "localhost.evil:8000",
    "evil:8000@localhost",
    "[::1",
    "[::1]evil",
    "127.0.0.1:99999",
    "192.168.1.1",
    "",
]
OWN_HOSTS = ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.0.0.1:", "[::1]", "[::1]:9"]


async def test_every_route_refuses_a_host_that_is_not_ours(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for method, template in ROUTES:
            for host in FOREIGN_HOSTS:
                answer = await send(client, method, template, UNKNOWN, headers={"Host": host})
                assert_error(answer, 403, "forbidden")


@pytest.mark.parametrize("host", OWN_HOSTS)
async def test_our_own_names_are_taken_with_any_port(tmp_path: Path, host: str) -> None:
    async with staged(tmp_path) as stage:
        answer = await stage.client().get("/conversations", headers={"Host": host})
        assert answer.status_code == 200


FOREIGN_PAGES = [
    "https://evil.example",
    "http://localhost.evil:8000",
    "http://127.0.0.1:3000",
    "http://localhost",
    "file://",
    "null",
    "",
    "127.0.0.1:8000",
    "http://127.0.0.1:8000/path",
    "ftp://127.0.0.1:8000",
]


async def test_every_route_refuses_a_page_that_is_not_ours(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for method, template in ROUTES:
            for origin in FOREIGN_PAGES:
                answer = await send(client, method, template, UNKNOWN, headers={"Origin": origin})
                assert_error(answer, 403, "forbidden")


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8000", "http://localhost:8000"])
async def test_our_own_page_may_send_messages(tmp_path: Path, origin: str) -> None:
    async with staged(tmp_path) as stage:
        body = {"message": "hi"}
        answer = await stage.client().post("/chat", json=body, headers={"Origin": origin})
        assert answer.status_code == 200


async def test_what_changes_something_is_refused_to_another_site_that_names_no_page(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for method, template in ROUTES:
            for site in ("cross-site", "same-site", "nonsense"):
                headers = {"Sec-Fetch-Site": site}
                if method == "GET":
                    if not template.endswith("/events"):
                        answer = await send(client, method, template, UNKNOWN, headers=headers)
                        assert answer.status_code != 403
                else:
                    answer = await send(client, method, template, UNKNOWN, headers=headers)
                    assert_error(answer, 403, "forbidden")
        for site in ("same-origin", "none"):
            headers = {"Sec-Fetch-Site": site}
            assert (await client.post("/new-conversation", headers=headers)).status_code == 201


async def test_every_route_but_the_page_and_its_pulse_needs_a_token(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",)) as stage:
        given = [
            None,
            "",
            "Bearer",
            "Bearer wrong",
            f"Basic {stage.tokens['ada']}",
            f"Bearer {stage.tokens['ada']}x",
            stage.tokens["ada"],
        ]
        client = stage.client()
        for method, template in ROUTES:
            for one in given:
                headers = {} if one is None else {"Authorization": one}
                answer = await send(client, method, template, UNKNOWN, headers=headers)
                if template in OPEN:
                    assert answer.status_code != 401
                else:
                    assert_error(answer, 401, "unauthorised")
                    assert answer.headers["www-authenticate"] == "Bearer"
        assert_error(await client.get("/no-such-route"), 401, "unauthorised")


async def test_no_token_is_asked_for_before_the_size_of_a_body_is_known(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",), max_body_bytes=1024) as stage:
        answer = await stage.client().post("/chat", content=b"x" * 1025)
        assert_error(answer, 413, "body_too_large")


async def test_an_id_that_never_was_is_not_found(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        for method, template in WITH_IDS:
            assert_error(await send(stage.client(), method, template, UNKNOWN), 404, "not_found")


async def test_what_is_another_users_is_not_found_and_stays_as_it_is(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        done = (await ada.post("/chat", json={"message": "mine"})).json()
        ids = {**UNKNOWN, **{key: done[key] for key in ("conversation_id", "turn_id", "log_file")}}
        before = (await ada.get(f"/conversations/{ids['conversation_id']}")).json()
        for method, template in WITH_IDS:
            assert_error(await send(bob, method, template, ids), 404, "not_found")
        for path in ("/chat", "/chat/stream"):
            body = {"message": "yours", "conversation_id": ids["conversation_id"]}
            assert_error(await bob.post(path, json=body), 404, "not_found")
        leaving = {"conversation_id": ids["conversation_id"]}
        assert_error(await bob.post("/new-conversation", json=leaving), 404, "not_found")
        for path in ("/approvals", "/logs"):
            assert_error(await bob.get(path, params=leaving), 404, "not_found")
        assert (await bob.get("/conversations")).json()["conversations"] == []
        assert (await ada.get(f"/conversations/{ids['conversation_id']}")).json() == before


async def test_every_route_refuses_a_body_that_says_it_is_too_large(tmp_path: Path) -> None:
    async with staged(tmp_path, max_body_bytes=1024) as stage:
        for method, template in ROUTES:
            answer = await send(
                stage.client(), method, template, UNKNOWN, content=b'"' + b"x" * 1024 + b'"'
            )
            error = assert_error(answer, 413, "body_too_large")
            assert error["details"] == {"max_bytes": 1024}


BROKEN = [
    b"",
    b"not json",
    b"[]",
    b"null",
    b"7",
    b'"text"',
    b'{"message": NaN}',
    b'{"message": -Infinity}',
    b'{"message": "a"',
    b'{"message": "a"} x',
    b"\xef\xbb\xbf{}",
    b"\xff\xfe{\x00}\x00",
    b'{"message": "\xe4\xb8"}',
    b'{"message": ' + b"9" * 5000 + b"}",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"no such field": 1}',
    b'{"\\ud800": 1}',
    b'{"' + b"k" * 100_000 + b'": 1}',
]


async def test_every_route_that_reads_a_body_refuses_a_broken_one(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for method, template in WITH_BODY:
            for content in BROKEN:
                if template == "/new-conversation" and not content:
                    continue  # its body may be left out
                answer = await send(
                    client,
                    method,
                    template,
                    UNKNOWN,
                    content=content,
                    headers={"Content-Type": "application/json"},
                )
                error = assert_error(answer, 422, "invalid_request")
                assert len(answer.content) < 1000
                assert "pydantic" not in error["message"]


@pytest.mark.parametrize(
    "media_type", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]
)
async def test_a_body_must_be_called_json(tmp_path: Path, media_type: str | None) -> None:
    """Any page can make a browser send a simple type; JSON it has to ask for, and is not let."""
    async with staged(tmp_path) as stage:
        for method, template in WITH_BODY:
            headers = {} if media_type is None else {"Content-Type": media_type}
            answer = await send(
                stage.client(), method, template, UNKNOWN, content=b"{}", headers=headers
            )
            error = assert_error(answer, 422, "invalid_request")
            assert "application/json" in error["message"]


async def test_json_may_name_its_charset(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        answer = await stage.client().post(
            "/chat",
            content='{"message": "é"}'.encode(),
            headers={"Content-Type": "Application/JSON; charset=utf-8"},
        )
        assert answer.json()["reply"] == "You said: é"


@pytest.mark.parametrize("path", ["/nope", "/chat/", "/conversations/", "/docs", "/openapi.json"])
async def test_an_unknown_route_is_not_found(tmp_path: Path, path: str) -> None:
    async with staged(tmp_path) as stage:
        assert_error(await stage.client().get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/conversations/cnv_x", "GET, PATCH, DELETE"),
        ("OPTIONS", "/conversations/cnv_x", "GET, PATCH, DELETE"),
        ("GET", "/chat", "POST"),
        ("HEAD", "/conversations", "GET"),
        ("POST", "/healthz", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
    ],
)
async def test_a_method_that_a_route_does_not_take_is_answered_with_those_it_takes(
    tmp_path: Path, method: str, path: str, allowed: str
) -> None:
    async with staged(tmp_path) as stage:
        answer = await stage.client().request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
        if method != "HEAD":
            assert_error(answer, 405, "method_not_allowed")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/conversations?limit=0", "limit"),
        ("/conversations?limit=201", "limit"),
        ("/conversations?limit=many", "limit"),
        ("/conversations?limit=1.5", "limit"),
        ("/conversations?limit=" + "9" * 5000, "limit"),
        ("/conversations?q=" + "x" * 501, "q"),
        ("/conversations/{id}/messages?limit=-1", "limit"),
        ("/conversations/{id}/messages?before=x", "before"),
        ("/conversations/{id}/messages?before=9999999999999999", "before"),
        ("/logs?limit=0", "limit"),
        ("/logs?cursor=x", "cursor"),
    ],
    ids=lambda one: one[:50],
)
async def test_a_parameter_that_does_not_fit_is_named(
    tmp_path: Path, path: str, field: str
) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        done = (await client.post("/chat", json={"message": "a"})).json()
        answer = await client.get(path.format(id=done["conversation_id"]))
        error = assert_error(answer, 422, "invalid_request")
        assert error["details"] == {"field": field}
        assert error["message"].startswith(f"`{field}`")
        assert len(answer.content) < 500


async def test_a_fault_of_our_own_tells_nothing_but_the_request_id_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object, **__: object) -> None:
        await anyio.lowlevel.checkpoint()
        raise RuntimeError("secret of /etc/candor")

    async with staged(tmp_path) as stage:
        for name in (
            "accept",
            "page",
            "get",
            "change",
            "delete",
            "messages",
            "follow",
            "interrupt",
        ):
            monkeypatch.setattr(stage.chat, name, fail)
        for name in ("new_conversation", "fork", "take_back", "owns_turn"):
            monkeypatch.setattr(stage.chat, name, fail)
        monkeypatch.setattr(stage.chat, "approvals", None)
        monkeypatch.setattr(stage.chat, "answer_approval", None)
        broken = replace(stage.app.state.front.services, memory=cast("Memory", object()))
        stage.app.state.front = replace(stage.app.state.front, services=broken)
        for method, template in ROUTES:
            if template in OPEN | {"/readyz", "/metrics", "/logs"}:
                continue
            caplog.clear()
            answer = await send(stage.client(), method, template, UNKNOWN)
            error = assert_error(answer, 500, "internal_error")
            assert "secret" not in answer.text
            logged = [one for one in caplog.records if one.levelno >= logging.ERROR]
            assert [one.__dict__["request_id"] for one in logged] == [error["request_id"]]
            assert logged[0].exc_info is not None


async def test_a_store_that_cannot_be_read_is_told_as_a_fault_that_passes(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:

        def drop(writer: sqlite3.Connection) -> None:
            writer.execute("DROP TABLE conversations")

        await stage.database.write(drop)
        answer = await stage.client().get("/conversations")
        error = assert_error(answer, 503, "storage_unavailable")
        assert error["retryable"] is True
        assert int(answer.headers["retry-after"]) > 0


async def test_every_answer_is_protected_and_named(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        seen = set()
        for method, template in ROUTES:
            for host in ("localhost", "evil"):
                answer = await send(
                    stage.client(), method, template, UNKNOWN, headers={"Host": host}
                )
                headers = answer.headers
                assert headers["content-security-policy"] == (
                    "default-src 'none'; script-src 'self'; style-src 'self';"
                    " img-src 'self' data:; connect-src 'self'; frame-ancestors 'none';"
                    " base-uri 'none'; form-action 'none'"
                )
                assert headers["x-content-type-options"] == "nosniff"
                assert headers["referrer-policy"] == "no-referrer"
                assert headers["cross-origin-opener-policy"] == "same-origin"
                assert headers["cross-origin-resource-policy"] == "same-origin"
                cached = "no-cache" if template == "/" and host == "localhost" else "no-store"
                assert headers["cache-control"] == cached
                assert "server" not in headers
                seen.add(headers["x-request-id"])
        assert len(seen) == 2 * len(ROUTES)


async def test_answers_are_counted_by_route_and_never_by_path(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        await client.get("/conversations/cnv_unknown")
        await client.get("/no-such-route")
        await client.request("BREW", "/healthz")
        text = stage.metrics.render()[0].decode()
        assert (
            'candor_http_requests_total{method="GET",'
            'route="/conversations/{conversation_id}",status="404"} 1.0' in text
        )
        assert "cnv_unknown" not in text
        assert "no-such-route" not in text


async def test_a_websocket_is_turned_away(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        sent: list[str] = []

        async def receive() -> Json:
            await anyio.lowlevel.checkpoint()
            return {"type": "websocket.connect"}

        async def send_one(message: Any) -> None:
            await anyio.lowlevel.checkpoint()
            sent.append(message["type"])

        scope = {
            "type": "websocket",
            "path": "/chat",
            "raw_path": b"/chat",
            "root_path": "",
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1")],
            "subprotocols": [],
            "state": {},
        }
        await stage.app(scope, receive, send_one)
        assert sent == ["websocket.close"]
