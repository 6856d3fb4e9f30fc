"""A conversation as a file: Markdown to read, or JSON lines with everything. Pure."""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.conversations.model import Turn
from gateway.http.markdown_blocks import closed
from gateway.http.views import conversation_fields, turn_messages
from gateway.jsonsafe import json_text
from gateway.observability.effects import describe_effects
from gateway.turns.requests import ConversationView
from memory.clock import rfc3339

_CANNOT_BE_SHOWN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """How a conversation is written."""

    media_type: str
    suffix: str
    head: Callable[[ConversationView], str]
    turn: Callable[[Turn], str]


async def export(
    view: ConversationView, turns: AsyncIterator[Turn], form: ExportFormat
) -> AsyncIterator[str]:
    """Yield the file piece by piece, oldest turn first."""
    yield form.head(view)
    async for turn in turns:
        yield form.turn(turn)


def _json_head(view: ConversationView) -> str:
    return f"{json_text({'type': 'conversation', **conversation_fields(view)})}\n"


def _json_turn(turn: Turn) -> str:
    return "".join(
        f"{json_text({'type': 'message', **message})}\n" for message in turn_messages(turn)
    )


def _markdown_head(view: ConversationView) -> str:
    conversation = view.conversation
    facts = [
        "1 turn" if conversation.turns == 1 else f"{conversation.turns} turns",
        f"last activity {rfc3339(conversation.last_activity_at)}",
    ]
    if conversation.project_id:
        facts.append(f"project {code_span(conversation.project_id)}")
    title = _one_line(conversation.title) or "Conversation"
    return f"# {title}\n\n{code_span(conversation.id)} · {' · '.join(facts)}\n"


def _markdown_turn(turn: Turn) -> str:
    parts = [f"## User · {rfc3339(turn.created_at)}", closed(turn.message)]
    result = turn.result
    if result is not None:
        parts += [f"## Assistant · {result['finished_at']}", *_steps(result), _closing(result)]
        parts[-1:-1] = [f"> {_one_line(notice['message'])}" for notice in result["notices"]]
    return "\n" + "\n\n".join(_clean(part).strip("\n") for part in parts) + "\n"


def _steps(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield texts and tool calls in their order; a result without one has its calls first."""
    # the first servers did not number them
    tools = {tool.get("index", n): tool for n, tool in enumerate(result["tools"], start=1)}
    steps = result.get("steps") or [
        *({"type": "tool", "index": index} for index in tools),
        {"type": "text", "text": result["reply"]},
    ]
    written = ""
    for step in steps:
        if step["type"] == "text":
            written += step["text"]
            yield closed(step["text"])
        elif step["type"] == "tool" and step["index"] in tools:
            yield _tool(tools[step["index"]])
    if not written.strip():
        yield closed(result["reply"])


def _tool(tool: Mapping[str, Any]) -> str:
    error = f": {_one_line(tool['error'])}" if tool["error"] else ""
    summary = f" {code_span(tool['summary'])}" if tool["summary"] else ""
    return f"- {code_span(tool['name'])}{summary} ({tool['status']}{error})"


def _closing(result: Mapping[str, Any]) -> str:
    usage = result["usage"]
    facts = [
        result["outcome"],
        describe_effects(result),
        result["model"],
        f"{usage['input_tokens']} tokens in, {usage['output_tokens']} out",
        f"${result['cost_usd']:.4f}" if result["cost_usd"] else "",
    ]
    return f"*{' · '.join(_one_line(fact) for fact in facts if fact)}*"


def code_span(text: str) -> str:
    """Return a text as a Markdown code span on one line, whatever backticks it has."""
    line = _one_line(text)
    fence = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    edge = " " if "`" in line else ""
    return f"{fence}{edge}{line}{edge}{fence}"


def _one_line(text: str) -> str:
    return " ".join(_clean(text).split())


def _clean(text: str) -> str:
    return _CANNOT_BE_SHOWN.sub("�", text)


FORMATS: Mapping[str, ExportFormat] = {
    "markdown": ExportFormat(
        media_type="text/markdown", suffix="md", head=_markdown_head, turn=_markdown_turn
    ),
    "jsonl": ExportFormat(
        media_type="application/x-ndjson", suffix="jsonl", head=_json_head, turn=_json_turn
    ),
}
