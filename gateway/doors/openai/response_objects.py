"""A turn as the objects of OpenAI's responses: the response, its items, its end."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from gateway.conversations.model import Turn
from gateway.doors.openai.acceptance import MODEL
from gateway.doors.openai.chunks import finish_reason, usage_of
from gateway.doors.pieces import has_failed, sentence_of

_PREFIX: Final = "resp_"
_SERVER: Final = "candor"
"""Calls are shown as those of a server of tools: a client does not try to run such."""
_CALLS: Final = {"ok": "completed", "failed": "failed", "denied": "failed"}

_UNCHANGING: Final[Mapping[str, Any]] = {
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "reasoning": {"effort": None, "summary": "detailed"},
    "max_output_tokens": None,
    "max_tool_calls": None,
    "text": {"format": {"type": "text"}},
    "truncation": "disabled",
    "background": False,
    "service_tier": "default",
    "safety_identifier": None,
    "prompt_cache_key": None,
    "metadata": {},
    "store": True,
}
"""Fields that Open Responses requires, and a client cannot choose here."""

Status = Literal["queued", "in_progress", "completed", "failed", "cancelled", "incomplete"]
Fields = dict[str, Any]


def response_id(turn_id: str) -> str:
    """Return a turn's id as a response."""
    return f"{_PREFIX}{turn_id}"


def turn_id_of(response: str) -> str:
    """Return the turn of a response's id; of another text something that is no turn's id."""
    return response.removeprefix(_PREFIX) if response.startswith(_PREFIX) else ""


def status_of(result: Mapping[str, Any]) -> Status:
    """Return how a turn ended in OpenAI's words."""
    if has_failed(result):
        return "failed"
    if result["outcome"] == "interrupted":
        return "cancelled"
    return "completed" if finish_reason(result) == "stop" else "incomplete"


def response_of(
    turn: Turn,
    before: Turn | None,
    *,
    status: Status,
    output: Sequence[Fields],
    result: Mapping[str, Any] | None,
) -> Fields:
    """Return a turn as a response; `before` is the turn before it in its conversation."""
    error, incomplete = None, None
    if status == "failed" and result is not None:
        error = {
            "code": "server_error",
            "message": sentence_of(result),
            "type": result["stop_reason"],
            "param": None,
        }
    if status == "incomplete" and result is not None:
        is_refused = finish_reason(result) == "content_filter"
        incomplete = {"reason": "content_filter" if is_refused else "max_output_tokens"}
    return {
        "id": response_id(turn.id),
        "object": "response",
        "created_at": int(turn.created_at.timestamp()),
        "completed_at": None if result is None else _seconds(result["finished_at"]),
        "status": status,
        "error": error,
        "incomplete_details": incomplete,
        "instructions": None,
        "conversation": {"id": turn.conversation_id},
        "previous_response_id": None if before is None else response_id(before.id),
        "model": MODEL,
        "output": list(output),
        "usage": None if result is None else response_usage(result),
        **_UNCHANGING,
    }


def _seconds(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp())


def response_usage(result: Mapping[str, Any]) -> Fields:
    """Return a turn's tokens."""
    usage = usage_of(result)
    return {
        "input_tokens": usage["prompt_tokens"],
        "input_tokens_details": usage["prompt_tokens_details"],
        "output_tokens": usage["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["total_tokens"],
    }


def text_part(text: str) -> Fields:
    """Return a text of the agent."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def message_item(id_: str) -> Fields:
    """Return a message of the agent that begins."""
    return {
        "id": id_,
        "type": "message",
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }


def reasoning_item(id_: str) -> Fields:
    """Return reasoning that begins."""
    return {"id": id_, "type": "reasoning", "status": "in_progress", "summary": []}


def call_item(id_: str, name: str, arguments: str) -> Fields:
    """Return a call that begins."""
    return {
        "id": id_,
        "type": "mcp_call",
        "status": "in_progress",
        "server_label": _SERVER,
        "name": name,
        "arguments": arguments,
        "approval_request_id": None,
        "output": None,
        "error": None,
    }


def end_call(item: Fields, fields: Mapping[str, Any]) -> None:
    """Put into a call how it ended."""
    item["status"] = _CALLS.get(fields["status"], "incomplete")
    item["output"] = fields.get("output")
    if item["status"] != "completed":
        told = fields.get("error") or fields["status"]
        content = [{"type": "text", "text": told}]
        item["error"] = {"type": "mcp_tool_execution_error", "content": content}


def asked_item(turn: Turn) -> Fields:
    """Return the person's message."""
    return {
        "id": f"msg_{turn.id}_0",
        "type": "message",
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": turn.message}],
    }


def listed(items: Sequence[Fields], *, has_more: bool = False) -> Fields:
    """Return a page of a list."""
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else None,
        "last_id": items[-1]["id"] if items else None,
        "has_more": has_more,
    }
