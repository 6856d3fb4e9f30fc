import json
from pathlib import Path
from typing import Any

from gateway.chat.reader import whole_call_blocking

LOG_FILE = "2026-11-20/trn_1.jsonl"
CALL = {"index": 1, "tool_use_id": "t1", "status": "ok", "error": None, "input": {}, "output": "…"}


def returned(tool_use_id: str, content: Any) -> dict[str, Any]:
    block = {"type": "ToolResultBlock", "tool_use_id": tool_use_id, "content": content}
    return {"kind": "message", "message": {"type": "UserMessage", "content": [block]}}


def test_a_call_is_whole_where_its_log_names_it_alone(tmp_path: Path) -> None:
    lines = [
        {"kind": "permission", "index": 1, "input": {"command": "cat long"}},
        {"kind": "permission", "index": 2, "input": {"command": "other"}},
        {"kind": "message", "message": {"type": "UserMessage", "content": "plain"}},
        returned("t1", "<tool_use_error>all of it</tool_use_error>"),
        returned("t2", [{"type": "text", "text": "twice"}, {"type": "image"}]),
        returned("t2", "again"),
    ]
    (tmp_path / LOG_FILE).parent.mkdir()
    text = "".join(json.dumps(line) + "\n" for line in lines) + "torn"
    (tmp_path / LOG_FILE).write_text(text, encoding="utf-8")
    whole = {**CALL, "input": {"command": "cat long"}, "output": "all of it"}
    assert whole_call_blocking(tmp_path, LOG_FILE, CALL) == whole
    failed = {**CALL, "status": "failed", "error": "…"}
    assert whole_call_blocking(tmp_path, LOG_FILE, failed)["error"] == "all of it"
    second = {**CALL, "index": 2, "tool_use_id": "t2"}
    assert whole_call_blocking(tmp_path, LOG_FILE, second)["output"] == "…"
    assert whole_call_blocking(tmp_path, "2026-11-20/trn_2.jsonl", CALL) == CALL
