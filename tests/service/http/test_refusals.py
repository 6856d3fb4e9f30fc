"""Every route refuses the same things in the same shape, and each answer is protected."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import anyio.lowlevel
import pytest

from memory.assemble import Memory
from tests.service.http.every_route import OPEN, ROUTES, UNKNOWN, routes_of, send
from tests.service.http.stage import Json, assert_error, staged


async def test_the_list_holds_every_route(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        assert sorted(routes_of(stage.app)) == sorted(ROUTES)


@pytest.mark.parametrize("path", ["/nope", "/chat/", "/conversations/", "/docs", "/redoc"])
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
        broken = replace(stage.app.state.gateway.services, memory=cast("Memory", object()))
        stage.app.state.gateway = replace(stage.app.state.gateway, services=broken)
        for method, template in ROUTES:
            if template in OPEN | {"/readyz", "/metrics", "/logs", "/openapi.json"}:
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
        await stage.database.close()
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
