"""A run that ends without an answer is sent on once: for a summary, or to do what the skill says."""

from pathlib import Path

from tests.support.builders import codes
from tests.support.services import (
    ask,
    events_of,
    journal_of,
    result_of,
    running_services,
    script,
    scripted_engine,
    send,
)

LS = {"tool": "Bash", "input": {"command": "ls"}}
CURL = {"tool": "Bash", "input": {"command": "curl http://x"}}
SILENT = {"empty": True}


async def test_a_summary_that_only_calls_tools_is_broken_off(tmp_path: Path) -> None:
    calling = {"tools": [LS] * 50}
    async with running_services(tmp_path) as services:
        result = await ask(services, script(LS, SILENT, {"on_followup": [calling]}))
        lines = await journal_of(services, result)
    forbidden = [
        line for line in lines if line["kind"] == "permission" and line["verdict"] == "deny"
    ]
    assert len(forbidden) == 3, "fifty were to come"
    assert result["outcome"] == "tool_failed"
    assert [tool["status"] for tool in result["tools"]] == ["ok", *["denied"] * 3]
    assert result["reply"].startswith("Until then: Bash: ls succeeded. This was not carried out. ")
    assert codes(result["notices"]) == ["forced_summary", "summary_failed", "tools_failed"]


async def test_a_summary_that_fails_leaves_the_tool_outcomes_as_the_reply(tmp_path: Path) -> None:
    failure = {"drop": True, "times": 20}
    async with running_services(tmp_path) as services:
        result = await ask(services, script(CURL, SILENT, {"on_followup": [failure]}))
    assert (result["outcome"], result["stop_reason"]) == ("tool_failed", "end_turn")
    assert "curl http://x was denied" in result["reply"]
    assert {"forced_summary", "summary_failed", "tools_failed"} <= set(codes(result["notices"]))


async def test_a_process_that_dies_in_the_summary_leaves_the_outcomes_and_a_fresh_start(
    tmp_path: Path,
) -> None:
    dying = {"text": "half a sum", "delta_delay_ms": 60_000}
    async with running_services(tmp_path) as services:
        accepted = await send(services, script(LS, SILENT, {"on_followup": [dying]}))
        await events_of(services, accepted, until="text.delta")
        await scripted_engine(services).clients[0].kill()
        result = await result_of(services, accepted)
        after = await ask(services, "hello", accepted.conversation_id)
    assert result["outcome"] == "empty"
    assert result["reply"].endswith("What it did: Bash: ls succeeded.")
    assert after["outcome"] == "answered"
