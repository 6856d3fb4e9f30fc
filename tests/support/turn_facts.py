"""Holds what a turn's result says against what happened: the disk, the gate's decisions and the turn's events.

The rules are those of the HTTP contract. Nothing of the gateway is used to judge it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

MARK = re.compile(r"m\d+_\d+")
"""What tells calls apart; a call that is made again has the mark of the first."""
DOOM_LOOP = 5
"""The default of CANDOR_DOOM_LOOP_THRESHOLD."""
OUTCOMES = {
    "answered",
    "answered_with_failures",
    "tool_failed",
    "interrupted",
    "stopped",
    "engine_failed",
    "empty",
}
STATUSES = {"ok", "failed", "denied", "interrupted", "unknown"}
UNCERTAIN = {"unknown", "interrupted"}
STOP_REASONS = {
    "end_turn",
    "user_interrupt",
    "policy_interrupt",
    "doom_loop",
    "max_turns",
    "timeout",
    "budget",
    "api_error",
    "engine_crash",
    "refusal",
    "model_timeout",
    "context_window",
    "shutdown",
}
_NOT_FOR_PEOPLE = ("API Error", "<tool_use_error>", "Traceback", '{"type":', '{"error":')


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """One turn as its events and its journal tell it, and what it left on disk."""

    events: Sequence[tuple[str, str, Mapping[str, Any]]]
    """Id, type and data of each, in order."""
    journal: Sequence[Mapping[str, Any]]
    effects: AbstractSet[str]
    """The marks of the calls that left a file or folder in the workspace."""
    escaped: Sequence[str]
    """What was written where nothing may be."""

    @property
    def result(self) -> Mapping[str, Any]:
        """The turn result."""
        return self.events[-1][2]


def effects(workspace: Path) -> set[str]:
    """Return the marks of the files and folders in a workspace."""
    return {mark[0] for path in workspace.iterdir() if (mark := MARK.match(path.name))}


def violations(facts: TurnFacts) -> list[str]:
    """List every statement of the contract that does not hold for a turn."""
    checks = (_of_events, _of_result, _of_calls, _of_effects, _of_loops, _of_permissions, _of_reply)
    return [wrong for check in checks for wrong in check(facts)]


def _of_events(facts: TurnFacts) -> Iterator[str]:
    ids = [event_id for event_id, _, _ in facts.events]
    turn_id = facts.result["turn_id"]
    if ids != [f"{turn_id}:{n}" for n in range(1, len(ids) + 1)]:
        yield f"the ids of the events have gaps: {ids}"
    if [kind for _, kind, _ in facts.events].count("turn.completed") != 1:
        yield "turn.completed did not come exactly once"
    if facts.events[-1][1] != "turn.completed":
        yield f"the last event is {facts.events[-1][1]}"


def _of_result(facts: TurnFacts) -> Iterator[str]:
    result = facts.result
    statuses = [call["status"] for call in result["tools"]]
    if result["outcome"] not in OUTCOMES or result["stop_reason"] not in STOP_REASONS:
        yield f"an outcome that the contract does not have: {result['outcome']}/{result['stop_reason']}"
    if not set(statuses) <= STATUSES:
        yield f"a status that the contract does not have: {statuses}"
    all_ok = set(statuses) <= {"ok"}
    if result["outcome"] in {"answered", "empty"} and not all_ok:
        yield f"{result['outcome']} although calls were {statuses}"
    if result["outcome"] in {"answered_with_failures", "tool_failed"} and all_ok:
        yield f"{result['outcome']} although every call was ok"
    if facts.journal[-1]["kind"] != "response" or facts.journal[-1]["outcome"] != result["outcome"]:
        yield "the journal does not end with the result"


def _of_calls(facts: TurnFacts) -> Iterator[str]:
    told = [(call.get("index"), call["name"], call["status"]) for call in facts.result["tools"]]
    if [index for index, _, _ in told] != list(range(1, len(told) + 1)):
        yield f"calls are not numbered from 1 without gaps: {told}"
    started = [data.get("index") for _, kind, data in facts.events if kind == "tool.started"]
    if started != [index for index, _, _ in told]:
        yield f"tool.started for {started} and not once for each of {told}"
    finished = [
        (data.get("index"), data["name"], data["status"])
        for _, kind, data in facts.events
        if kind == "tool.finished"
    ]
    if Counter(finished) != Counter(told):
        yield f"tool.finished told {finished}, the result {told}"
    written = [(line["name"], line["status"]) for line in facts.journal if line["kind"] == "tool"]
    if Counter(written) != Counter((name, status) for _, name, status in told):
        yield f"the journal has {written}, the result {told}"


def _reported(facts: TurnFacts) -> list[tuple[str, str, str]]:
    """Return mark, status and input of each call in the result; the input as its event had it."""
    inputs = {
        data.get("index"): json.dumps(data["input"])
        for _, kind, data in facts.events
        if kind == "tool.started"
    }
    calls = [(call, inputs.get(call.get("index"), "")) for call in facts.result["tools"]]
    return [(_mark(text), call["status"], f"{call['name']} {text}") for call, text in calls]


def _mark(text: str) -> str:
    found = MARK.search(text)
    return found[0] if found else ""


def _of_effects(facts: TurnFacts) -> Iterator[str]:
    """What is on disk is reported ok (or uncertain), and what is reported ok is on disk."""
    if facts.escaped:
        yield f"written where nothing may be: {facts.escaped}"
    calls = _reported(facts)
    acting = {mark for mark, status, text in calls if status == "ok" and _acts(text)}
    for mark in sorted(acting - facts.effects):
        yield f"{mark} is reported ok and did not happen"
    for mark in sorted(facts.effects):
        statuses = [status for its, status, _ in calls if its == mark]
        if not {"ok", *UNCERTAIN} & set(statuses):
            yield f"{mark} happened and is reported as {statuses}"


def _acts(text: str) -> bool:
    return text.startswith("Write ") or '"cp ' in text or '"mkdir ' in text


def _of_loops(facts: TurnFacts) -> Iterator[str]:
    """The same call so many times in a row ends the turn before it runs once more."""
    for (text, status), run in groupby(_reported(facts), key=lambda call: (call[2], call[1])):
        if status == "ok" and len(list(run)) >= DOOM_LOOP:
            yield f"a loop ran on: {text}"


def _of_permissions(facts: TurnFacts) -> Iterator[str]:
    """Every decision of the gate belongs to a reported call, and a denied one is reported as denied."""
    lines = [line for line in facts.journal if line["kind"] == "permission"]
    denied = Counter(
        _mark(json.dumps(item["input"])) for item in lines if item["verdict"] == "deny"
    )
    allowed = Counter(
        _mark(json.dumps(item["input"])) for item in lines if item["verdict"] == "allow"
    )
    reported = Counter((mark, status) for mark, status, _ in _reported(facts))
    for mark in sorted({mark for mark, _ in reported} | set(denied) | set(allowed)):
        told = {status: reported[mark, status] for status in STATUSES if reported[mark, status]}
        kept = told.get("denied", 0) + told.get("interrupted", 0)
        if not told.get("denied", 0) <= denied[mark] <= kept:
            yield f"{mark}: denied {denied[mark]} times, reported as {told}"
        if not told.get("ok", 0) <= allowed[mark] <= sum(told.values()) - told.get("denied", 0):
            yield f"{mark}: allowed {allowed[mark]} times, reported as {told}"


def _of_reply(facts: TurnFacts) -> Iterator[str]:
    reply = facts.result["reply"]
    if not reply.strip():
        yield "the reply is empty"
    if any(words in reply for words in _NOT_FOR_PEOPLE):
        yield f"the reply is not for people: {reply[:200]!r}"
