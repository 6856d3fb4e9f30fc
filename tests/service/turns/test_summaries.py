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


async def test_a_silent_run_is_asked_once_for_a_summary(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accepted = await send(
            services, script(LS, SILENT, {"on_followup": [{"text": "I listed the files."}]})
        )
        result = await result_of(services, accepted)
    assert (result["outcome"], result["reply"]) == ("answered", "I listed the files.")
    assert codes(result["notices"]) == ["forced_summary"]


async def test_a_summary_may_call_no_tool_and_what_it_tried_is_reported(
    tmp_path: Path,
) -> None:
    write = {"tool": "Write", "input": {"file_path": "new.txt", "content": "x"}}
    summary = {**write, "text": "Let me write."}
    async with running_services(tmp_path) as services:
        result = await ask(services, script(LS, SILENT, {"on_followup": [summary]}))
        lines = await journal_of(services, result)
        assert not (services.settings.workspace / "new.txt").exists()
    tried = [(tool["index"], tool["name"], tool["status"]) for tool in result["tools"]]
    assert tried == [(1, "Bash", "ok"), (2, "Write", "denied")]
    assert (result["reply"], result["outcome"]) == ("Let me write.", "answered_with_failures")
    assert codes(result["notices"]) == ["forced_summary", "summary_failed", "tools_failed"]
    assert [line["rule"] for line in lines if line["kind"] == "permission"][-1] == "summary_only"


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


SKILL = {"tool": "Read", "input": {"file_path": "SKILL.md"}}


async def test_a_run_that_only_read_a_skill_is_sent_on_and_only_once(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        (services.settings.workspace / "SKILL.md").write_text("# Do it", encoding="utf-8")
        followed = {"tool": "Bash", "input": {"command": "ls"}, "text": "Now I do it."}
        result = await ask(
            services,
            script(SKILL, {"text": "The skill says: do it."}, {"on_followup": [followed]}),
        )
        again = await ask(
            services,
            script(
                SKILL,
                {"text": "It says: do it."},
                {"on_followup": [{**SKILL, "text": ""}, {"text": "I read it again."}]},
            ),
        )
    assert [tool["name"] for tool in result["tools"]] == ["Read", "Bash"]
    assert codes(result["notices"])[0] == "followed_skill"
    assert codes(again["notices"]).count("followed_skill") == 1
