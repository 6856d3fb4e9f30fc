"""What happened in a turn, as intents: told in its log at once, recorded together when it ends.

One transaction a turn, before its completion is stored, so that no turn that ended is missing from the
chronicle. Memory never breaks a turn: what cannot be recorded is told in the result.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from gateway.conversations.model import Conversation, Turn
from gateway.turns.conversation_tools import CAME_BACK, ConversationTools
from gateway.turns.evidence import ToolStatus, ToolUse
from memory.cases.tools import CaseTools
from memory.context import MemoryReader
from memory.errors import StoreUnavailable
from memory.intents.builders import (
    Happening,
    ToolOutcome,
    intent_from_approval_requested,
    intent_from_approval_resolved,
    intent_from_llm_response,
    intent_from_memory_injected,
    intent_from_memory_suppressed,
    intent_from_permission,
    intent_from_tool_result,
    intent_from_turn_completed,
    intent_from_turn_cut_off,
    intent_from_turn_received,
)
from memory.intents.intent import MemoryIntent
from memory.intents.record import IntentRecorder
from memory.intents.registry import IntentRefused
from memory.scope import LABELS

_log = logging.getLogger(__name__)

_OUTCOMES: Final[Mapping[ToolStatus | None, ToolOutcome]] = {
    "ok": "ok",
    "failed": "error",
    "denied": "blocked",
    "interrupted": "interrupted",
    "unknown": "interrupted",
}
_CUT_OFF: Final = frozenset({"interrupted", "stopped", "engine_failed"})


async def _consume_nothing(_ids: Sequence[str], _turn_id: str) -> None:
    """Stand in where no memory is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMemory:
    """Memory, as turns use it."""

    reader: MemoryReader
    tools: ConversationTools
    cases: CaseTools | None = None
    """Case memory, for conversations that have it switched on; None: there is none."""
    recorder: IntentRecorder | None = None
    """None: nothing is recorded."""
    consumed: Callable[[Sequence[str], str], Awaitable[None]] = _consume_nothing
    """Notes that pending context went into a turn's prompt."""
    turn_ended: Callable[[], None] = lambda: None
    """Told when a turn's intents are recorded and its completion is stored."""
    on_not_recorded: Callable[[], None] = lambda: None
    is_missing: bool = False
    """Whether there should be a memory and is none: what turns would leave in it is told as lost."""


class TurnChronicle:
    """The intents of one turn."""

    def __init__(self, memory: TurnMemory, turn: Turn, *, is_on: bool) -> None:
        self._memory = memory
        self._turn = turn
        self._recorder = memory.recorder if is_on else None
        self._is_lost = is_on and memory.is_missing
        self._intents: list[MemoryIntent] = []

    def received(self, conversation: Conversation | None, at: datetime) -> dict[str, str]:
        """Note the person's message; each of these gives the fields of its line in the log."""
        labels = {
            name: value
            for name in LABELS
            if (value := getattr(conversation, name, None)) and name != "user_id"
        }
        return self._note(
            lambda where: intent_from_turn_received(
                where, message=self._turn.message, labels=labels
            ),
            at,
        )

    def tool(self, use: ToolUse, at: datetime) -> dict[str, str]:
        """Note what became of a call."""
        if use.status in CAME_BACK:
            self._memory.tools.note(self._turn.conversation_id, use.name)
        return self._note(
            lambda where: intent_from_tool_result(
                where,
                tool_name=use.name,
                status=_OUTCOMES.get(use.status, "interrupted"),
                index=use.index,
                tool_use_id=use.tool_use_id,
                args=use.input,
                result=use.output or use.error or "",
                duration_ms=use.duration_ms,
            ),
            at,
        )

    def permission(
        self,
        *,
        allowed: bool,
        index: int,
        tool_name: str,
        tool_use_id: str,
        rule: str,
        reason: str,
        at: datetime,
    ) -> dict[str, str]:
        """Note what the policy decided."""
        return self._note(
            lambda where: intent_from_permission(
                where,
                allowed=allowed,
                index=index,
                tool_name=tool_name,
                tool_use_id=tool_use_id,
                rule=rule,
                reason=reason,
            ),
            at,
        )

    def asked(self, approval_id: str, tool_name: str, summary: str, at: datetime) -> None:
        """Note that a person was asked."""
        self._note(
            lambda where: intent_from_approval_requested(
                where, approval_id=approval_id, tool_name=tool_name, summary=summary
            ),
            at,
        )

    def answered(self, approval_id: str, decision: str, by: str, at: datetime) -> None:
        """Note what the person said."""
        self._note(
            lambda where: intent_from_approval_resolved(
                where, approval_id=approval_id, decision=decision, by=by
            ),
            at,
        )

    def recalled(self, fields: Mapping[str, Any], at: datetime) -> dict[str, str]:
        """Note what memory went in and what was held back."""
        shown, held = fields["injected"], fields["suppressed"]
        told: dict[str, str] = {}
        if shown:
            told = self._note(
                lambda where: intent_from_memory_injected(
                    where,
                    ids=[one["id"] for one in shown],
                    titles=[one["title"] for one in shown],
                ),
                at,
            )
        if held:
            self._note(
                lambda where: intent_from_memory_suppressed(
                    where,
                    ids=[one["id"] for one in held],
                    reasons=[one["reason"] for one in held],
                ),
                at,
            )
        return told

    def completed(self, result: Mapping[str, Any], text: str, at: datetime) -> None:
        """Note how the turn ended; where the agent may not know it, its next prompt is told."""
        outcome, stop_reason = result["outcome"], result["stop_reason"]
        if text:
            self._note(
                lambda where: intent_from_llm_response(where, text=text, model=result["model"]), at
            )
        if outcome in _CUT_OFF:
            tools = "; ".join(
                f"{one['name']} ({one['summary']}): {one['status']}" for one in result["tools"]
            )
            self._note(
                lambda where: intent_from_turn_cut_off(
                    where,
                    outcome=outcome,
                    stop_reason=stop_reason,
                    message=self._turn.message,
                    tools=f"Its tool calls: {tools}." if tools else "No tool was called.",
                ),
                at,
            )
        self._note(
            lambda where: intent_from_turn_completed(
                where,
                outcome=outcome,
                stop_reason=stop_reason,
                reply=result["reply"],
                tool_calls=len(result["tools"]),
                duration_ms=result["duration_ms"],
            ),
            at,
        )

    async def record(self) -> bool:
        """Record everything, in one transaction; False: it could not be."""
        if self._is_lost:
            self._memory.on_not_recorded()
            return False
        if self._recorder is None or not self._intents:
            return True
        try:
            await self._recorder.record_intents(self._intents)
        except (StoreUnavailable, IntentRefused):
            _log.exception("intents_not_recorded", extra={"turn_id": self._turn.id})
            self._memory.on_not_recorded()
            return False
        return True

    def ended(self) -> None:
        """Say that the turn is over and its completion stored."""
        if self._recorder is not None and self._intents:
            self._memory.turn_ended()

    def _note(self, make: Callable[[Happening], MemoryIntent], at: datetime) -> dict[str, str]:
        if self._recorder is None:
            return {}
        where = Happening(
            owner_id=self._turn.user_id,
            occurred_at=at,
            conversation_id=self._turn.conversation_id,
            turn_id=self._turn.id,
        )
        try:
            intent = make(where)
            line = self._recorder.runtime_line(intent)
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("intent_not_made", extra={"turn_id": self._turn.id})
            return {}
        self._intents.append(intent)
        return {"intent": intent.key, **({"text": line} if line is not None else {})}
