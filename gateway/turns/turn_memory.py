"""What happened in a turn, as intents: in its log at once, in the chronicle when it ends.

All intents of a turn are recorded in one transaction before its completion is stored, so that no
turn that ended is missing from the chronicle. Memory never breaks a turn: the result reports a
failure.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial, partialmethod
from typing import Any, Final, Literal

from gateway.conversations.event_log import TurnEvents
from gateway.conversations.leases import LeaseLost
from gateway.conversations.model import Conversation, Turn
from gateway.conversations.sql.leases import Fence
from gateway.turns.conversation_memory import CAME_BACK, ConversationTools, do_nothing
from gateway.turns.evidence import Notice, ToolStatus, ToolUse
from gateway.turns.sanitizer import off_loop
from gateway.turns.sentences import describe_end, language_of, say
from memory.cases.tools import CaseTools
from memory.facts.fact import to_item
from memory.facts.keeper import FactKeeper
from memory.facts.openings import asks_to_forget, asks_to_remember
from memory.facts.told import ToldTurn, Verbatim
from memory.facts.tools import FORGET, REMEMBER, FactTools
from memory.intents.builders import (
    Happening,
    ToolOutcome,
    intent_from_doom_loop,
    intent_from_forced_summary,
    intent_from_llm_response,
    intent_from_memory_injected,
    intent_from_memory_suppressed,
    intent_from_model_retries,
    intent_from_tool_result,
    intent_from_turn_completed,
    intent_from_turn_cut_off,
    intent_from_turn_received,
)
from memory.intents.chronicle import Guard, unguarded
from memory.intents.record import IntentRecorder
from memory.intents.registry import MemoryIntent
from memory.items.scope import LABELS, Scope
from memory.recall.query import MemoryReader, Mode
from memory.recall.tools import SERVER, MemoryTools
from policies.content.parameters import parameter_names

_log = logging.getLogger(__name__)

_OUTCOMES: Final[Mapping[ToolStatus | None, ToolOutcome]] = {
    "ok": "ok",
    "failed": "error",
    "denied": "blocked",
    "interrupted": "interrupted",
    "unknown": "interrupted",
}
_NOT_BEGUN: Final = "it did not run"
_REMEMBER_CALL: Final = f"mcp__{SERVER}__{REMEMBER}"
_FORGET_CALL: Final = f"mcp__{SERVER}__{FORGET}"
_WRITING_TOOLS: Final = frozenset({"Edit", "Write"})
MemoryState = Literal["on", "off", "missing"]
"""Of a turn: recalled and recorded; switched off for the conversation; or memory could not be
opened.
"""
_KEPT: Final[Mapping[Verbatim, str]] = {
    "whole": "kept_verbatim",
    "without_secrets": "kept_without_secrets",
    "in_part": "kept_in_part",
}
"""The sentence about a message that is kept itself."""
_CUT_OFF: Final = frozenset({"interrupted", "stopped", "engine_failed"})
IsOn = Callable[[], Awaitable[bool]]
"""Reads whether memory is on for the conversation now; may raise `StoreUnavailable`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMemory:
    """Memory, as turns use it."""

    reader: MemoryReader
    tools: ConversationTools
    recall_mode: Mode = "rag"
    """`llm`: a side model chooses what a prompt gets."""
    cases: CaseTools | None = None
    """Case memory, for conversations that have it switched on."""
    recorder: IntentRecorder | None = None
    """None: nothing is recorded."""
    lookup: MemoryTools | None = None
    """What the agent's own questions are answered by."""
    facts: FactKeeper | None = None
    """Tells what a turn kept, and keeps what no tool did; None if nothing is to become a fact."""
    fact_tools: FactTools | None = None
    """What the agent keeps and forgets with."""
    consumed: Callable[[Sequence[str], str, Guard], Awaitable[None]] = do_nothing
    """Notes that pending context went into a turn's prompt."""
    turn_ended: Callable[[bool], None] = lambda _: None
    """Called when a turn's intents are recorded and its completion is stored, with whether it
    called tools.
    """
    catch_up: Callable[[], Awaitable[None]] = do_nothing
    """Makes turns that ended just now searchable; may raise `StoreUnavailable`."""
    on_not_recorded: Callable[[], None] = lambda: None
    is_missing: bool = False
    """Memory could not be opened: what turns would record is reported as lost."""
    fence: Fence | None = None
    """Compares epochs in memory's transactions; None if no other server may follow this one."""

    def guard_of(self, owner: TurnEvents) -> Guard:
        """Return what keeps an owner from writing once another server runs the conversation: it
        raises `LeaseLost`.
        """
        if (fence := self.fence) is None:
            return unguarded
        return lambda writer: fence.require_blocking(writer, owner.conversation_id, owner.epoch)


class TurnChronicle:
    """The intents of one turn. Each method returns the intent's fields for the turn's log."""

    def __init__(
        self,
        memory: TurnMemory,
        turn: Turn,
        *,
        is_on: bool,
        is_still_on: IsOn | None = None,
        guard: Guard = unguarded,
    ) -> None:
        """Initialise; `guard` is called in each transaction that writes for the turn.

        `is_still_on` is asked before anything is kept, because the person may have switched memory
        off since the turn began. None: nobody can have.
        """
        self._memory = memory
        self._turn = turn
        self._is_still_on = is_still_on
        self.guard = guard
        self._recorder = memory.recorder if is_on else None
        self.state: MemoryState = "off" if not is_on else "missing" if memory.is_missing else "on"
        self._intents: list[MemoryIntent] = []

    async def received(self, conversation: Conversation | None, at: datetime) -> dict[str, str]:
        """Note the person's message."""
        names = [name for name in LABELS if name != "user_id"]
        labels = {name: value for name in names if (value := getattr(conversation, name, None))}
        message = self._turn.message
        build = partial(intent_from_turn_received, message=message, labels=labels)
        return await off_loop(lambda _: self.note(build, at), message)

    async def tool(self, use: ToolUse, at: datetime) -> dict[str, str]:
        """Note the result of a call."""
        if use.status in CAME_BACK:
            self._memory.tools.note(
                self._turn.conversation_id, use.name, parameter_names(use.input)
            )
        build = partial(
            intent_from_tool_result,
            tool_name=use.name,
            status="not_begun" if not use.has_begun else _OUTCOMES.get(use.status, "interrupted"),
            index=use.index,
            tool_use_id=use.tool_use_id,
            args=use.input,
            result=use.output or use.error or ("" if use.has_begun else _NOT_BEGUN),
            duration_ms=use.duration_ms,
        )
        said = {"input": use.input, "output": use.output or use.error or ""}
        return await off_loop(lambda _: self.note(build, at), said)

    def recalled(self, fields: Mapping[str, Any], at: datetime) -> dict[str, str]:
        """Note what memory was injected and what was held back."""
        shown, held = fields["injected"], fields["suppressed"]
        noted: dict[str, str] = {}
        if shown:
            ids, titles = [item["id"] for item in shown], [item["title"] for item in shown]
            noted = self._add(partial(intent_from_memory_injected, ids=ids, titles=titles), at)
        if held:
            ids, reasons = [item["id"] for item in held], [item["reason"] for item in held]
            self._add(partial(intent_from_memory_suppressed, ids=ids, reasons=reasons), at)
        return noted

    def completed(self, result: Mapping[str, Any], text: str, at: datetime) -> None:
        """Note how the turn ended; if it was cut off, the agent's next prompt says so."""
        outcome, stop_reason = result["outcome"], result["stop_reason"]
        if text:
            self._add(partial(intent_from_llm_response, text=text, model=result["model"]), at)
        self._guarded(result, at)
        if outcome in _CUT_OFF:
            tools = "; ".join(
                f"{tool['name']} ({tool['summary']}): {tool['status']}" for tool in result["tools"]
            )
            cut_off = partial(
                intent_from_turn_cut_off,
                outcome=outcome,
                stop_reason=stop_reason,
                ended_by=describe_end(stop_reason, result.get("cause")),
                message=self._turn.message,
                tools=f"Its tool calls: {tools}." if tools else "No tool was called.",
            )
            self._add(cut_off, at)
        build = partial(
            intent_from_turn_completed,
            outcome=outcome,
            stop_reason=stop_reason,
            reply=result["reply"],
            tool_calls=len(result["tools"]),
            duration_ms=result["duration_ms"],
        )
        self._add(build, at)

    def _guarded(self, result: Mapping[str, Any], at: datetime) -> None:
        """Note what the gateway's guards did in the turn."""
        tools = "; ".join(f"{tool['name']} {tool['summary']}" for tool in result["tools"][-3:])
        if result["stop_reason"] == "doom_loop":
            self._add(partial(intent_from_doom_loop, tools=tools), at)
        codes = [notice["code"] for notice in result["notices"]]
        if "forced_summary" in codes:
            self._add(partial(intent_from_forced_summary, tools=tools), at)
        if "model_retrying" in codes:
            self._add(partial(intent_from_model_retries, count=codes.count("model_retrying")), at)

    async def conclude(
        self, conversation: Conversation | None, uses: Iterable[ToolUse]
    ) -> tuple[dict[str, Any], Sequence[Notice]]:
        """Return `saved` and `forgotten` of the result's `memory`, and notices, and keep what no
        tool did.

        A failure is logged only: what cannot be written now, `record` cannot write either, and
        reports it.
        """
        keeper, turn = self._memory.facts, self._turn
        if self._recorder is None or keeper is None:  # a model may say that it did
            asked = "nothing_forgotten" if asks_to_forget(turn.message) else None
            return {}, self._notices(nothing_forgotten=asked)
        calls = list(uses)
        noted = any(use.status == "ok" and _is_note(use) for use in calls)
        kept_some = any(use.name == _REMEMBER_CALL and use.status == "ok" for use in calls)
        may_have_forgotten = any(  # one that never came back may have, too
            use.name == _FORGET_CALL and use.has_begun and use.status not in {"failed", "denied"}
            for use in calls
        )
        try:
            is_off = not await self._keeps()  # what calls did before stands
            kept = await keeper.conclude(
                told_turn(turn, conversation, self.guard),
                remembered=is_off or noted or kept_some,
                forgot=noted or may_have_forgotten,
            )
        except LeaseLost:
            return {}, ()  # nobody gets this result: the turn is another server's
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("facts_not_kept", extra={"turn_id": turn.id})
            return {}, ()
        notices = self._notices(
            kept_verbatim=_KEPT[kept.kept_verbatim] if kept.kept_verbatim else None,
            nothing_forgotten="nothing_forgotten" if kept.nothing_forgotten else None,
        )
        items = map(to_item, kept.saved)
        saved = [{"id": item.id, "kind": item.kind, "title": item.title} for item in items]
        return {"saved": saved, "forgotten": [asdict(item) for item in kept.forgotten]}, notices

    def _notices(self, **sentences: str | None) -> Sequence[Notice]:
        """Return the notices with these codes that have a sentence."""
        language = language_of(self._turn.message)
        return [Notice(code, say(language, key)) for code, key in sentences.items() if key]

    def may_conclude(self, uses: Iterable[ToolUse]) -> bool:
        """Return whether the turn may have kept or forgotten something, or was asked to."""
        message = self._turn.message
        return (
            any(use.name in {_REMEMBER_CALL, _FORGET_CALL} for use in uses)
            or asks_to_remember(message)
            or asks_to_forget(message)
        )

    @property
    def failure(self) -> str:
        """The sentence about a turn that `record` could not write."""
        return "memory_missing" if self.state == "missing" else "memory_not_written"

    async def _keeps(self) -> bool:
        """Return whether memory is on; drop what was noted if it is off by now."""
        if self._recorder is None:
            return False
        if self._is_still_on is None or await self._is_still_on():
            return True
        self._recorder = None
        self._intents.clear()
        self.state = "off"
        return False

    async def record(self) -> bool:
        """Record everything in one transaction; return False if that failed."""
        if self.state == "missing":
            self._memory.on_not_recorded()
            return False
        if self._recorder is None or not self._intents:
            return True
        try:
            if not await self._keeps():
                return True
            await self._recorder.record_intents(self._intents, self.guard)
        except LeaseLost:
            return False  # as in `conclude`
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("intents_not_recorded", extra={"turn_id": self._turn.id})
            self._memory.on_not_recorded()
            return False
        return True

    def ended(self) -> None:
        """Notify memory that the turn's completion is stored."""
        if self._recorder is not None and self._intents:
            self._memory.turn_ended(any(intent.source_kind == "tool" for intent in self._intents))

    def note(
        self, build: Callable[[Happening], MemoryIntent], at: datetime, *, is_logged: bool = True
    ) -> dict[str, str]:
        """Note what `build` makes an intent of; its text for the log is masked here."""
        if self._recorder is None:
            return {}
        turn = self._turn
        try:
            intent = build(
                Happening(
                    owner_id=turn.user_id,
                    occurred_at=at,
                    conversation_id=turn.conversation_id,
                    turn_id=turn.id,
                )
            )
            self._recorder.decide(intent)
            line = self._recorder.runtime_line(intent) if is_logged else None
        except Exception:  # noqa: BLE001  memory never breaks a turn
            _log.exception("intent_not_made", extra={"turn_id": turn.id})
            return {}
        self._intents.append(intent)
        return {"intent": intent.key, **({"text": line} if line is not None else {})}

    _add = partialmethod(note, is_logged=False)


def told_turn(turn: Turn, conversation: Conversation | None, guard: Guard) -> ToldTurn:
    """Return a turn as the source of facts."""
    project_id = getattr(conversation, "project_id", None)
    return ToldTurn(
        message=turn.message,
        scope=Scope(owner_id=turn.user_id, project_id=project_id),
        conversation_id=turn.conversation_id,
        turn_id=turn.id,
        occurred_at=turn.created_at,
        guard=guard,
    )


def _is_note(use: ToolUse) -> bool:
    """Return whether a call wrote or changed a note in the memory folder."""
    path = str(use.input.get("file_path", ""))
    return use.name in _WRITING_TOOLS and path.removeprefix("./").startswith("memory/")
