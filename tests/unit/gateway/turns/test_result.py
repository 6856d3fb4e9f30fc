import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from gateway.engine.events import SessionReady, TextDone
from gateway.turns.evidence import Notice
from gateway.turns.result import failure_notice, memory_fields, turn_result
from memory.recall.query import HeldBack
from tests.conformance.suites.conversation_values import turn
from tests.support.builders import (
    LOG_FILE,
    NOON,
    REMEMBERED,
    called,
    ending,
    evidence_of,
    failed,
    finished,
    returned,
)

HTTP = (Path(__file__).parents[4] / "docs" / "http.md").read_text(encoding="utf-8")
PACK = replace(
    REMEMBERED,
    held_back=[HeldBack(id="j", reason="stale_tool_schema")],
    degraded=["vector_timeout"],
)


def test_a_turn_result_has_exactly_the_contracts_fields() -> None:
    evidence = evidence_of(
        SessionReady(session_id="s1", model="m1"),
        called("t1", command="mv a.txt b.txt"),
        returned(),
        called("t2", "Read", file_path="c"),
        failed("gone", "t2"),
        TextDone(text="Half done."),
        finished(usage={"input_tokens": 3, "output_tokens": 2}),
        notices=[Notice("tools_failed", "1 of 2")],
    )
    result = turn_result(
        evidence,
        ending(),
        turn=turn("1", "1"),
        memory=memory_fields(PACK),
        cost_usd=0.25,
        started_at=NOON,
        finished_at=NOON + timedelta(milliseconds=1500),
        duration_ms=1234,
    )
    assert result == {
        "conversation_id": "cnv_1",
        "turn_id": "trn_1",
        "reply": "Half done.",
        "outcome": "answered_with_failures",
        "stop_reason": "end_turn",
        "cause": None,
        "notices": [{"code": "tools_failed", "message": "1 of 2"}],
        "tools": [
            {
                "index": 1,
                "tool_use_id": "t1",
                "name": "Bash",
                "summary": "mv a.txt b.txt",
                "status": "ok",
                "error": None,
                "duration_ms": 0,
                "parameters": ["command"],
            },
            {
                "index": 2,
                "tool_use_id": "t2",
                "name": "Read",
                "summary": "c",
                "status": "failed",
                "error": "gone",
                "duration_ms": 0,
                "parameters": ["file_path"],
            },
        ],
        "steps": [
            {"type": "tool", "index": 1},
            {"type": "tool", "index": 2},
            {"type": "text", "text": "Half done."},
        ],
        "memory": {
            "injected": [
                {
                    "id": "epi_1",
                    "kind": "note",
                    "title": "Tea",
                    "why": "tea",
                    "source": "ann.md",
                    "revision": 1,
                    "conversation_id": None,
                    "turn_id": None,
                }
            ],
            "suppressed": [{"id": "j", "reason": "stale_tool_schema"}],
            "degraded": ["vector_timeout"],
            "profile": False,
            "saved": [],
            "forgotten": [],
        },
        "changes": {"files": 0, "added": 0, "removed": 0, "complete": True},
        "model": "m1",
        "session_id": "s1",
        "usage": {"input_tokens": 3, "output_tokens": 2},
        "cost_usd": 0.25,
        "log_file": LOG_FILE,
        "started_at": "2026-11-20T12:00:00.000Z",
        "finished_at": "2026-11-20T12:00:01.500Z",
        "duration_ms": 1234,
    }
    (shown,) = re.findall(r"```json\n(\{\"conversation_id\".*?)```", HTTP, re.DOTALL)
    documented = json.loads(shown)
    assert list(documented) == list(result)
    assert documented["tools"][0].keys() == result["tools"][0].keys()
    assert documented["memory"].keys() == result["memory"].keys()


def test_the_notice_of_failures_counts_and_names_them() -> None:
    evidence = evidence_of(called(), returned(), called("t2"), failed("No such file.", "t2"))
    notice = failure_notice(evidence, ending())
    assert notice == Notice(
        "tools_failed", "1 of 2 tool calls did not succeed: Bash: ls failed: No such file."
    )
    chinese = failure_notice(evidence, ending("zh"))
    assert chinese == Notice(
        "tools_failed", "2 次工具调用中有 1 次没有成功：Bash: ls 失败：No such file。"
    )
