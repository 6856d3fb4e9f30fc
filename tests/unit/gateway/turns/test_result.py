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
from tests.support.tables import read_table_text

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
    expected = json.loads(read_table_text("turn-result"))
    assert result == expected | {"log_file": LOG_FILE}
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
