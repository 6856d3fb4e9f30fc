"""Outcomes, steps and forced summaries of turns."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.engine.events import RunFinished
from gateway.errors import NotFound
from gateway.ids import LOCAL_USER as ME
from gateway.ids import UserId
from gateway.turns.gate import TurnGate
from policies.calls import ToolCall
from policies.secrets import MASK, mask_secrets
from policies.tools import ToolGate
from policies.verdict import Allow, Deny, Verdict
from tests.support.builders import NOON, broken_off, codes, finished
from tests.support.scripted_engine import ScriptedRun
from tests.support.services import HANG, kinds, of_kind, running_services, script

LS = {"tool": "Bash", "input": {"command": "ls"}}
CURL = {"tool": "Bash", "input": {"command": "curl http://x"}}
SILENT = {"empty": True}


async def test_a_plain_answer_is_told_streamed_and_written_down_in_order(tmp_path: Path) -> None:
    async with running_services(tmp_path, recall_deadline_ms=10_000) as services:
        result, events, lines = await services.play(script(LS, {"text": "That is all."}))
    assert (result["outcome"], result["stop_reason"]) == ("answered", "end_turn")
    assert result["reply"] == "That is all."
    assert [(tool["name"], tool["status"]) for tool in result["tools"]] == [("Bash", "ok")]
    assert kinds(events)[:3] == ["turn.started", "tool.started", "tool.finished"]
    assert kinds(events)[-1] == "turn.completed"
    assert of_kind(events, "turn.completed") == [result]
    assert [event.n for event in events] == list(range(1, len(events) + 1))
    assert "".join(item["text"] for item in of_kind(events, "text.delta")) == "That is all."
    order = ["request", "context", "message", "permission", "tool", "response"]
    assert [line["kind"] for line in lines] == order
    assert [each_line["seq"] for each_line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["reply"] == result["reply"]


async def test_what_readers_were_shown_is_not_masked_again_for_the_result_and_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: list[str] = []

    def mask(text: str, **known: Any) -> str:
        whole.extend([text] * (text.count("word 词 ") == 150))
        return mask_secrets(text, **known)

    monkeypatch.setattr("gateway.assemble.mask_secrets", mask)
    said = f"{'word 词 ' * 150} sk-{'ant-api03-abcdefghij0123456789'} end"
    async with running_services(tmp_path) as services:
        conversation_id = (await services.ask("hi"))["conversation_id"]
        await services.change(conversation_id, memory_enabled=False)
        result = await services.ask(script({"thinking": "hm", "text": said}), conversation_id)
        lines = await services.journal_of(result)
    assert result["reply"] == result["steps"][1]["text"] == lines[-1]["reply"]
    assert MASK in result["reply"]
    assert not whole


async def test_outcomes_of_runs_that_came_to_their_end(tmp_path: Path) -> None:
    runs: list[tuple[list[dict[str, Any]], str, list[str]]] = [
        ([CURL, {"text": "No."}], "answered_with_failures", ["tools_failed"]),
        (
            [CURL, SILENT, {"on_followup": [SILENT]}],
            "tool_failed",
            ["forced_summary", "summary_failed", "tools_failed"],
        ),
        ([LS, SILENT, {"on_followup": [SILENT]}], "empty", ["forced_summary", "summary_failed"]),
        ([SILENT], "empty", []),
        ([{"refusal": True}], "empty", []),
    ]
    async with running_services(tmp_path) as services:
        for steps, outcome, notices in runs:
            result = await services.ask(script(*steps))
            assert (result["outcome"], codes(result["notices"])) == (outcome, notices), steps
            assert result["reply"]


async def test_the_policy_reads_command_lines_as_the_shell_of_this_system_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = script({"tool": "Bash", "input": {"command": "Get-ChildItem"}}, {"text": "Done."})
    # the scripted engine lets a call pass on the policy's word, and then has no PowerShell to run it
    for platform, status in (("posix", "denied"), ("windows", "failed")):
        monkeypatch.setattr("gateway.workspace_parts.HERE", platform)
        async with running_services(tmp_path) as services:
            result = await services.ask(turn)
        assert [tool["status"] for tool in result["tools"]] == [status]


async def test_a_reason_is_told_in_the_persons_language_and_to_the_model_in_english(
    tmp_path: Path,
) -> None:
    steps: list[dict[str, Any]] = [CURL, SILENT, {"on_followup": [SILENT]}]
    message = f"请按照脚本一步一步地执行，并且如实地说明每一步的结果。{script(*steps)}"
    async with running_services(tmp_path) as services:
        result, events, lines = await services.play(message)
    assert [tool["error"] for tool in result["tools"]] == ["不允许使用这个命令"]
    assert of_kind(events, "tool.finished")[0]["error"] == "不允许使用这个命令"
    assert "Bash: curl http://x 被拒绝：不允许使用这个命令" in result["reply"]
    assert "is not allowed" not in str(result)
    (permission,) = (line for line in lines if line["kind"] == "permission")
    assert permission["reason"] == "The command curl is not allowed."


async def test_an_interrupting_denial_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field log problem 10."""
    denial = Deny("test", "Bash is out of bounds.", interrupt=True)
    monkeypatch.setattr(ToolGate, "judge", lambda *_: denial)
    async with running_services(tmp_path) as services:
        result = await services.ask(script(LS, {"text": "never"}))
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "policy_interrupt")
    assert result["reply"].startswith("A rule stopped this turn: Bash is out of bounds.")
    assert result["tools"][0]["status"] == "denied"


async def test_durations_do_not_follow_the_wall_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = (NOON + timedelta(hours=sign * n) for n in count() for sign in (1, -1))
    monkeypatch.setattr("gateway.assemble.utc_now", lambda: next(moments))
    async with running_services(tmp_path) as services:
        result = await services.ask(script(LS, {"text": "Done."}))
    assert 0 <= result["tools"][0]["duration_ms"] <= result["duration_ms"] < 60_000


async def test_a_doom_loop_is_ended_at_once(tmp_path: Path) -> None:
    async with running_services(tmp_path, doom_loop_threshold=3) as services:
        result = await services.ask(script({"repeat": LS, "times": 9}, {"text": "never"}))
    assert (result["outcome"], result["stop_reason"]) == ("stopped", "doom_loop")
    assert [tool["status"] for tool in result["tools"]] == ["ok", "ok", "denied"]
    assert "never" not in result["reply"]


async def test_a_doom_loop_of_calls_that_no_gate_was_asked_about_is_ended_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def judge(_gate: TurnGate, call: ToolCall) -> Verdict:
        await anyio.lowlevel.checkpoint()
        return Allow("test", call.name)

    monkeypatch.setattr(TurnGate, "_verdict", judge)
    async with running_services(tmp_path, doom_loop_threshold=3) as services:
        result = await services.ask(script({"repeat": LS, "times": 20_000}))
    assert (result["outcome"], result["stop_reason"]) == ("stopped", "doom_loop")
    assert len(result["tools"]) < 20_000


async def test_a_limit_of_time_ends_a_turn(tmp_path: Path) -> None:
    async with running_services(tmp_path, turn_timeout_s=0.3) as services:
        result = await services.ask(HANG)
    assert (result["outcome"], result["stop_reason"]) == ("stopped", "timeout")
    assert "longer than 0.3 seconds" in result["reply"]


@pytest.mark.parametrize(
    ("finish", "reason", "notice"),
    [
        (broken_off(terminal_reason="aborted_streaming"), "engine_crash", "partial_text"),
        (finished(stop_reason="refusal"), "refusal", "refusal"),
        (finished(stop_reason="max_tokens"), "end_turn", "max_tokens"),
    ],
)
async def test_text_that_may_not_be_whole_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finish: RunFinished, reason: str, notice: str
) -> None:
    monkeypatch.setattr(ScriptedRun, "_finished", lambda *_, **__: finish)
    async with running_services(tmp_path) as services:
        result = await services.ask("hello")
    assert (result["outcome"], result["stop_reason"]) == ("answered", reason)
    assert codes(result["notices"]) == [notice]


STORED = "SELECT sum(length(data)) FROM events WHERE type = 'turn.completed'"
STEPS = (
    {"thinking": "Look first.", "text": "I look."},
    {"tool": "Bash", "input": {"command": "cat   a.txt"}},
    {"text": "Now I write."},
    {"tool": "Write", "input": {"file_path": "b.txt", "content": "known-secret-4711"}},
    {"text": "Done."},
)


async def test_the_calls_of_a_finished_turn_open_to_their_input_and_output(tmp_path: Path) -> None:
    async with running_services(tmp_path, approvals="on") as services:
        reader, conversations = services.chat.reader, services.chat.conversations
        accepted = await services.send(script(*STEPS))
        question = await services.question_of(accepted)
        place = (accepted.conversation_id, accepted.turn_id)
        assert (await reader.tool_call(ME, *place, 2))["status"] is None
        await services.answer(question, "allow")
        result = await services.result_of(accepted)
        assert [step.get("text") or step.get("index") for step in result["steps"]] == [
            *("Look first.", "I look.", 1, "Now I write.", 2, 2, "Done.")
        ]
        answer = {"approval_id": question["approval_id"], "decision": "allow", "by": "user"}
        answer["allowed_by"] = result["tools"][1]["allowed_by"]
        assert answer["allowed_by"]["by"] == "person"
        assert result["steps"][5] == {"type": "approval", "index": 2, **answer}
        read, write = [await reader.tool_call(ME, *place, index) for index in (1, 2)]
        assert (read["input"], read["output"]) == ({"command": "cat   a.txt"}, "alpha")
        assert read["ran"] == {"command": "cat -- a.txt"}
        assert {key: read[key] for key in result["tools"][0]} == result["tools"][0]
        assert "4711" not in str(write)
        for user, index in ((UserId("bob"), 1), (ME, 3), (ME, 0)):
            with pytest.raises(NotFound):
                await reader.tool_call(user, *place, index)
        ended = of_kind(await services.events_of(accepted), "turn.completed")
        assert ended == [result], "stored once, it is read with the turn and its last event"
        with closing(sqlite3.connect(services.settings.data_dir / "candor.sqlite3")) as database:
            assert database.execute(STORED).fetchone() == (0,)
        fork = await conversations.fork(ME, *place)
        (copy,) = await conversations.messages(ME, fork, limit=9, before_seq=None)
        assert (await reader.tool_call(ME, fork, copy.id, 1))["output"] == "alpha"
        await conversations.delete(ME, accepted.conversation_id)
        with pytest.raises(NotFound) as gone:
            await reader.tool_call(ME, fork, copy.id, 1)
        assert gone.value.specific_code == "call_deleted"


async def test_a_summary_that_only_calls_tools_is_broken_off(tmp_path: Path) -> None:
    calling = {"tools": [LS] * 50}
    async with running_services(tmp_path) as services:
        result = await services.ask(script(LS, SILENT, {"on_followup": [calling]}))
        lines = await services.journal_of(result)
    verdicts = [line["verdict"] for line in lines if line["kind"] == "permission"]
    assert verdicts.count("deny") == 3, "fifty were to come"
    assert result["outcome"] == "tool_failed"
    assert [tool["status"] for tool in result["tools"]] == ["ok", *["denied"] * 3]
    assert result["reply"].startswith("Until then: Bash: ls succeeded. This was not carried out. ")
    assert codes(result["notices"]) == ["forced_summary", "summary_failed", "tools_failed"]


async def test_a_summary_that_fails_leaves_the_tool_outcomes_as_the_reply(tmp_path: Path) -> None:
    failure = {"drop": True, "times": 20}
    async with running_services(tmp_path) as services:
        result = await services.ask(script(CURL, SILENT, {"on_followup": [failure]}))
    assert (result["outcome"], result["stop_reason"]) == ("tool_failed", "end_turn")
    assert "curl http://x was denied" in result["reply"]
    assert {"forced_summary", "summary_failed", "tools_failed"} <= set(codes(result["notices"]))


async def test_a_process_that_dies_in_the_summary_leaves_the_outcomes_and_a_fresh_start(
    tmp_path: Path,
) -> None:
    dying = {"text": "half a sum", "delta_delay_ms": 60_000}
    async with running_services(tmp_path) as services:
        accepted = await services.send(script(LS, SILENT, {"on_followup": [dying]}))
        await services.events_of(accepted, until="text.delta")
        await services.scripted.clients[0].kill()
        result = await services.result_of(accepted)
        after = await services.ask("hello", accepted.conversation_id)
    assert result["outcome"] == "empty"
    assert result["reply"].endswith("What it did: Bash: ls succeeded.")
    assert after["outcome"] == "answered"
