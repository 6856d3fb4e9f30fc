"""What the relay sees of a model's service, as people are told it by a real agent's turn: one row for each fact."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.fact_service import (
    HEAD,
    SENTENCE,
    Fact,
    FactService,
    answer,
    fact_service,
    pings,
    refuse,
    say,
)
from tests.support.live_server import DEADLINE_S, Event, LiveServer, running_server, started_server
from tests.support.relays import make_certificate

pytestmark = pytest.mark.e2e

KEY = "sk-ant-api03-" + "k7Qz" * 22 + "AA"
ERROR = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n'
OTHER = "Something else that was begun, and goes on for a while. " * 3
BIG = "All work and no play makes a dull reply.\n" * 8_000 + "The end."
PAGE = say(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>")
JSON = say(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n" + b'{"choices": []}')
EVENTS = say(HEAD + b"event: x\ndata: {oops\n\n")

FAILED = r"The model's service failed \((.*)\); attempt \d follows in \d\.\d s\."
NOT_MESSAGES = "The model's service answered with something that is not the Messages API."
CUT = "The connection to the model's service kept failing (ECONNRESET)."
SILENT = "The model's service was silent for 4 seconds, so this turn was ended."

FACTS: dict[str, tuple[Fact, dict[str, Any], list[str], str]] = {
    # what the service does; the report; the notices; the reply
    "s429": (Fact(refuse(429)), {"status": 429}, ["429, too many requests"] * 2,
             "The model's service kept refusing because of too many requests (429)."),
    "s429_hour": (Fact(refuse(429, retry_after="3600")), {"status": 429, "retry_after_s": 3600.0}, [],
                  "The model's service refused the request (429, too many requests; it asks to wait 60 minutes)."),
    "s429_moment": (Fact(refuse(429, retry_after="1"), times=1), {"retry_after_s": 1.0},
                    ["429, too many requests; it asks to wait 1 s"], SENTENCE),
    "s500": (Fact(refuse(500)), {"status": 500}, ["status 500"] * 2,
             "The model's service kept failing with an error of its own (500)."),
    "s503_day": (Fact(refuse(503, retry_after="86400")), {"retry_after_s": 86400.0}, [],
                 "The model's service refused the request (status 503; it asks to wait 24 hours)."),
    "s307": (Fact(refuse(307, location="https://u:p@login.example/x?t=1")),
             {"kind": "redirected", "detail": "https://login.example"}, [],
             "The model's service redirects to another address (https://login.example) instead of answering (307)."),
    "s302_long": (Fact(refuse(302, location=f"https://{'h' * 66_000}/")), {"kind": "redirected"}, [],
                  "The model's service redirects to another address (https://hhh"),
    "s304": (Fact(refuse(304)), {"kind": "refused", "status": 304}, [], "The model's service failed (304)."),
    "s429_endless": (Fact(refuse(429, retry_after="inf"), times=1), {"status": 429, "retry_after_s": None},
                     ["429, too many requests"], SENTENCE),
    "s503_late": (Fact(refuse(503, retry_after="Mon, 01 Jan 99999 00:00:00 GMT"), times=1), {"status": 503},
                  ["status 503"], SENTENCE),
    "s429_digits": (Fact(refuse(429, retry_after="9" * 5_000), times=1), {"status": 429}, [],
                    "The model's service"),
    "closed": (Fact(say(b"")), {"kind": "unreachable"}, ["the connection broke"] * 2, CUT),
    "cut_once": (Fact(answer(pieces=3), times=1), {"kind": "cut"}, ["the connection broke"], SENTENCE),
    "cut": (Fact(answer(pieces=3)), {"kind": "cut"}, ["the connection broke"], CUT),
    "block_thrice": (Fact(answer(pieces=4), times=3), {"kind": "cut"}, ["answer_restarted"] * 3, SENTENCE),
    "error_once": (Fact(answer(OTHER, pieces=3, then=ERROR), times=1), {"status": 529},
                   ["answer_restarted"], SENTENCE),
    "no_http": (Fact(say(b"SSH-2.0-OpenSSH_9\r\n")), {"kind": "not_messages"},
                ["its answer was not of the Messages API"] * 2, NOT_MESSAGES),
    "page": (Fact(PAGE, unstreamed=PAGE), {"kind": "not_messages"}, [], NOT_MESSAGES),
    "other_api": (Fact(JSON, unstreamed=JSON), {"kind": "not_messages"}, [], NOT_MESSAGES),
    "no_events": (Fact(EVENTS, unstreamed=EVENTS), {"kind": "not_messages"}, [], NOT_MESSAGES),
    "silent": (Fact(answer(pieces=0, hold_s=60)), {}, ["model_silent"], SILENT),
    "pause": (Fact(answer(pieces=3, hold_s=60)), {}, ["model_silent"], f"{SENTENCE}\n\n{SILENT}"),
    "pings": (Fact(pings), {}, ["model_silent"], SILENT),
    "big": (Fact(answer(BIG, piece_chars=400)), {}, [], BIG),
}  # fmt: skip


@pytest.fixture(scope="module")
def service() -> Iterator[FactService]:
    with fact_service({name: row[0] for name, row in FACTS.items()}) as service:
        yield service


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, service: FactService) -> Iterator[LiveServer]:
    with started_server(
        tmp_path_factory.mktemp("facts"),
        command=None,
        model="candor-demo",
        model_silence_s=4,
        environ=environ(service.url),
    ) as server:
        yield server


@pytest.fixture(scope="module")
def conversation(server: LiveServer) -> str:
    """Return the one conversation of the facts, which goes on after each; memory would repeat their names."""
    conversation = server.new_conversation()
    url = f"{server.url}/conversations/{conversation}"
    assert httpx.patch(
        url, json={"memory": {"enabled": False}}, timeout=DEADLINE_S, trust_env=False
    ).is_success
    return conversation


def environ(url: str) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY, "CLAUDE_CODE_MAX_RETRIES": "2"}


def told(notice: dict[str, Any]) -> str:
    """Return what failed for a retry, else the notice's code."""
    failed = re.fullmatch(FAILED, notice["message"])
    return failed[1] if failed else str(notice["code"])


def kept(events: list[Event]) -> str:
    """Return the streamed text as a client keeps it; see docs/http.md."""
    text = ""
    for event in events:
        if event.type == "text.delta":
            text += event.data["text"]
        elif void := event.data.get("void_text_chars", 0):
            text = text[:-void]
    return text


@pytest.mark.parametrize("name", FACTS)
async def test_a_fact_of_the_service_is_told(
    server: LiveServer, conversation: str, name: str
) -> None:
    _, report, notices, reply = FACTS[name]
    async with server.client() as client, client.stream(f"FACT:{name}", conversation) as stream:
        events = await stream.rest()
    result = events[-1].data
    assert result["reply"].startswith(reply)
    assert [told(notice) for notice in result["notices"]] == notices
    if result["outcome"] == "answered":
        assert kept(events) == result["reply"] == reply
    errors = [line for line in server.journal(result) if line["kind"] == "error"]
    reports = [line["report"] for line in errors if line["where"] == "service"]
    assert bool(reports) == bool(report)
    assert not report or reports[0].items() >= report.items()
    assert KEY not in str(events)


async def test_a_service_that_proves_no_identity_is_told(tmp_path: Path) -> None:
    _, context = await make_certificate(tmp_path)
    with fact_service({}, context) as service:
        url = service.url.replace("http://127.0.0.1", "https://localhost")
        async with (
            running_server(tmp_path, command=None, model="any", environ=environ(url)) as server,
            server.client() as client,
        ):
            result = await client.ask("hello")
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "api_error")
    sentence = "The model's service could not be reached safely (CERTIFICATE_VERIFY_FAILED)."
    assert result["reply"].startswith(sentence)
