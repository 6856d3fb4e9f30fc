"""The pieces of a turn as updates of an editor's session."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import acp
from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    PermissionOption,
    ToolCallProgress,
    ToolCallStart,
    Usage,
    UserMessageChunk,
)

from gateway.doors.pieces import CallEnded, CallStarted, Piece, Text, Thinking, is_cut_off

Update = AgentMessageChunk | AgentThoughtChunk | ToolCallProgress | ToolCallStart | UserMessageChunk

_KINDS: Final[Mapping[str, Any]] = {
    "Read": "read",
    "Glob": "search",
    "Grep": "search",
    "Write": "edit",
    "Edit": "edit",
    "NotebookEdit": "edit",
    "Bash": "execute",
    "web_fetch": "fetch",
}
_STOPS: Final[Mapping[str, Any]] = {
    "refusal": "refusal",
    "max_turns": "max_turn_requests",
    "context_window": "max_tokens",
    "budget": "max_tokens",
}
ALLOW, ALLOW_ALWAYS, REJECT = "allow", "allow_always", "reject"
_OPTIONS: Final = [
    PermissionOption(option_id=ALLOW, name="Allow once", kind="allow_once"),
    PermissionOption(
        option_id=ALLOW_ALWAYS,
        name="Allow exactly this until the conversation ends",
        kind="allow_always",
    ),
    PermissionOption(option_id=REJECT, name="Deny", kind="reject_once"),
]


def update_of(piece: Piece) -> Update | None:
    """Return what a piece changes on the editor's screen; None if nothing."""
    match piece:
        case Text(text, is_apart):
            return acp.update_agent_message_text(f"\n\n{text}" if is_apart else text)
        case Thinking(text):
            return acp.update_agent_thought_text(text)
        case CallStarted(fields):
            return acp.start_tool_call(
                call_id(fields),
                f"{fields['name']}: {fields['summary']}",
                kind=_KINDS.get(fields["name"], "other"),
                status="pending",
                raw_input=fields["input"],
            )
        case CallEnded(fields):
            said = fields.get("error") or fields.get("output") or fields["status"]
            return acp.update_tool_call(
                call_id(fields),
                status="completed" if fields["status"] == "ok" else "failed",
                content=[acp.tool_content(acp.text_block(said))],
            )
        case _:
            return None


def replayed(piece: Piece, turn_id: str) -> Iterator[Update]:
    """Yield the updates of a piece of a turn that has ended, whose calls have no beginning."""
    if isinstance(piece, CallEnded):
        fields = {**piece.fields, "turn_id": turn_id}
        piece = CallEnded(fields)
        title = f"{fields['name']}: {fields['summary']}"
        kind = _KINDS.get(fields["name"], "other")
        yield acp.start_tool_call(call_id(fields), title, kind=kind, status="pending")
    update = update_of(piece)
    if update is not None:
        yield update


def call_id(fields: Mapping[str, Any]) -> str:
    """Return the id of a call; those of the model may repeat in a conversation."""
    return f"{fields.get('turn_id', '')}:{fields['index']}"


def options_for(fields: Mapping[str, Any]) -> list[PermissionOption]:
    """Return what a person may answer; only a run that waits can leave a rule behind."""
    is_over = fields.get("state") == "waiting"
    return [option for option in _OPTIONS if not (is_over and option.option_id == ALLOW_ALWAYS)]


def question_of(fields: Mapping[str, Any]) -> str:
    """Return what would run, as the title of a question."""
    return f"{fields['name']}: {fields['summary']}"


def stop_reason(result: Mapping[str, Any], *, is_cancelled: bool) -> Any:
    """Return how a turn ended in the protocol's words."""
    if is_cancelled and result["stop_reason"] == "user_interrupt":
        return "cancelled"
    default = "max_tokens" if is_cut_off(result) else "end_turn"
    return _STOPS.get(result["stop_reason"], default)


def usage_of(result: Mapping[str, Any]) -> Usage:
    """Return a turn's tokens."""
    used = result["usage"]
    read, written = used["input_tokens"], used["output_tokens"]
    return Usage(total_tokens=read + written, input_tokens=read, output_tokens=written)


def message_of(blocks: Sequence[Any]) -> str:
    """Return a prompt as one message: its texts, and what it refers to.

    Raise `ValueError` if it holds what Candor does not take.
    """
    parts = []
    for block in blocks:
        match block.type:
            case "text":
                parts.append(block.text)
            case "resource_link":
                parts.append(f"[{block.name}]({block.uri})")
            case "resource" if hasattr(block.resource, "text"):
                parts.append(f"--- {block.resource.uri} ---\n{block.resource.text}\n---")
            case kind:
                raise ValueError(f"Candor takes no {kind} in a prompt.")
    return "\n\n".join(parts)
