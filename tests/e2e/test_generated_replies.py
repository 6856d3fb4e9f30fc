"""Generated model replies through the real server and agent process: each result against what really happened."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings

from tests.support.live_server import LiveServer, started_server
from tests.support.model_replies import (
    Answer,
    Call,
    ModelTurn,
    Places,
    Words,
    model_turns,
    replies,
)
from tests.support.raw_model import RawModel, raw_model
from tests.support.seeds import drawn_seed
from tests.support.turn_facts import MARK, TurnFacts, effects, violations

pytestmark = pytest.mark.e2e

IN_ORDINARY_RUN = 4
IN_SOAK = 2000
TURNS_A_CONVERSATION = 25
TIMEOUT_S = 90.0


@dataclass(slots=True)
class Gateway:
    """A server on the raw model, one conversation after another."""

    server: LiveServer
    model: RawModel
    places: Places
    http: httpx.Client
    names: Iterator[int] = field(default_factory=itertools.count)
    conversation_id: str = ""
    results: list[Mapping[str, Any]] = field(default_factory=list)
    statuses: set[str] = field(default_factory=set)
    """Of all calls so far."""
    decisions: set[str] = field(default_factory=set)
    """Of the person who was asked."""

    def play(self, turn: ModelTurn) -> TurnFacts:
        """Run one turn whose answers are these."""
        name = next(self.names)
        if name % TURNS_A_CONVERSATION == 0:
            self.turn_over()
        self.model.replies.clear()
        self.model.replies.extend(replies(turn, str(name), self.places))
        body = {
            "message": "Do what is to be done.",
            "conversation_id": self.conversation_id,
            "when_busy": "reject",
        }
        events = list(self._events(body))
        facts = TurnFacts(
            events=events,
            journal=self.server.journal(events[-1][2]),
            effects=_of_turn(effects(self.places.workspace), name),
            escaped=self.escaped(),
        )
        self.results.append(facts.result)
        self.statuses |= {call["status"] for call in facts.result["tools"]}
        return facts

    def _events(self, body: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Send a message and give its events; every second call that a person is asked about is denied."""
        with self.http.stream("POST", "/chat/stream", json=body) as answer:
            assert answer.status_code == 200
            for block in _blocks(answer):
                event = _event(block)
                if event[1] == "approval.requested":
                    mark = MARK.search(event[2]["summary"])
                    denied = mark is not None and sum(map(int, mark[0][1:].split("_"))) % 2 == 0
                    decision = "deny" if denied else "allow"
                    self.decisions.add(decision)
                    place = f"/approvals/{event[2]['approval_id']}"
                    self.http.post(place, json={"decision": decision})
                yield event

    def escaped(self) -> list[str]:
        """List what is where nothing may be written."""
        protected = (self.places.workspace / ".claude").glob("m*")
        return sorted(str(path) for path in (*self.places.outside.iterdir(), *protected))

    def turn_over(self) -> None:
        """Start a conversation; the one before has kept the results that it gave."""
        if self.conversation_id:
            kept = self.http.get(f"/conversations/{self.conversation_id}/messages").json()
            told = [
                message["result"] for message in kept["messages"] if message["role"] == "assistant"
            ]
            assert told == self.results
        self.results.clear()
        self.conversation_id = self.server.new_conversation()


def _blocks(answer: httpx.Response) -> Iterator[str]:
    rest = b""
    for chunk in answer.iter_bytes():
        *whole, rest = (rest + chunk).split(b"\n\n")
        yield from (block.decode() for block in whole if block.startswith(b"id:"))


def _event(block: str) -> tuple[str, str, dict[str, Any]]:
    fields = dict(line.split(": ", 1) for line in block.split("\n"))
    return fields["id"], fields["event"], json.loads(fields["data"])


def _of_turn(found: AbstractSet[str], name: int) -> set[str]:
    return {mark for mark in found if mark.startswith(f"m{name}_")}


@contextmanager
def opened_gateway(directory: Path, **more: Any) -> Iterator[Gateway]:
    """Run a server on a raw model."""
    places = Places(directory / "workspace", directory / "outside")
    places.outside.mkdir()
    with raw_model() as model:
        environ = {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "no-key",
            "CLAUDE_CODE_MAX_RETRIES": "1",
        }
        with (
            started_server(directory, command=None, model="raw", environ=environ, **more) as server,
            httpx.Client(
                base_url=server.url, timeout=TIMEOUT_S, trust_env=False, verify=False
            ) as http,
        ):
            yield Gateway(server, model, places, http)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with opened_gateway(tmp_path_factory.mktemp("replies")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that asks a person about each call that changes something."""
    with opened_gateway(tmp_path_factory.mktemp("asking"), approvals="on") as gateway:
        yield gateway


def run_many(gateway: Gateway, count: int, chosen: int) -> None:
    """Play so many generated turns, and shrink what breaks a rule."""

    @seed(chosen)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(model_turns)
    def run(turn: ModelTurn) -> None:
        facts = gateway.play(turn)
        note(json.dumps(facts.result, ensure_ascii=False)[:2000])
        assert violations(facts) == []

    run()


HONEST = ModelTurn(
    (
        Answer(
            (Call("write", "new"), Words("text", "Two."), Call("write outside", "new")), "tool_use"
        ),
    )
)


def told(facts: TurnFacts, **changes: Any) -> TurnFacts:
    """Return the same turn with another result."""
    *before, (event_id, kind, result) = facts.events
    return replace(facts, events=[*before, (event_id, kind, {**result, **changes})])


def with_status(facts: TurnFacts, status: str) -> TurnFacts:
    """Return the same turn whose denied call has another status wherever it is told."""
    swap = {"denied": status}
    events = [
        (event_id, kind, {**data, "status": swap.get(data["status"], data["status"])})
        if kind == "tool.finished"
        else (event_id, kind, data)
        for event_id, kind, data in facts.events
    ]
    journal = [
        {**line, "status": swap.get(line["status"], line["status"])}
        if line["kind"] == "tool"
        else line
        for line in facts.journal
    ]
    calls = [
        {**call, "status": swap.get(call["status"], call["status"])}
        for call in facts.result["tools"]
    ]
    return told(replace(facts, events=events, journal=journal), tools=calls)


BOTH_DECISIONS = ModelTurn((Answer((Call("write", "new"), Call("mkdir", "new")), "tool_use"),))


LIES: Mapping[str, Callable[[TurnFacts], TurnFacts]] = {
    "the denied call was ok": lambda facts: with_status(facts, "ok"),
    "the denied call failed": lambda facts: with_status(facts, "failed"),
    "the turn went well": lambda facts: told(facts, outcome="answered"),
    "there was one call": lambda facts: told(facts, tools=facts.result["tools"][:1]),
    "calls have no number": lambda facts: told(
        facts, tools=[{**call, "index": 1} for call in facts.result["tools"]]
    ),
    "what was written is not there": lambda facts: replace(facts, effects=set()),
    "something else was written": lambda facts: replace(facts, effects={*facts.effects, "m0_9"}),
    "something was written outside": lambda facts: replace(facts, escaped=["outside/m0_3.txt"]),
    "an event is missing": lambda facts: replace(
        facts, events=[*facts.events[:1], *facts.events[2:]]
    ),
    "it completed twice": lambda facts: replace(facts, events=[*facts.events, facts.events[-1]]),
    "a call was never finished": lambda facts: replace(
        facts, events=[item for item in facts.events if item[1] != "tool.finished"]
    ),
    "a decision was not written down": lambda facts: replace(
        facts, journal=[line for line in facts.journal if line["kind"] != "permission"]
    ),
    "a call was not written down": lambda facts: replace(
        facts, journal=[line for line in facts.journal if line["kind"] != "tool"]
    ),
    "the reply is raw": lambda facts: told(facts, reply='API Error: 529 {"type":"error"}'),
    "the reply is empty": lambda facts: told(facts, reply=" "),
}


def test_lies_about_a_turn_are_found(gateway: Gateway) -> None:
    honest = gateway.play(HONEST)
    assert violations(honest) == []
    assert [name for name, lie in LIES.items() if violations(lie(honest)) == []] == []


def test_results_tell_what_happened_whatever_the_model_sends(gateway: Gateway) -> None:
    run_many(gateway, IN_ORDINARY_RUN, chosen=1)


def test_results_tell_what_a_person_denied_whatever_the_model_sends(asking: Gateway) -> None:
    assert violations(asking.play(BOTH_DECISIONS)) == []
    assert (asking.decisions, asking.statuses) == ({"allow", "deny"}, {"ok", "denied"})
    run_many(asking, IN_ORDINARY_RUN // 2, chosen=6)


@pytest.mark.soak
def test_results_tell_what_happened_for_long(gateway: Gateway) -> None:
    run_many(gateway, IN_SOAK, chosen=drawn_seed("generated replies"))


@pytest.mark.soak
def test_results_tell_what_a_person_denied_for_long(asking: Gateway) -> None:
    run_many(asking, IN_SOAK // 4, chosen=drawn_seed("generated replies with approvals"))
