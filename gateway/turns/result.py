"""The turn result of the contract, made from evidence."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from gateway.conversations.model import Turn
from gateway.turns.evidence import Evidence, Notice, ToolUse
from gateway.turns.reply import (
    Ending,
    build_reply_text,
    closing_text,
    describe_tools,
    failures,
    outcome_of,
    stop_reason_of,
)
from gateway.turns.sentences import say
from gateway.turns.task_list import tasks_of
from memory.clock import rfc3339
from memory.recall.query import ContextPack
from policies.content.parameters import parameter_names

_INJECTED = (
    *("id", "kind", "title", "why", "source", "revision"),
    *("conversation_id", "turn_id"),
)


def memory_fields(pack: ContextPack) -> dict[str, Any]:
    """Return what clients see of the memory that was injected into a turn."""
    return {
        "injected": [{name: getattr(item, name) for name in _INJECTED} for item in pack.items],
        "suppressed": [{"id": item.id, "reason": item.reason} for item in pack.held_back],
        "degraded": list(pack.degraded),
        "profile": pack.has_profile,
        "saved": [],
        "forgotten": [],
    }


def tool_fields(use: ToolUse) -> dict[str, Any]:
    """Return one call as the turn result has it."""
    return {
        "index": use.index,
        "tool_use_id": use.tool_use_id,
        "name": use.name,
        "summary": use.summary,
        "status": use.status or "unknown",
        "error": use.error,
        "duration_ms": use.duration_ms,
        "allowed_by": None if use.allowed_by is None else dict(use.allowed_by),
        "parent_index": use.parent_index,
        "parent_tool_use_id": use.parent_tool_use_id,
    }


def call_fields(use: ToolUse) -> dict[str, Any]:
    """Return one call whole, with its input and output; `status` is None while it runs."""
    return {
        **tool_fields(use),
        "status": use.status,
        "input": dict(use.input),
        "ran": use.ran,
        "output": use.output,
        "output_chars": use.output_chars,
    }


def failure_notice(evidence: Evidence, ending: Ending) -> Notice | None:
    """Return a notice about the calls that did not succeed; None if all did."""
    failed = failures(evidence)
    if not failed:
        return None
    return Notice(
        "tools_failed",
        say(
            ending.language,
            "tools_failed",
            failed=len(failed),
            total=len(evidence.tools),
            which=describe_tools(failed, ending.language),
        ),
    )


def scheduled_fields(turn: Turn) -> dict[str, Any] | None:
    """Return what clients see of the schedule that sent a turn's message; None if a client did."""
    run = turn.schedule
    if run is None:
        return None
    due_at = None if run.due_at is None else rfc3339(run.due_at)
    return {**asdict(run), "due_at": due_at}


def turn_result(
    evidence: Evidence,
    ending: Ending,
    *,
    turn: Turn,
    memory: Mapping[str, Any],
    cost_usd: float,
    started_at: datetime,
    finished_at: datetime,
    duration_ms: int,
) -> dict[str, Any]:
    """Return the turn result; the calls must be settled."""
    return {
        "conversation_id": turn.conversation_id,
        "turn_id": turn.id,
        "reply": build_reply_text(evidence, ending),
        "outcome": outcome_of(evidence, ending),
        "stop_reason": stop_reason_of(evidence, ending),
        "cause": ending.cause,
        "schedule": scheduled_fields(turn),
        "notices": [asdict(notice) for notice in evidence.notices],
        "tools": [
            {**tool_fields(use), "parameters": parameter_names(use.input)}
            for use in evidence.tools.values()
        ],
        "steps": evidence.steps.fields(closing_text(evidence, ending)),
        "tasks": tasks_of(evidence.tools.values()),
        "memory": dict(memory),
        "changes": dict(evidence.changes),
        "model": evidence.model,
        "session_id": evidence.session_id,
        "usage": {"input_tokens": 0, "output_tokens": 0, **evidence.usage},
        "cost_usd": cost_usd,
        "log_file": ending.log_file,
        "started_at": rfc3339(started_at),
        "finished_at": rfc3339(finished_at),
        "duration_ms": duration_ms,
    }
