"""Bodies and callers that each route refuses."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from gateway.http.context import HttpLimits
from tests.service.http.every_route import OPEN, ROUTES, UNKNOWN, WITH_BODY, WITH_IDS, send
from tests.service.http.stage import LIMIT_S, Stage, assert_error, one_client, staged


async def test_every_route_refuses_a_body_that_says_it_is_too_large(tmp_path: Path) -> None:
    async with one_client(tmp_path, max_body_bytes=1024, max_upload_bytes=1024) as client:
        for method, template in ROUTES:
            answer = await send(
                client, method, template, UNKNOWN, content=b'"' + b"x" * 1024 + b'"'
            )
            error = assert_error(answer, 413, "body_too_large")
            assert error["details"] == {"max_bytes": 1024}


UNKNOWN_FIELDS = [b'{"no such field": 1}', b'{"' + b"k" * 100_000 + b'": 1}']
BROKEN = [
    *(b"", b"not json", b"[]", b"null", b"7", b'"text"', b'{"message": NaN}'),
    *(b'{"message": -Infinity}', b'{"message": "a"', b'{"message": "a"} x', b"\xef\xbb\xbf{}"),
    *(b"\xff\xfe{\x00}\x00", b'{"message": "\xe4\xb8"}', b'{"message": ' + b"9" * 5000 + b"}"),
    *(b"[" * 100_000, b'{"a":' * 100_000, b'{"\\ud800": 1}', *UNKNOWN_FIELDS),
]
IGNORING = ("/anthropic/", "/openai/v1/conversations")
"""Routes of other protocols whose bodies need no field."""
BODY_OPTIONAL = {
    *{"/new-conversation", "/schedules/{schedule_id}/run", "/webhooks/{webhook_id}/secret"}
}
TYPES = [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]


def status_of_refusal(template: str) -> int:
    """Return the status for a body that is not valid: 400 is that of Anthropic's protocol."""
    return 400 if template.startswith("/anthropic/") else 422


async def test_every_route_that_reads_a_body_refuses_a_broken_one(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for method, template in WITH_BODY:
            for content in BROKEN:
                if template in BODY_OPTIONAL and not content:
                    continue  # its body may be left out
                if template.startswith(IGNORING) and content in UNKNOWN_FIELDS:
                    continue  # of other protocols' fields many mean nothing here
                answer = await send(
                    client,
                    method,
                    template,
                    UNKNOWN,
                    content=content,
                    headers={"Content-Type": "application/json"},
                )
                error = assert_error(answer, status_of_refusal(template), "invalid_request")
                assert len(answer.content) < 1000
                assert "pydantic" not in error["message"]


async def test_a_body_must_be_called_json(tmp_path: Path) -> None:
    """Any page can make a browser send a simple type; JSON it has to ask for, and is not let."""
    async with one_client(tmp_path) as client:
        for method, template in WITH_BODY:
            for media_type in TYPES:
                headers = {} if media_type is None else {"Content-Type": media_type}
                answer = await send(
                    client, method, template, UNKNOWN, content=b"{}", headers=headers
                )
                error = assert_error(answer, status_of_refusal(template), "invalid_request")
                assert "application/json" in error["message"]


async def test_json_may_name_its_charset(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        answer = await client.post(
            "/chat",
            content='{"message": "é"}'.encode(),
            headers={"Content-Type": "Application/JSON; charset=utf-8"},
        )
        assert answer.json()["reply"] == "You said: é"


FOREIGN = [
    {"Host": "evil.example"},
    {"Host": "192.168.1.1"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
]
OWN_HOSTS = ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.0.0.1:", "[::1]", "[::1]:9"]


async def test_every_route_refuses_a_host_or_page_that_is_not_ours(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for method, template in ROUTES:
            for headers in FOREIGN:
                answer = await send(client, method, template, UNKNOWN, headers=headers)
                assert_error(answer, 403, "forbidden")
        for host in OWN_HOSTS:
            answer = await client.get("/conversations", headers={"Host": host})
            assert answer.status_code == 200


async def test_another_site_that_names_no_page_can_link_here_and_nothing_else(
    tmp_path: Path,
) -> None:
    """A page that loads an answer in passing could time it, and a form could change something."""
    async with one_client(tmp_path) as client:
        for method, template in ROUTES:
            if template.endswith("/events"):
                continue
            for site, mode in product(("cross-site", "same-site"), ("no-cors", "navigate")):
                headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
                answer = await send(client, method, template, UNKNOWN, headers=headers)
                is_link = method == "GET" and mode == "navigate"
                assert (answer.status_code == 403) != is_link, (template, headers)


async def test_every_route_but_the_page_and_its_pulse_needs_a_token(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",)) as stage:
        token = stage.tokens["ada"]
        given = [None, "", "Bearer", "Bearer wrong", f"Basic {token}", f"Bearer {token}x", token]
        client = stage.client()
        for method, template in ROUTES:
            for credentials in given:
                headers = {} if credentials is None else {"Authorization": credentials}
                answer = await send(client, method, template, UNKNOWN, headers=headers)
                if template in OPEN:
                    assert answer.status_code != 401
                elif answer.status_code == 429:  # one more of many unknown tokens
                    assert_error(answer, 429, "too_many_attempts")
                    assert credentials not in {None, "", "Bearer"}
                else:
                    assert_error(answer, 401, "unauthorised")
                    assert answer.headers["www-authenticate"] == "Bearer"
        assert_error(await client.get("/no-such-route"), 401, "unauthorised")
        twice = [("Authorization", f"Bearer {token}"), ("Authorization", "Bearer other")]
        keys = [("X-Api-Key", token), ("X-Api-Key", "other")]
        for given_twice in (twice, keys):
            refused = await client.get("/conversations", headers=given_twice)
            assert_error(refused, 401, "unauthorised")
        answer = await client.get("/conversations", headers={"X-Api-Key": token})
        assert answer.status_code == 200


async def test_no_token_is_asked_for_before_the_size_of_a_body_is_known(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",), max_body_bytes=1024) as stage:
        answer = await stage.client().post("/chat", content=b"x" * 1025)
        assert_error(answer, 413, "body_too_large")


async def test_an_id_that_never_was_is_not_found(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for method, template in WITH_IDS:
            assert_error(await send(client, method, template, UNKNOWN), 404, "not_found")


HEAD = (
    b"POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Connection: close\r\n"
)


async def _all(stream: anyio.abc.ByteStream) -> tuple[int, dict[str, Any]]:
    received = b""
    with anyio.fail_after(LIMIT_S):
        try:
            while True:
                received += await stream.receive()
        except anyio.EndOfStream:
            head, _, body = received.partition(b"\r\n\r\n")
            return int(head.split()[1]), json.loads(body)


async def _exchange(stage: Stage, sent: bytes) -> tuple[int, dict[str, Any]]:
    assert stage.port is not None
    async with await anyio.connect_tcp("127.0.0.1", stage.port) as stream:
        await stream.send(sent)
        return await _all(stream)


async def test_a_body_in_pieces_is_counted_as_it_comes(tmp_path: Path) -> None:
    soon = HttpLimits(discard_deadline_s=0.1)
    async with staged(tmp_path, on_port=True, limits=soon, max_body_bytes=1024) as stage:
        piece = b"200\r\n" + b"x" * 512 + b"\r\n"
        sent = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + 3 * piece
        status, body = await _exchange(stage, sent)  # its end is never sent
        assert (status, body["error"]["code"]) == (413, "body_too_large")


async def test_a_client_that_sends_far_too_much_still_gets_to_read_why(tmp_path: Path) -> None:
    async with one_client(tmp_path, on_port=True) as client:
        answer = await client.post("/chat", content=b"x" * 20_000_000)
        assert_error(answer, 413, "body_too_large")


async def test_a_client_that_leaves_in_the_middle_of_its_body_does_no_harm(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        assert stage.port is not None
        async with await anyio.connect_tcp("127.0.0.1", stage.port) as stream:
            await stream.send(HEAD + b'Content-Length: 20\r\n\r\n{"mess')
        answer = await stage.client().post("/chat", json={"message": "hi"})
        assert answer.status_code == 200
        conversations = (await stage.client().read("/conversations"))["conversations"]
        assert len(conversations) == 1


def input_of(part: object) -> Any:
    return {"input": [{"type": "message", "role": "user", "content": [part]}]}


def run_of(part: object) -> Any:
    return {
        "threadId": "线程",
        "runId": "run",
        "messages": [{"role": "user", "content": [part]}],
    }


WRONG_PARTS: list[tuple[str, Any]] = [
    *(("/ag-ui", run_of(part)) for part in (1, {"type": 5}, {"type": "text", "text": 5})),
    ("/ag-ui", run_of({"type": "图片", "text": "猫"})),
    ("/openai/v1/responses", input_of({"type": "image_url"})),
    ("/openai/v1/responses", input_of({"type": "image_url", "image_url": "data:image/png,"})),
    ("/openai/v1/responses", input_of({"type": "file"})),
    ("/openai/v1/responses", input_of({"type": "input_file", "file_id": "f" * 401})),
    (
        "/openai/v1/responses",
        input_of({"type": "input_file", "file_data": "AAAA", "filename": "文" * 401}),
    ),
]


async def test_a_part_of_a_message_that_has_no_valid_form_is_refused(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for path, body in WRONG_PARTS:
            assert_error(await client.post(path, json=body), 422, "invalid_request")
