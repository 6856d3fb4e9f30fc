"""Values that tests of turns are made of."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio

from gateway.conversations.model import Approval
from gateway.engine.events import EngineEvent, RunFinished, ToolCalled, ToolReturned
from gateway.ids import ConversationId, TurnId, UserId, new_approval_id
from gateway.turns.approvals import AskedCall
from gateway.turns.evidence import Evidence
from gateway.turns.reply import Cause, Ending
from gateway.turns.sentences import Language
from memory.recall.query import ContextItem, ContextPack, QueryPack
from policies.calls import ToolCall
from policies.permits import effect_of_input

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)
LOG_FILE = "2026-11-20/trn_aaaaaaaaaaaaaaaaaaaaaaaaaa.jsonl"


def finished(**fields: Any) -> RunFinished:
    """Return the agent's account of a run that ended well, but for the fields that are named."""
    plain: dict[str, Any] = {
        "subtype": "success",
        "is_error": False,
        "result": None,
        "terminal_reason": "completed",
        "stop_reason": "end_turn",
    }
    return RunFinished(**(plain | fields))


def broken_off(**fields: Any) -> RunFinished:
    """Return the agent's account of a run that was interrupted."""
    plain: dict[str, Any] = {
        "subtype": "error_during_execution",
        "is_error": True,
        "terminal_reason": "aborted_tools",
        "stop_reason": None,
    }
    return finished(**(plain | fields))


def called(tool_use_id: str = "t1", name: str = "Bash", **tool_input: Any) -> ToolCalled:
    """Return a call, of `ls` where nothing else is said; the number in its id is its index."""
    return ToolCalled(
        tool_use_id=tool_use_id,
        name=name,
        input=tool_input or {"command": "ls"},
        index=int(tool_use_id[1:]),
    )


def returned(text: str = "a.txt", tool_use_id: str = "t1") -> ToolReturned:
    """Return what a call returned that worked."""
    return _came_back(tool_use_id, text, is_error=False)


def failed(text: str = "No such file.", tool_use_id: str = "t1") -> ToolReturned:
    """Return what a call returned that failed."""
    return _came_back(tool_use_id, text, is_error=True)


def _came_back(tool_use_id: str, text: str, *, is_error: bool) -> ToolReturned:
    return ToolReturned(
        tool_use_id=tool_use_id, is_error=is_error, text=text, index=int(tool_use_id[1:])
    )


def evidence_of(*events: EngineEvent, settled: bool = True, **fields: Any) -> Evidence:
    """Fold events into evidence that starts with some fields."""
    evidence = Evidence(**fields)
    for event in events:
        if isinstance(event, ToolCalled):
            summary = str(next(iter(event.input.values()), ""))
            evidence.tool_called(event, summary, 0)
        evidence.take(event, 0)
    if settled:
        evidence.settle(0)
    return evidence


def ending(language: Language = "en", cause: Cause | None = None) -> Ending:
    """Return what is needed beside the evidence."""
    return Ending(
        language=language, log_file=LOG_FILE, cause=cause, timeout_s=30, doom_loop_threshold=5
    )


def tool_call(
    name: str = "Bash", tool_use_id: str = "t1", *, tool_input: Mapping[str, Any] | None = None
) -> ToolCall:
    """Return a call as the gate sees it."""
    return ToolCall(
        name=name,
        input={"command": "ls"} if tool_input is None else tool_input,
        cwd="/ws",
        tool_use_id=tool_use_id,
        index=int(tool_use_id[1:]),
    )


def asked_about(
    call: ToolCall,
    user_id: UserId,
    conversation_id: ConversationId,
    turn_id: TurnId,
    *,
    at: datetime = NOON,
    show: Callable[[str], str] = str,
) -> AskedCall:
    """Return a call as a person is asked about it, of which no more is known than its input."""
    approval = Approval(
        id=new_approval_id(),
        user_id=user_id,
        conversation_id=conversation_id,
        turn_id=turn_id,
        call_index=call.index,
        tool_use_id=call.tool_use_id,
        name=call.name,
        summary="ls",
        language="en",
        input=dict(call.input),
        fingerprint="f",
        created_at=at,
    )
    effect = effect_of_input(call.name, call.input, call.cwd)
    return AskedCall(approval=approval, given=call.input, effect=effect, show=show)


def codes(notices: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the codes of a turn result's notices."""
    return [notice["code"] for notice in notices]


class Memory:
    """A memory that gives what it was made with."""

    def __init__(self, pack: ContextPack | Exception | None) -> None:
        self.pack = pack
        self.asked: list[QueryPack] = []

    async def recall(self, query: QueryPack) -> ContextPack:
        self.asked.append(query)
        if self.pack is None:
            await anyio.sleep_forever()
        if isinstance(self.pack, Exception):
            raise self.pack
        assert self.pack is not None
        return self.pack


REMEMBERED = ContextPack(
    text="Ann likes tea.",
    items=[
        ContextItem(
            id="epi_1",
            kind="note",
            title="Tea",
            line="- Ann likes tea.",
            relevance=1.0,
            why="tea",
            source="ann.md",
            occurred_at=NOON,
        )
    ],
)
