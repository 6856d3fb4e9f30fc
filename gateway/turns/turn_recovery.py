"""Turns that end without (further) running: taken back, left behind, or cut off by a crash.

Each still gets its turn result: what a stored event proves is told, nothing else. A turn whose end was
stored before the crash is told as it ended.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Literal

from gateway.conversations.event_log import TurnEvents
from gateway.conversations.model import Conversation, Turn, TurnEvent
from gateway.engine.events import ToolCalled
from gateway.journal import Journal, TurnJournal
from gateway.turns.conversation_tools import ConversationTools
from gateway.turns.evidence import Evidence, Notice, ToolUse
from gateway.turns.reply import Ending
from gateway.turns.result import failure_notice, memory_fields, tool_fields, turn_result
from gateway.turns.sentences import language_of, say
from gateway.turns.turn_memory import TurnChronicle, TurnMemory
from memory.clock import rfc3339
from memory.recall.query import ContextPack

Withdrawal = Literal["withdrawn", "withdrawn_left"]


def evidence_of(events: Sequence[TurnEvent], at: datetime) -> Evidence:
    """Fold a turn's stored events back into evidence; it is not settled yet."""
    evidence = Evidence()
    for event in events:
        _take(evidence, event.type, json.loads(event.data), at)
    return evidence


def _take(evidence: Evidence, kind: str, data: dict[str, Any], at: datetime) -> None:
    match kind:
        case "turn.started":
            evidence.model = data.get("model") or ""
        case "text.delta":
            evidence.partial += data["text"]
        case "tool.started":
            call = ToolCalled(
                index=data.get("index", len(evidence.tools) + 1),
                tool_use_id=data["tool_use_id"],
                name=data["name"],
                input=data["input"],
            )
            evidence.tool_called(call, data["summary"], at)
        case "tool.finished":
            use = evidence.tools[_index_of(evidence, data)]
            use.status, use.error = data["status"], data["error"]
            use.duration_ms = data["duration_ms"]
        case "notice":
            evidence.notices.append(Notice(data["code"], data["message"]))
        case _:
            return


def _index_of(evidence: Evidence, data: Mapping[str, Any]) -> int:
    """Return which call an event is about; events stored by version 1.0 have no index.

    Raises:
        KeyError: no call has the event's `tool_use_id`.
    """
    if "index" in data:
        return int(data["index"])
    uses = [one for one in evidence.tools.values() if one.tool_use_id == data["tool_use_id"]]
    if not uses:
        raise KeyError(data["tool_use_id"])
    return next((one.index for one in uses if one.status is None), uses[-1].index)


async def close_crashed(
    turn: Turn,
    conversation: Conversation | None,
    stored: Sequence[TurnEvent],
    events: TurnEvents,
    journal: Journal,
    now: datetime,
    memory: TurnMemory,
) -> None:
    """End a turn that was running when the server died.

    One that had come to its end is told with that end; any other with the evidence that it left.
    """
    evidence = evidence_of(stored, now)
    started_at = turn.started_at or turn.created_at
    lines = journal.open(turn.conversation_id, turn.id, started_at)
    if turn.result is None:
        result = _cut_off(turn, stored, evidence, events, lines, now)
        turn = replace(turn, finished_at=now, result=result)
        await events.note_ending(turn)
    else:
        result = turn.result
    is_remembered = conversation is not None and conversation.memory_enabled
    memory = replace(memory, tools=ConversationTools())  # which are in use the history tells
    chronicle = TurnChronicle(memory, turn, is_on=is_remembered)
    chronicle.received(conversation, started_at)
    for use in evidence.tools.values():
        chronicle.tool(use, now)
    chronicle.recalled(result["memory"], started_at)
    chronicle.completed(result, evidence.text, now)
    if not await chronicle.record():
        lost = Notice("memory_not_written", say(language_of(turn.message), "memory_not_written"))
        events.emit("notice", **asdict(lost))
        result = {**result, "notices": [*result["notices"], asdict(lost)]}
    if not await journal.has_response(lines):
        lines.write("response", **result)
    await lines.close()
    await events.complete(replace(turn, state="completed", result=result), result)
    chronicle.ended()


def _cut_off(
    turn: Turn,
    stored: Sequence[TurnEvent],
    evidence: Evidence,
    events: TurnEvents,
    lines: TurnJournal,
    now: datetime,
) -> dict[str, Any]:
    """Tell what the crash cut off, and make the result of what is known."""
    language = language_of(turn.message)
    lines.write("error", where="server", message="the server stopped while this turn was running")
    ending = Ending(language=language, log_file=lines.log_file, cause="crashed")
    evidence.denials |= dict.fromkeys(
        _not_allowed(stored, evidence), say(language, "nobody_allowed")
    )
    _tell_ends(stored, evidence.settle(now), events, lines)
    notice = failure_notice(evidence, ending)
    if notice is not None and notice.code not in {one.code for one in evidence.notices}:
        evidence.notices.append(notice)
        events.emit("notice", **asdict(notice))
    return turn_result(
        evidence,
        ending,
        conversation_id=turn.conversation_id,
        turn_id=turn.id,
        memory=_memory_of(stored),
        cost_usd=0.0,
        started_at=turn.started_at or turn.created_at,
        finished_at=now,
    )


def _not_allowed(stored: Sequence[TurnEvent], evidence: Evidence) -> set[int]:
    """Return the calls that a person was asked about and nobody allowed: none of them ran."""
    told = [(one.type, json.loads(one.data)) for one in stored]
    allowed = {
        data["approval_id"]
        for kind, data in told
        if kind == "approval.resolved" and data["decision"] == "allow"
    }
    return {
        _index_of(evidence, data)
        for kind, data in told
        if kind == "approval.requested" and data["approval_id"] not in allowed
    }


def _tell_ends(
    stored: Sequence[TurnEvent],
    settled: Sequence[ToolUse],
    events: TurnEvents,
    lines: TurnJournal,
) -> None:
    """Tell the end of what readers still see as open: tool calls and questions."""
    for use in settled:
        fields = {**tool_fields(use), "output": ""}
        lines.write("tool", **fields)
        del fields["summary"]
        events.emit("tool.finished", **fields)
    answered = {
        json.loads(one.data)["approval_id"] for one in stored if one.type == "approval.resolved"
    }
    for one in stored:
        asked = json.loads(one.data)
        if one.type == "approval.requested" and asked["approval_id"] not in answered:
            events.emit(
                "approval.resolved",
                approval_id=asked["approval_id"],
                index=asked.get("index"),
                tool_use_id=asked["tool_use_id"],
                decision="deny",
                by="turn_ended",
            )


def _memory_of(stored: Sequence[TurnEvent]) -> Mapping[str, Any]:
    """Give what memory the turn was told to have been shown; none where nothing was told."""
    nothing = memory_fields(ContextPack())
    told = [json.loads(one.data) for one in stored if one.type == "memory.injected"]
    return {key: told[-1][key] for key in nothing} if told else nothing


async def close_withdrawn(
    turn: Turn, events: TurnEvents, why: Withdrawal, now: datetime
) -> dict[str, Any]:
    """End a turn that never ran because its message was taken back or its conversation left."""
    result: dict[str, Any] = {
        "conversation_id": turn.conversation_id,
        "turn_id": turn.id,
        "reply": say(language_of(turn.message), why),
        "outcome": "interrupted",
        "stop_reason": "user_interrupt",
        "cause": "left" if why == "withdrawn_left" else None,
        "notices": [],
        "tools": [],
        "memory": memory_fields(ContextPack()),
        "model": "",
        "session_id": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "cost_usd": 0.0,
        "log_file": None,
        "started_at": rfc3339(turn.created_at),
        "finished_at": rfc3339(now),
        "duration_ms": 0,
    }
    state: Literal["withdrawn", "completed"] = "withdrawn" if why == "withdrawn" else "completed"
    await events.complete(replace(turn, state=state, finished_at=now, result=result), result)
    return result
