"""One intent of each registered key, made by its builder, and where intents are put in tests."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from memory.intents.builders import (
    Happening,
    intent_from_approval_requested,
    intent_from_approval_resolved,
    intent_from_breaker,
    intent_from_conversation,
    intent_from_delivery,
    intent_from_doom_loop,
    intent_from_forced_summary,
    intent_from_llm_response,
    intent_from_memory_forgotten,
    intent_from_memory_injected,
    intent_from_memory_saved,
    intent_from_memory_suppressed,
    intent_from_model_retries,
    intent_from_permission,
    intent_from_tool_result,
    intent_from_turn_completed,
    intent_from_turn_cut_off,
    intent_from_turn_received,
)
from memory.intents.chronicle import SqlChronicle
from memory.intents.registry import MemoryIntent
from tests.support.episodes import open_memory

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HAPPENING = Happening(owner_id="ann", occurred_at=AT, conversation_id="cnv_1", turn_id="trn_1")

Builder = Callable[[Happening], MemoryIntent]


def tool_result(at: Happening = HAPPENING, **fields: Any) -> MemoryIntent:
    """Make the intent of a tool call."""
    given: dict[str, Any] = {
        "tool_name": "Bash",
        "status": "ok",
        "tool_use_id": "toolu_1",
        "args": {"command": "ls 归档"},
        "result": "a.txt",
        "duration_ms": 12,
    }
    return intent_from_tool_result(at, **{**given, **fields})


def received(message: str, at: Happening = HAPPENING) -> MemoryIntent:
    """Make the intent of a message."""
    return intent_from_turn_received(at, message=message)


def cut_off(at: Happening = HAPPENING, message: str = "clean up") -> MemoryIntent:
    """Make the intent of a turn that was cut off: it waits for the next prompt."""
    return intent_from_turn_cut_off(
        at,
        outcome="interrupted",
        stop_reason="user_interrupt",
        ended_by="The person stopped it.",
        message=message,
        tools="Bash ok",
    )


def completed(at: Happening = HAPPENING) -> MemoryIntent:
    """Make the intent of an ended turn."""
    return intent_from_turn_completed(
        at, outcome="answered", stop_reason="end_turn", reply="done", tool_calls=1, duration_ms=5
    )


def _delivery(outcome: Any) -> Builder:
    return lambda at: intent_from_delivery(
        at, outcome=outcome, backend="memu", operation="put", item_id="epi_1", attempts=3, error="x"
    )


def _permission(*, allowed: bool) -> Builder:
    return lambda at: intent_from_permission(
        at, allowed=allowed, tool_name="Bash", tool_use_id="toolu_1", rule="rm", reason="删除"
    )


BUILT: Mapping[str, Builder] = {
    "turn.received": lambda at: intent_from_turn_received(
        at, message="修复支付", labels={"project_id": "shop"}
    ),
    "turn.completed": completed,
    "turn.cut_off": cut_off,
    "guard.doom_loop": lambda at: intent_from_doom_loop(at, tools="Bash ls"),
    "guard.forced_summary": lambda at: intent_from_forced_summary(at, tools="Bash ls"),
    "guard.model_retries": lambda at: intent_from_model_retries(at, count=2),
    "llm.response": lambda at: intent_from_llm_response(at, text="好的", model="m-1"),
    **{
        f"tool.{{tool_name}}.{status}": partial(tool_result, status=status)
        for status in ("ok", "blocked", "error", "interrupted")
    },
    "permission.allowed": _permission(allowed=True),
    "permission.denied": _permission(allowed=False),
    "approval.requested": lambda at: intent_from_approval_requested(
        at, approval_id="apr_1", tool_name="Write", summary="a.txt"
    ),
    "approval.resolved": lambda at: intent_from_approval_resolved(
        at, approval_id="apr_1", decision="allow", by="user"
    ),
    "memory.injected": lambda at: intent_from_memory_injected(at, ids=["epi_1"], titles=["支付"]),
    "memory.suppressed": lambda at: intent_from_memory_suppressed(
        at, ids=["epi_2"], reasons=["stale_tool_schema"]
    ),
    "memory.saved": lambda at: intent_from_memory_saved(
        at,
        item_kind="fact",
        item_id="fac_1",
        revision=1,
        text="我的车牌是沪A12345",
        origin="request",
    ),
    "memory.forgotten": lambda at: intent_from_memory_forgotten(at, item_kind="episode"),
    "conversation.started": lambda at: intent_from_conversation(at, change="started"),
    "conversation.reset": lambda at: intent_from_conversation(
        at, change="reset", from_conversation_id="cnv_0"
    ),
    "conversation.forked": lambda at: intent_from_conversation(
        at, change="forked", from_conversation_id="cnv_0"
    ),
    **{f"delivery.{status}": _delivery(status) for status in ("delivered", "failed", "dead")},
    "breaker.opened": lambda at: intent_from_breaker(at, change="opened", backend="memu"),
    "breaker.half_opened": lambda at: intent_from_breaker(at, change="half_opened", backend="memu"),
    "breaker.closed": lambda at: intent_from_breaker(at, change="closed", backend="memu"),
}
"""By registered key. A key that is registered and does not stand here has no builder yet."""


@asynccontextmanager
async def open_chronicle(directory: Path) -> AsyncIterator[SqlChronicle]:
    """Open the chronicle of a directory while the block runs."""
    async with open_memory(directory) as database:
        yield SqlChronicle(database)
