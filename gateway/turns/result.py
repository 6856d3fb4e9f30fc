"""The turn result of the contract, made from evidence."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from gateway.turns.evidence import Evidence, Notice, ToolUse
from gateway.turns.reply import (
    Ending,
    build_reply_text,
    describe_tools,
    failures,
    outcome_of,
    stop_reason_of,
)
from gateway.turns.sentences import say
from memory.clock import elapsed_ms, rfc3339
from memory.recall.query import ContextPack


def memory_fields(pack: ContextPack) -> dict[str, Any]:
    """Give what clients see of the memory that went into a turn."""
    return {
        "injected": [
            {
                "id": one.id,
                "kind": one.kind,
                "title": one.title,
                "why": one.why,
                "source": one.source,
            }
            for one in pack.items
        ],
        "suppressed": [{"id": one.id, "reason": one.reason} for one in pack.held_back],
        "degraded": list(pack.degraded),
    }


def tool_fields(use: ToolUse) -> dict[str, Any]:
    """Give what the turn result says of one call."""
    return {
        "index": use.index,
        "tool_use_id": use.tool_use_id,
        "name": use.name,
        "summary": use.summary,
        "status": use.status or "unknown",
        "error": use.error,
        "duration_ms": use.duration_ms,
    }


def failure_notice(evidence: Evidence, ending: Ending) -> Notice | None:
    """Say how many calls did not succeed and which; None when all did."""
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


def turn_result(
    evidence: Evidence,
    ending: Ending,
    *,
    conversation_id: str,
    turn_id: str,
    memory: Mapping[str, Any],
    cost_usd: float,
    started_at: datetime,
    finished_at: datetime,
) -> dict[str, Any]:
    """Build the turn result; the calls must be settled."""
    return {
        "conversation_id": conversation_id,
        "turn_id": turn_id,
        "reply": build_reply_text(evidence, ending),
        "outcome": outcome_of(evidence, ending),
        "stop_reason": stop_reason_of(evidence, ending),
        "cause": ending.cause,
        "notices": [asdict(one) for one in evidence.notices],
        "tools": [tool_fields(use) for use in evidence.tools.values()],
        "memory": dict(memory),
        "model": evidence.model,
        "session_id": evidence.session_id,
        "usage": {"input_tokens": 0, "output_tokens": 0, **evidence.usage},
        "cost_usd": cost_usd,
        "log_file": ending.log_file,
        "started_at": rfc3339(started_at),
        "finished_at": rfc3339(finished_at),
        "duration_ms": elapsed_ms(started_at, finished_at),
    }
