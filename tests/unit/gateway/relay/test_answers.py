"""What passes through the relay is as it came, but for a tool call that has no usable name."""

import json
from typing import Any

import pytest

from gateway.relay.answers import AnswerReader

STREAM, JSON = "text/event-stream; charset=utf-8", "application/json"


def event(data: Any) -> bytes:
    return f"event: x\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def start(name: Any, kind: str = "tool_use") -> dict[str, Any]:
    block = {"type": kind, "id": "t", "name": name, "input": {}}
    return {"type": "content_block_start", "index": 0, "content_block": block}


BEGIN = event({"type": "message_start", "message": {}})


def read(content_type: str, *pieces: bytes) -> tuple[bytes, str | None]:
    reader = AnswerReader(content_type)
    out = b"".join([*map(reader.take, pieces), reader.end()])
    return out, reader.fault


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_an_answer_passes_unchanged_however_it_is_cut(size: int) -> None:
    text = {"type": "content_block_delta", "delta": {"text": 'tool_use "content_block_start" 你'}}
    whole = (
        BEGIN + event(start("Bash")) + event(text) + event(start(5, "server")) + b": end\r\n\r\nx"
    )
    pieces = [whole[n : n + size] for n in range(0, len(whole), size)]
    assert read(STREAM, *pieces) == (whole, None)


def test_a_whole_line_does_not_wait() -> None:
    reader = AnswerReader(STREAM)
    assert reader.take(BEGIN + b"data: {") == BEGIN
    assert reader.take(b"}\n") == b"data: {}\n"


@pytest.mark.parametrize("name", [7, None, True, ["Bash"], {"a": 1}])
def test_a_call_without_a_usable_name_gets_one(name: Any) -> None:
    out, fault = read(STREAM, BEGIN + event(start(name)) + event({"type": "message_stop"}))
    assert out == BEGIN + event(start("unnamed")) + event({"type": "message_stop"})
    body = {"content": [start(name)["content_block"], start("Bash")["content_block"]]}
    out, _ = read(JSON, json.dumps(body).encode())
    assert [block["name"] for block in json.loads(out)["content"]] == ["unnamed", "Bash"]
    assert fault is None


def test_a_whole_body_passes_byte_for_byte() -> None:
    for body in (b'{"content" : [ {"type":"tool_use","name":"x"} ]}', b'{"input_tokens":3 }'):
        assert read(JSON, body[:5], body[5:]) == (body, None)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", b"<html>"),
        (JSON, b"{not json"),
        (JSON, b'{"choices": []}'),
        (STREAM, b"event: x\ndata: {oops\n\n"),
        (STREAM, b"data: [DONE]\n\n"),
        (STREAM, b""),
    ],
)
def test_what_is_no_answer_is_noticed_and_passes(content_type: str, body: bytes) -> None:
    assert read(content_type, body) == (body, "not_messages")


def test_an_endless_line_is_passed_on() -> None:
    line = b"data: " + b"x" * 3_000_000
    assert read(STREAM, line, line)[0] == line * 2
