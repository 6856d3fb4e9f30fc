"""Every route that reads a body refuses one that is too large, broken or not called JSON."""

from pathlib import Path

from tests.service.http.every_route import ROUTES, UNKNOWN, WITH_BODY, send
from tests.service.http.stage import assert_error, staged


async def test_every_route_refuses_a_body_that_says_it_is_too_large(tmp_path: Path) -> None:
    async with staged(tmp_path, max_body_bytes=1024) as stage:
        for method, template in ROUTES:
            answer = await send(
                stage.client(), method, template, UNKNOWN, content=b'"' + b"x" * 1024 + b'"'
            )
            error = assert_error(answer, 413, "body_too_large")
            assert error["details"] == {"max_bytes": 1024}


BROKEN = [
    *(b"", b"not json", b"[]", b"null", b"7", b'"text"', b'{"message": NaN}'),
    *(b'{"message": -Infinity}', b'{"message": "a"', b'{"message": "a"} x', b"\xef\xbb\xbf{}"),
    *(b"\xff\xfe{\x00}\x00", b'{"message": "\xe4\xb8"}', b'{"message": ' + b"9" * 5000 + b"}"),
    *(b"[" * 100_000, b'{"a":' * 100_000, b'{"no such field": 1}', b'{"\\ud800": 1}'),
    b'{"' + b"k" * 100_000 + b'": 1}',
]
TYPES = [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]


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


async def test_a_body_must_be_called_json(tmp_path: Path) -> None:
    """Any page can make a browser send a simple type; JSON it has to ask for, and is not let."""
    async with staged(tmp_path) as stage:
        for method, template in WITH_BODY:
            for media_type in TYPES:
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
