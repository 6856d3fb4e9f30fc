"""Serve the model's replies of a turn from its log, so that the turn runs again
without the model.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

import anyio

from gateway.demo.answer import Answer, Block, Text, Thinking, ToolCall
from gateway.demo.server import serve_demo
from gateway.errors import StartError
from gateway.journal.reader import LogLine, find_log, read_log


def replies_in(lines: Iterable[LogLine]) -> list[Answer]:
    """Return the model's answers in a turn's log, in order; secrets in them are masked."""
    answers: dict[str, list[Block]] = {}
    for line in lines:
        fields = line.fields or {}
        message = fields.get("message") if fields.get("solicited") else None
        if not isinstance(message, dict) or message.get("type") != "AssistantMessage":
            continue
        if message["error"] is None and message["message_id"]:
            answers.setdefault(message["message_id"], []).extend(map(_block, message["content"]))
    return [_answer(tuple(blocks)) for blocks in answers.values()]


def _block(block: Mapping[str, Any]) -> Block:
    match block["type"]:
        case "ToolUseBlock":
            return ToolCall(block["name"], block["input"])
        case "ThinkingBlock":
            return Thinking(block["thinking"])
        case _:
            return Text(block.get("text", ""))


def _answer(blocks: tuple[Block, ...]) -> Answer:
    calls = any(isinstance(block, ToolCall) for block in blocks)
    return Answer(blocks=blocks, stop_reason="tool_use" if calls else "end_turn")


def run_replay(turn_id: str, log_dir: Path, out: TextIO) -> int:
    """Serve the Messages API on loopback until interrupted.

    Raise `StartError` if the turn has no log or its log has no reply.
    """
    lines = read_log(log_dir, find_log(log_dir, turn_id) or "")
    if lines is None:
        raise StartError(f"There is no log of turn {turn_id}.")
    replies = replies_in(lines)
    if not replies:
        raise StartError(f"The log of turn {turn_id} holds no reply of a model.")

    async def serve() -> None:
        async with serve_demo(replies=replies) as url:
            print(f"ANTHROPIC_BASE_URL={url}", file=out, flush=True)
            await anyio.sleep_forever()

    anyio.run(serve)
    return 0
