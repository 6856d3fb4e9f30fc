"""The relay's plan and the answers that it reads."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from gateway.credentials import Credential
from gateway.relay import calls
from gateway.relay.answers import AnswerReader
from gateway.relay.calls import seconds_to_wait
from gateway.relay.plan import agent_variables, plan_relay, proxy_for
from gateway.relay.upstream import Target

URL = "https://api.example/base"
KEY = Credential(kind="key", found="ANTHROPIC_API_KEY")
SERVER = Credential(kind="server", found="ANTHROPIC_BASE_URL")

Environ = Mapping[str, str]


BOTH = {"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": "k"}
MORE = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_CUSTOM_HEADERS": "A: b:c\n\nno colon\nHost: x\nD:e"}
HEADERS: list[tuple[Credential, Environ, list[tuple[str, str]]]] = [
    (KEY, {"ANTHROPIC_API_KEY": " k "}, [("x-api-key", "k")]),
    (KEY, {"ANTHROPIC_AUTH_TOKEN": "t"}, [("authorization", "Bearer t")]),
    (KEY, BOTH, [("authorization", "Bearer t"), ("x-api-key", "k")]),
    (SERVER, {}, [("x-api-key", "no-key")]),
    (KEY, MORE, [("A", "b:c"), ("D", "e"), ("x-api-key", "k")]),
]
REASONS: list[tuple[Credential, Environ, str]] = [
    (Credential(kind="provider", found="CLAUDE_CODE_USE_BEDROCK"), {}, "sign in (CLAUDE_CODE"),
    (Credential(kind="login", found="a login"), {}, "sign in (a login)"),
    (Credential(kind="key", found="CLAUDE_CODE_OAUTH_TOKEN"), {}, "sign in (CLAUDE_CODE_OAUTH"),
    (KEY, {"ANTHROPIC_UNIX_SOCKET": "/run/x"}, "ANTHROPIC_UNIX_SOCKET"),
    (KEY, {"HTTPS_PROXY": "socks5://p:1080"}, "proxy"),
    (KEY, {"HTTPS_PROXY": "http://p:x"}, "an address is wrong: Port could not be cast"),
]
PROXIES: list[tuple[Environ, str | None]] = [
    ({}, None),
    ({"HTTPS_PROXY": "p:3128", "HTTP_PROXY": "q"}, "http://p:3128"),
    ({"HTTPS_PROXY": "http://p", "https_proxy": "http://small"}, "http://small"),
    ({"ALL_PROXY": "http://p"}, "http://p"),
    ({"HTTPS_PROXY": "http://p", "NO_PROXY": "other, .example"}, None),
    ({"HTTPS_PROXY": "http://p", "NO_PROXY": "API.example"}, None),
    ({"HTTPS_PROXY": "http://p", "NO_PROXY": "pi.example,"}, "http://p"),
    ({"HTTPS_PROXY": "http://p", "no_proxy": "*"}, None),
    ({"HTTPS_PROXY": "http://p", "no_proxy": "a, *.example"}, None),
]


def test_it_sends_what_the_agent_program_would_or_says_why_it_cannot() -> None:
    for credential, environ, headers in HEADERS:
        target = plan_relay(URL, credential, environ)
        assert isinstance(target, Target)
        assert target.headers == headers
    for credential, environ, reason in REASONS:
        assert reason in str(plan_relay(URL, credential, environ))
    for environ, proxy in PROXIES:
        assert proxy_for(URL, environ) == proxy, environ


def test_only_credentials_are_hidden_in_answers() -> None:
    own = "X-Env: production\nX-Auth-Token: a-token-0\nCookie: sid=012345\nX-Secret: short"
    names = {"ANTHROPIC_AUTH_TOKEN": "sk-token-1", "ANTHROPIC_API_KEY": "sk-key-2"}
    target = plan_relay(URL, KEY, {**names, "ANTHROPIC_CUSTOM_HEADERS": own})
    assert isinstance(target, Target)
    assert target.secrets == ["a-token-0", "sid=012345", "sk-token-1", "sk-key-2"]


def test_the_relay_is_reached_past_the_proxy() -> None:
    variables = agent_variables("http://127.0.0.1:5", {"NO_PROXY": "lan"})
    assert variables["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:5"
    assert variables["NO_PROXY"] == variables["no_proxy"] == "lan,127.0.0.1"


STREAM, JSON = "text/event-stream; charset=utf-8", "application/json"


def event(data: Any) -> bytes:
    return f"event: x\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def start(name: Any, kind: str = "tool_use") -> dict[str, Any]:
    block = {"type": kind, "id": "t", "name": name, "input": {}}
    return {"type": "content_block_start", "index": 0, "content_block": block}


BEGIN = event({"type": "message_start", "message": {}})
END = event({"type": "message_stop"})
PING = event({"type": "ping"})


def read(content_type: str, *pieces: bytes) -> tuple[bytes, str | None]:
    reader = AnswerReader(content_type)
    out = b"".join([*map(reader.take, pieces), reader.end()])
    return out, reader.fault


def test_an_answer_passes_unchanged_however_it_is_cut() -> None:
    text = {"type": "content_block_delta", "delta": {"text": 'tool_use "content_block_start" 你'}}
    start_, other = event(start("Bash")), event(start(5, "server"))
    whole = b"".join((BEGIN, start_, event(text), other, END, b": end\r\n\r\nx"))
    for size in (1, 2, 7, 1000):
        pieces = [whole[n : n + size] for n in range(0, len(whole), size)]
        assert read(STREAM, *pieces) == (whole, None)
    for body in (b'{"content" : [ {"type":"tool_use","name":"x"} ]}', b'{"input_tokens":3 }'):
        assert read(JSON, body[:5], body[5:]) == (body, None)
    line = b"data: " + b"x" * 3_000_000
    assert read(STREAM, line, line)[0] == line * 2, "an endless line is passed on"


def test_a_whole_line_does_not_wait() -> None:
    reader = AnswerReader(STREAM)
    assert reader.take(BEGIN + b"data: {") == BEGIN
    assert reader.take(b"}\n") == b"data: {}\n"


def test_a_call_without_a_usable_name_gets_one() -> None:
    names: list[Any] = [7, None, True, ["Bash"], {"a": 1}]
    for name in names:
        out, fault = read(STREAM, BEGIN + event(start(name)) + END)
        assert (out, fault) == (BEGIN + event(start("unnamed")) + END, None)
        body = {"content": [start(name)["content_block"], start("Bash")["content_block"]]}
        out, _ = read(JSON, json.dumps(body).encode())
        assert [block["name"] for block in json.loads(out)["content"]] == ["unnamed", "Bash"]


NO_ANSWERS = [
    *(("text/html", b"<html>"), (JSON, b"{not json"), (JSON, b'{"choices": []}')),
    *((STREAM, b"event: x\ndata: {oops\n\n"), (STREAM, b"data: [DONE]\n\n"), (STREAM, b"")),
]


def test_what_is_no_answer_is_noticed_and_passes() -> None:
    for content_type, body in NO_ANSWERS:
        assert read(content_type, body) == (body, "not_messages")


def test_a_stream_that_ends_early_is_noticed() -> None:
    assert read(STREAM, BEGIN + event(start("Bash"))) == (BEGIN + event(start("Bash")), "cut")


def test_an_error_in_the_stream_is_noticed_at_once() -> None:
    reader = AnswerReader(STREAM)
    text = {"type": "content_block_delta", "delta": {"text": '{"type": "error"}'}}
    reader.take(BEGIN + event(text))
    before = reader.fault
    reader.take(event({"type": "error", "error": {"type": "rate_limit_error"}}))
    reader.end()
    assert (before, reader.fault, reader.status) == (None, "refused", 429)


def test_a_sign_of_life_is_no_content() -> None:
    delta = {"type": "text_delta", "text": ""}
    empty = event({"type": "content_block_delta", "delta": delta})
    text = event({"type": "content_block_delta", "delta": {**delta, "text": "ping"}})
    unknown = event({"type": "heartbeat", "at": 7})
    signs = dict.fromkeys((PING, PING + PING, b": alive\n\n", b"data: {", empty, unknown), False)
    for piece, has_content in (signs | {BEGIN: True, PING + text: True}).items():
        reader = AnswerReader(STREAM)
        reader.take(piece)
        assert reader.has_content == has_content


def test_a_service_asks_to_wait_for_seconds_or_until_a_date_and_never_less_than_none() -> None:
    told = {"7": 7.0, "-7": 0.0, "Sun, 06 Nov 1994 08:49:37 GMT": 0.0, "soon": None, "": None}
    assert {words: seconds_to_wait(words) for words in told} == told


def test_the_time_in_which_an_agent_does_not_read_is_no_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = iter([0.0, 1.0, 6.0])
    monkeypatch.setattr(calls, "now", lambda: next(times))
    client = calls.Client("agent-1")
    call = calls.Call(client, b"/v1/messages")
    with call, call.blocked():
        assert (client.blocked, client.open_calls) == (1, 1)
    assert (client.blocked, client.open_calls, client.heard_at) == (0, 0, 5.0)
