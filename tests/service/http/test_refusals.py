"""Every route refuses the same things in the same shape, and each answer is protected."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

import anyio.lowlevel
import pytest

from gateway.chat import Chat
from gateway.chat.memory_calls import MemoryCalls
from gateway.http.bodies import FORMS
from gateway.mcp_servers.servers import McpServers
from gateway.turns.workspaces import OpenWorkspaces
from gateway.users.accounts import Accounts
from gateway.webhooks.desk import Webhooks
from memory.errors import StoreUnavailable
from memory.recall.reader import RecallReader
from memory.service.memory import Memory
from tests.service.http.every_route import OPEN, ROUTES, UNKNOWN, routes_of, send
from tests.service.http.stage import Json, assert_error, one_client, staged


async def test_the_list_holds_every_route(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        assert sorted(routes_of(stage.app)) == sorted(ROUTES)


async def test_an_unknown_route_is_not_found(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for path in ("/nope", "/chat/", "/conversations/", "/docs", "/redoc"):
            assert_error(await client.get(path), 404, "not_found")


METHODS = [
    ("PUT", "/conversations/cnv_x", "GET, PATCH, DELETE"),
    ("OPTIONS", "/conversations/cnv_x", "GET, PATCH, DELETE"),
    ("GET", "/chat", "POST"),
    ("HEAD", "/conversations", "GET"),
    ("POST", "/healthz", "GET, HEAD"),
    ("POST", "/", "GET, HEAD"),
]


async def test_a_method_that_a_route_does_not_take_is_answered_with_those_it_takes(
    tmp_path: Path,
) -> None:
    async with one_client(tmp_path) as client:
        for method, path, allowed in METHODS:
            answer = await client.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
            if method != "HEAD":
                assert_error(answer, 405, "method_not_allowed")


PARAMETERS = [
    *(("/conversations?limit=0", "limit"), ("/conversations?limit=201", "limit")),
    *(("/conversations?limit=many", "limit"), ("/conversations?limit=1.5", "limit")),
    ("/conversations?limit=" + "9" * 5000, "limit"),
    ("/conversations?q=" + "x" * 501, "q"),
    ("/conversations?cursor=nonsense", "cursor"),
    ("/conversations/{id}/messages?limit=-1", "limit"),
    ("/conversations/{id}/messages?before=x", "before"),
    ("/conversations/{id}/messages?before=9999999999999999", "before"),
    *(("/logs?limit=0", "limit"), ("/logs?cursor=x", "cursor")),
    *(("/memory/intents?cursor=x", "cursor"), ("/memory/outbox?status=lost", "status")),
    ("/memory/outbox?cursor=-1", "cursor"),
    ("/memory/search?q=x&kinds=note,thought", "kinds"),
    *(("/memory/search", "q"), ("/memory/search?q=x&limit=0", "limit")),
    ("/memory/search?q=x&user_id=%20", "user_id"),
    ("/memory/search?q=x&workflow_id=%00", "workflow_id"),
    ("/memory/search?q=x&environment=%00", "environment"),
    *(("/workspace/file", "path"), ("/workspace/file?path=" + "x" * 5000, "path")),
    ("/workspace?path=" + "x" * 5000, "path"),
    ("/memory/cases/search?query=" + "x" * 10_001, "query"),
]


async def test_a_parameter_that_does_not_fit_is_named(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        done = await client.say("a")
        for path, field in PARAMETERS:
            answer = await client.get(path.format(id=done["conversation_id"]))
            error = assert_error(answer, 422, "invalid_request")
            assert error["details"] == {"field": field}
            assert error["message"].startswith(f"`{field}`")
            assert "is not valid" not in error["message"]
            assert len(answer.content) < 500


DOORS = [
    ("GET", "/openai/v1/responses/resp_trn_x", "response"),
    ("POST", "/openai/v1/responses/resp_trn_x/cancel", "response"),
    ("DELETE", "/openai/v1/responses/resp_trn_x", "response"),
    ("GET", "/openai/v1/conversations/cnv_x", "conversation"),
    ("GET", "/anthropic/v1/sessions/cnv_x", "session"),
    ("DELETE", "/anthropic/v1/sessions/cnv_x", "session"),
    ("GET", "/anthropic/v1/sessions/cnv_x/events/stream", "session"),
]


async def test_what_is_not_there_has_the_name_that_its_protocol_gives_it(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for method, path, name in DOORS:
            error = assert_error(await client.request(method, path), 404, "not_found")
            assert error["message"] == f"There is no such {name}.", path


class Broken:
    """Fails whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("secret of /etc/candor")


async def test_what_is_no_message_of_mcp_is_told_in_words_of_this_server(tmp_path: Path) -> None:
    accepts = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    async with one_client(tmp_path) as client:
        for body, code, told in (
            ("no", -32700, "The body is not JSON."),
            ("[]", -32600, "The body is no message of JSON-RPC 2.0."),
            ('{"secret": 1}', -32600, "The body is no message of JSON-RPC 2.0."),
        ):
            answer = await client.post("/mcp", content=body, headers=accepts)
            assert answer.status_code == 400
            assert answer.json()["error"] == {"code": code, "message": told}


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (RuntimeError("secret of /etc/candor"), "its log has the reason"),
        (StoreUnavailable("The database cannot be read."), "try again in a moment"),
    ],
)
async def test_a_fault_behind_mcp_is_an_answer_without_the_text_of_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, told: str
) -> None:
    async def fail(*_: object) -> NoReturn:  # noqa: RUF029  in place of a call
        raise fault

    monkeypatch.setattr(MemoryCalls, "call", fail)
    monkeypatch.setattr(RecallReader, "recall", fail)
    accepts = {"Accept": "application/json, text/event-stream"}
    asked = {"name": "memory_search", "arguments": {"query": "kiln"}}
    context = {"name": "memory_context", "arguments": {"queries": ["kiln"]}}
    async with one_client(tmp_path) as client:
        for params in (asked, context):
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = await client.post("/mcp", json=call, headers=accepts)
            assert "secret" not in answer.text
            result = answer.json()["result"]
            assert result["isError"]
            assert told in result["content"][0]["text"]
        read = {"jsonrpc": "2.0", "id": 2, "method": "resources/read"}
        read["params"] = {"uri": "candor://memory/fac_x"}
        error = (await client.post("/mcp", json=read, headers=accepts)).json()["error"]
    assert error["code"] == -32603
    assert told in error["message"]


async def test_a_fault_of_our_own_tells_nothing_but_the_request_id_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(tmp_path) as stage:
        state = stage.app.state.gateway
        broken = replace(
            state.services,
            chat=cast("Chat", Broken()),
            memory=cast("Memory", Broken()),
            workspaces=cast("OpenWorkspaces", Broken()),
            mcp_servers=cast("McpServers", Broken()),
            webhooks=cast("Webhooks", Broken()),
            accounts=cast("Accounts", Broken()),
        )
        stage.app.state.gateway = replace(state, services=broken)
        for method, template in ROUTES:
            if template in OPEN | {"/readyz", "/metrics", "/logs", "/openapi.json", *FORMS}:
                continue
            if template == "/mcp":  # its library answers what is no message of the protocol
                continue
            if template in {"/session", "/auth/sign-out"}:  # what is known of the request
                continue
            if template.startswith("/openai/v1/models"):  # a list of names that nothing can fail
                continue
            caplog.clear()
            answer = await send(stage.client(), method, template, UNKNOWN)
            error = assert_error(answer, 500, "internal_error")
            assert "secret" not in answer.text
            logged = [record for record in caplog.records if record.levelno >= logging.ERROR]
            assert [item.__dict__["request_id"] for item in logged] == [error["request_id"]]
            assert logged[0].exc_info is not None


async def test_a_store_that_cannot_be_read_is_told_as_a_fault_that_passes(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await stage.database.close()
        answer = await stage.client().get("/conversations")
        error = assert_error(answer, 503, "storage_unavailable")
        assert error["retryable"] is True
        assert int(answer.headers["retry-after"]) > 0


async def test_every_answer_is_protected_and_named(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        seen = set()
        for method, template in ROUTES:
            for host in ("localhost", "evil"):
                answer = await send(client, method, template, UNKNOWN, headers={"Host": host})
                headers = answer.headers
                assert headers["content-security-policy"] == (
                    "default-src 'none'; script-src 'self'; style-src 'self';"
                    " img-src 'self' data: blob:; connect-src 'self'; frame-src 'self';"
                    " manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                    "form-action 'none'"
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
