"""A tool call as the log of its turn has it: events hold long inputs and outputs clipped, the log whole."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gateway.engine.result_text import plain_result
from gateway.journal.reader import read_log

_RETURNED = frozenset({"ok", "failed"})


def whole_call_blocking(log_dir: Path, log_file: str, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call with its input and output from its turn's log.

    What the log does not have, or does not attribute to this call alone, stays as it was.
    """
    whole = dict(call)
    outputs: list[str] = []
    for line in read_log(log_dir, log_file) or ():
        fields = line.fields or {}
        if fields.get("kind") == "permission" and fields.get("index") == call["index"]:
            whole["input"] = fields["input"]
        elif fields.get("kind") == "message":
            outputs += _outputs(fields.get("message"), call["tool_use_id"])
    if len(outputs) == 1 and call["status"] in _RETURNED:
        whole["output"] = plain_result(outputs[0])
        if call["error"] is not None:
            whole["error"] = whole["output"]
    return whole


def _outputs(message: object, tool_use_id: str) -> Iterator[str]:
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "ToolResultBlock" and block.get("tool_use_id") == tool_use_id:
            returned = block.get("content")
            parts = returned if isinstance(returned, list) else [{"text": returned or ""}]
            yield "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)
