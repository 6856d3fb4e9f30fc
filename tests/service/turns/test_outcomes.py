"""How turns end, through Chat, on the scripted engine."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.model import ConversationChange
from gateway.engine.events import RunFinished
from gateway.engine.protocol import ClientDead, Prompt
from gateway.engine.scripted import ScriptedClient, ScriptedRun
from gateway.ids import LOCAL_USER as ME
from gateway.turns.gate import TurnGate
from memory.recall.query import QueryPack
from memory.scope import Scope
from policies.tools import ToolCall, ToolGate
from policies.verdict import Allow, Deny, Verdict
from tests.support.builders import REMEMBERED, Memory, broken_off, codes, finished
from tests.support.services import (
    HANG,
    ask,
    assert_nothing_is_left,
    begun,
    events_of,
    journal_of,
    kinds,
    of_kind,
    result_of,
    running_services,
    script,
    scripted_engine,
    send,
)

LS = {"tool": "Bash", "input": {"command": "ls"}}
CURL = {"tool": "Bash", "input": {"command": "curl http://x"}}
SILENT = {"empty": True}


async def test_a_plain_answer_is_told_streamed_and_written_down_in_order(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accepted = await send(services, script(LS, {"text": "That is all."}))
        events = await events_of(services, accepted)
        result = await result_of(services, accepted)
        lines = await journal_of(services, result)
    assert (result["outcome"], result["stop_reason"]) == ("answered", "end_turn")
    assert result["reply"] == "That is all."
    assert [(one["name"], one["status"]) for one in result["tools"]] == [("Bash", "ok")]
    assert kinds(events)[:3] == ["turn.started", "tool.started", "tool.finished"]
    assert kinds(events)[-1] == "turn.completed"
    assert of_kind(events, "turn.completed") == [result]
    assert [one.n for one in events] == list(range(1, len(events) + 1))
    assert "".join(one["text"] for one in of_kind(events, "text.delta")) == "That is all."
    assert [one["kind"] for one in lines] == [
        "request",
        "context",
        "message",
        "permission",
        "tool",
        "response",
    ]
    assert [one["seq"] for one in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["reply"] == result["reply"]


@pytest.mark.parametrize(
    ("steps", "outcome", "notices"),
    [
        ([CURL, {"text": "No."}], "answered_with_failures", ["tools_failed"]),
        (
            [{"tool": "Read", "input": {"file_path": "gone.txt"}}, {"text": "No."}],
            "answered_with_failures",
            ["tools_failed"],
        ),
        (
            [CURL, SILENT, {"on_followup": [SILENT]}],
            "tool_failed",
            ["forced_summary", "summary_failed", "tools_failed"],
        ),
        ([LS, SILENT, {"on_followup": [SILENT]}], "empty", ["forced_summary", "summary_failed"]),
        ([SILENT], "empty", []),
        ([{"refusal": True}], "empty", []),
    ],
)
async def test_outcomes_of_runs_that_came_to_their_end(
    tmp_path: Path, steps: list[dict[str, Any]], outcome: str, notices: list[str]
) -> None:
    async with running_services(tmp_path) as services:
        result = await ask(services, script(*steps))
    assert (result["outcome"], codes(result["notices"])) == (outcome, notices)
    assert result["reply"]


async def test_no_path_of_the_server_and_no_secret_reaches_a_client(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        workspace = services.settings.workspace
        accepted = await send(
            services,
            script(
                {"tool": "Read", "input": {"file_path": f"{workspace}/gone.txt"}},
                {
                    "tool": "Write",
                    "input": {"file_path": "s", "content": "token known-secret-4711"},
                },
                {"tool": "Read", "input": {"file_path": "s"}},
                {"text": "It is known-secret-4711."},
            ),
        )
        events = await events_of(services, accepted)
        result = await result_of(services, accepted)
    everything = "".join(one.data for one in events)
    assert str(tmp_path) not in everything
    assert "known-secret-4711" not in everything
    assert result["reply"].startswith("It is ")
    assert result["tools"][0]["summary"] == "gone.txt"
    assert "No such file" in result["tools"][0]["error"]


async def test_a_lone_surrogate_in_what_the_agent_says_breaks_nothing(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        result = await ask(services, script({"text": "a\ud800b"}))
    assert (result["outcome"], result["reply"]) == ("answered", "a\ufffdb")


async def test_the_gateways_own_sentences_are_in_the_language_of_the_message(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        result = await ask(services, "请列出文件 " + script(SILENT))
    assert result["reply"] == "这一轮已结束，但没有文本输出；没有任何失败。"


class Interrupting(ToolGate):
    """A policy that ends the run with its denial."""

    def judge(self, call: ToolCall) -> Verdict:
        return Deny("test", f"{call.name} is out of bounds.", interrupt=True)


async def test_an_interrupting_denial_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field log problem 10."""
    monkeypatch.setattr("gateway.assemble.ToolGate", Interrupting)
    async with running_services(tmp_path) as services:
        result = await ask(services, script(LS, {"text": "never"}))
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "policy_interrupt")
    assert result["reply"].startswith("A rule stopped this turn: Bash is out of bounds.")
    assert result["tools"][0]["status"] == "denied"


async def test_a_policy_that_raises_denies_and_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_gate: ToolGate, _call: ToolCall) -> Verdict:
        raise RuntimeError("broken")

    monkeypatch.setattr(ToolGate, "judge", broken)
    async with running_services(tmp_path) as services:
        result = await ask(services, script(LS, {"text": "Hm."}))
        lines = await journal_of(services, result)
    assert result["tools"][0]["status"] == "denied"
    assert [one["verdict"] for one in lines if one["kind"] == "permission"] == ["deny"]


async def test_a_doom_loop_is_ended_at_once(tmp_path: Path) -> None:
    async with running_services(tmp_path, doom_loop_threshold=3) as services:
        result = await ask(services, script({"repeat": LS, "times": 9}, {"text": "never"}))
    assert (result["outcome"], result["stop_reason"]) == ("stopped", "doom_loop")
    assert [one["status"] for one in result["tools"]] == ["ok", "ok", "denied"]
    assert "never" not in result["reply"]


async def test_a_doom_loop_of_calls_that_no_gate_was_asked_about_is_ended_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def judge(_gate: TurnGate, call: ToolCall) -> Verdict:
        await anyio.lowlevel.checkpoint()
        return Allow("test", call.name)

    monkeypatch.setattr(TurnGate, "_verdict", judge)
    async with running_services(tmp_path, doom_loop_threshold=3) as services:
        result = await ask(services, script({"repeat": LS, "times": 20_000}))
    assert (result["outcome"], result["stop_reason"]) == ("stopped", "doom_loop")
    assert len(result["tools"]) < 20_000


async def test_a_loop_below_the_threshold_and_different_calls_are_no_doom_loop(
    tmp_path: Path,
) -> None:
    reads = [{"tool": "Bash", "input": {"command": f"ls {'-a ' * n}"}} for n in range(5)]
    async with running_services(tmp_path, doom_loop_threshold=3) as services:
        below = await ask(services, script(LS, LS, {"text": "Fine."}))
        different = await ask(services, script(*reads, {"text": "Fine."}))
        interleaved = await ask(services, script(*[LS, reads[1]] * 4, {"text": "Fine."}))
    assert [one["outcome"] for one in (below, different, interleaved)] == ["answered"] * 3


async def test_a_silent_run_is_asked_once_for_a_summary(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accepted = await send(
            services, script(LS, SILENT, {"on_followup": [{"text": "I listed the files."}]})
        )
        result = await result_of(services, accepted)
    assert (result["outcome"], result["reply"]) == ("answered", "I listed the files.")
    assert codes(result["notices"]) == ["forced_summary"]


async def test_a_summary_may_call_no_tool_and_its_calls_are_no_part_of_what_was_done(
    tmp_path: Path,
) -> None:
    write = {"tool": "Write", "input": {"file_path": "new.txt", "content": "x"}}
    summary = {**write, "text": "Let me write."}
    async with running_services(tmp_path) as services:
        result = await ask(services, script(LS, SILENT, {"on_followup": [summary]}))
        lines = await journal_of(services, result)
        assert not (services.settings.workspace / "new.txt").exists()
    assert [one["name"] for one in result["tools"]] == ["Bash"]
    assert result["reply"] == "Let me write."
    assert [one["rule"] for one in lines if one["kind"] == "permission"][-1] == "summary_only"


async def test_a_summary_that_only_calls_tools_is_broken_off(tmp_path: Path) -> None:
    calling = {"tools": [LS] * 50}
    async with running_services(tmp_path) as services:
        result = await ask(services, script(LS, SILENT, {"on_followup": [calling]}))
        lines = await journal_of(services, result)
    forbidden = [one for one in lines if one["kind"] == "permission" and one["verdict"] == "deny"]
    assert len(forbidden) == 3, "fifty were to come"
    assert result["outcome"] == "empty"
    assert result["reply"].endswith("What it did: Bash: ls succeeded.")
    assert codes(result["notices"]) == ["forced_summary", "summary_failed"]


@pytest.mark.parametrize(
    "failure",
    [
        {"status": 529, "times": 20},
        {"status": 401, "times": 20},
        {"drop": True, "times": 20},
    ],
)
async def test_a_summary_that_fails_leaves_the_tool_outcomes_as_the_reply(
    tmp_path: Path, failure: dict[str, Any]
) -> None:
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
    assert [one["name"] for one in result["tools"]] == ["Read", "Bash"]
    assert codes(result["notices"])[0] == "followed_skill"
    assert codes(again["notices"]).count("followed_skill") == 1


@pytest.mark.parametrize(
    ("status", "word"), [(400, "400"), (401, "ANTHROPIC_API_KEY"), (403, "403"), (404, "404")]
)
async def test_a_hopeless_request_is_given_up_at_its_first_failure(
    tmp_path: Path, status: int, word: str
) -> None:
    async with running_services(tmp_path) as services:
        result = await ask(services, script({"status": status, "times": 20}, {"text": "never"}))
        lines = await journal_of(services, result)
    assert len([one for one in lines if one["kind"] == "error"]) < 5, "it was not waited out"
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "api_error")
    assert word in result["reply"]
    assert "API Error" not in result["reply"]
    assert codes(result["notices"]) == []


@pytest.mark.parametrize(
    ("failure", "what"),
    [
        ({"status": 429}, "429, too many requests"),
        ({"status": 503}, "status 503"),
        ({"status": 529}, "529, overloaded"),
        ({"drop": True}, "the connection broke"),
    ],
)
async def test_a_failure_that_may_pass_is_told_and_waited_out(
    tmp_path: Path, failure: dict[str, Any], what: str
) -> None:
    async with running_services(tmp_path) as services:
        result = await ask(services, script({**failure, "times": 2}, {"text": "There you are."}))
    assert (result["outcome"], result["reply"]) == ("answered", "There you are.")
    assert codes(result["notices"]) == ["model_retrying"] * 2
    assert result["notices"][1]["message"] == (
        f"The model's service failed ({what}); attempt 2 of 10 follows in 0.0 s."
    )


async def test_a_failure_that_does_not_pass_is_told_in_a_sentence(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        result = await ask(services, script({"status": 529, "times": 20}))
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "api_error")
    assert result["reply"].startswith("The model's service was overloaded and stayed so (529).")


async def test_a_killed_agent_process_is_told_and_the_next_turn_remembers(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accepted = await send(services, HANG)
        await begun(services, accepted)
        await scripted_engine(services).clients[0].kill()
        result = await result_of(services, accepted)
        after = await ask(services, script({"echo": "messages"}), accepted.conversation_id)
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "engine_crash")
    assert result["reply"].startswith("I begin\n\nThe agent's process ended unexpectedly")
    assert "I begin" in after["reply"]
    assert after["notices"] == []


async def test_an_agent_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        scripted_engine(services).broken = True
        result = await ask(services, "hello")
        lines = await journal_of(services, result)
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "engine_crash")
    assert result["reply"].startswith("The agent could not be started")
    assert [one["kind"] for one in lines] == ["request", "error", "context", "response"]


class Dying:
    """Lets the first starts of runs find a dead process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.left = times
        real = ScriptedClient.start_run

        async def start_run(client: ScriptedClient, prompt: Prompt) -> ScriptedRun:
            if self.left:
                self.left -= 1
                await client.kill()
                raise ClientDead("The agent process has ended.")
            return await real(client, prompt)

        monkeypatch.setattr(ScriptedClient, "start_run", start_run)


async def test_a_process_found_dead_at_the_start_is_replaced_once_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        first = await ask(services, "hello")
        Dying(monkeypatch, times=1)
        second = await ask(services, script({"echo": "messages"}), first["conversation_id"])
        Dying(monkeypatch, times=2)
        third = await ask(services, "hello", first["conversation_id"])
        fourth = await ask(services, "hello", first["conversation_id"])
    assert (second["outcome"], codes(second["notices"])) == ("answered", ["client_restarted"])
    assert "hello" in second["reply"]
    assert (third["outcome"], third["stop_reason"]) == ("engine_failed", "engine_crash")
    assert fourth["outcome"] == "answered"


async def test_a_client_whose_prompt_may_be_with_it_still_is_not_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ScriptedClient.start_run
    async with running_services(tmp_path) as services:

        async def break_after_sending(client: ScriptedClient, prompt: Prompt) -> ScriptedRun:
            await real(client, prompt)
            raise RuntimeError("broken")

        with monkeypatch.context() as patched:
            patched.setattr(ScriptedClient, "start_run", break_after_sending)
            result = await ask(services, "hello")
        assert scripted_engine(services).clients == []
        assert_nothing_is_left(services)
        after = await ask(services, "hello", result["conversation_id"])
    assert (result["outcome"], after["outcome"]) == ("engine_failed", "answered")


async def test_a_lost_session_is_told_and_not_also_called_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_services(tmp_path) as services:
        first = await ask(services, "hello")
        conversation_id = first["conversation_id"]
        await services.pool.drop(conversation_id)
        scripted_engine(services).sessions.clear()
        lost = await ask(services, script({"echo": "messages"}), conversation_id)
        real = ScriptedClient.start_run

        async def start_run(client: ScriptedClient, prompt: Prompt) -> ScriptedRun:
            monkeypatch.setattr(ScriptedClient, "start_run", real)
            await client.kill()
            scripted_engine(services).sessions.clear()
            raise ClientDead("The agent process has ended.")

        monkeypatch.setattr(ScriptedClient, "start_run", start_run)
        both = await ask(services, "hello", conversation_id)
        after = await ask(services, script({"echo": "messages"}), conversation_id)
    assert (lost["outcome"], codes(lost["notices"])) == ("answered", ["session_lost"])
    assert "hello" not in lost["reply"]
    assert codes(both["notices"]) == ["session_lost"]
    assert codes(after["notices"]) == []


async def test_a_limit_of_time_ends_a_turn(tmp_path: Path) -> None:
    async with running_services(tmp_path, turn_timeout_s=0.3) as services:
        result = await ask(services, HANG)
    assert (result["outcome"], result["stop_reason"]) == ("stopped", "timeout")
    assert "longer than 0.3 seconds" in result["reply"]


async def test_what_memory_gives_reaches_the_model_the_client_and_the_journal(
    tmp_path: Path,
) -> None:
    memory = Memory(REMEMBERED)
    async with running_services(tmp_path, memory=memory) as services:
        accepted = await send(services, script({"echo": "context"}))
        result = await result_of(services, accepted)
        events = await events_of(services, accepted)
        lines = await journal_of(services, result)
    assert result["reply"] == "Ann likes tea."
    assert result["memory"]["injected"][0]["id"] == "epi_1"
    told = of_kind(events, "memory.injected")[0]
    assert {key: told[key] for key in result["memory"]} == result["memory"]
    context = lines[1]
    assert (context["kind"], context["text"]) == ("context", "Ann likes tea.")
    assert memory.asked == [
        QueryPack(
            queries=(script({"echo": "context"}),),
            scope=Scope(owner_id=ME),
            kinds=("note", "episode"),
            conversation_id=result["conversation_id"],
            deadline_s=0.24,
        )
    ]


@pytest.mark.parametrize(
    ("pack", "code", "deadline_ms"),
    [
        (None, "memory_timeout", 20),
        (RuntimeError("broken"), "memory_failed", 10_000),
        ("no pack at all", "memory_failed", 10_000),
    ],
)
async def test_a_memory_that_is_slow_or_broken_never_breaks_a_turn(
    tmp_path: Path, pack: Any, code: str, deadline_ms: int
) -> None:
    async with running_services(
        tmp_path, memory=Memory(pack), recall_deadline_ms=deadline_ms
    ) as services:
        result = await ask(services, "hello")
        lines = await journal_of(services, result)
        assert_nothing_is_left(services)
    assert (result["outcome"], result["memory"]["degraded"]) == ("answered", [code])
    assert (lines[1]["kind"], lines[1]["degraded"]) == ("context", [code])


async def test_a_conversation_without_memory_does_not_ask_it(tmp_path: Path) -> None:
    memory = Memory(REMEMBERED)
    async with running_services(tmp_path, memory=memory) as services:
        conversation_id = await services.chat.new_conversation(ME)
        await services.chat.change(ME, conversation_id, ConversationChange(memory_enabled=False))
        result = await ask(services, script({"echo": "context"}), conversation_id)
        lines = await journal_of(services, result)
    assert memory.asked == []
    assert result["memory"] == {"injected": [], "suppressed": [], "degraded": []}
    assert (lines[1]["kind"], lines[1]["text"]) == ("context", "")


@pytest.mark.parametrize(("kind", "in_the_log"), [("message", True), ("response", False)])
async def test_lines_that_the_journal_lost_are_told_in_the_result_and_if_it_can_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, in_the_log: bool
) -> None:
    async with running_services(tmp_path) as services:
        intake = services.journal._intake  # noqa: SLF001
        real = intake.offer
        monkeypatch.setattr(intake, "offer", lambda one: one.line.kind != kind and real(one))
        accepted = await send(services, "hello")
        result = await result_of(services, accepted)
        events = await events_of(services, accepted)
        lines = await journal_of(services, result)
    assert codes(result["notices"]) == ["journal_lost"]
    assert result["outcome"] == "answered"
    assert of_kind(events, "turn.completed") == [result]
    assert kinds(events)[-2:] == ["notice", "turn.completed"]
    assert (codes(lines[-1].get("notices", [])) == ["journal_lost"]) == in_the_log


@pytest.mark.parametrize("place", ["turn_result", "failure_notice", "broke_off"])
async def test_whatever_fails_in_making_the_result_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    real = getattr(__import__("gateway.turns.closing", fromlist=[place]), place)
    failed: list[bool] = []

    def fail_once(*args: Any, **kwargs: Any) -> Any:
        if not failed:
            failed.append(True)
            raise RuntimeError("broken")
        return real(*args, **kwargs)

    monkeypatch.setattr(f"gateway.turns.closing.{place}", fail_once)
    async with running_services(tmp_path) as services:
        accepted = await send(services, "hello")
        result = await result_of(services, accepted)
        events = await events_of(services, accepted)
        after = await ask(services, "hello", accepted.conversation_id)
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "engine_crash")
    assert kinds(events).count("turn.completed") == 1
    assert after["outcome"] == "answered"


@pytest.mark.parametrize(
    "place",
    [
        "gateway.turns.recalling.Recalling.tell",
        "gateway.turns.loan.Loan.take",
        "gateway.turns.narrator.Narrator.tell",
        "gateway.turns.work.TurnWork._send_on",
        "gateway.conversations.sqlite.turns.SqliteTurnStore.start",
    ],
)
async def test_whatever_fails_in_the_run_the_turn_ends_and_the_lane_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async with running_services(tmp_path) as services:
        with monkeypatch.context() as patched:

            def fail(*_: object, **__: object) -> None:
                patched.undo()
                raise RuntimeError("broken")

            patched.setattr(place, fail)
            accepted = await send(services, "hello")
            result = await result_of(services, accepted)
        after = await ask(services, "hello", accepted.conversation_id)
        events = await events_of(services, accepted)
        lines = [one["kind"] for one in await journal_of(services, result)]
        assert_nothing_is_left(services)
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "engine_crash")
    assert after["outcome"] == "answered"
    assert kinds(events).count("turn.completed") == 1
    assert (lines[0], lines.count("context"), lines[-1]) == ("request", 1, "response")


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
        result = await ask(services, "hello")
    assert (result["outcome"], result["stop_reason"]) == ("answered", reason)
    assert codes(result["notices"]) == [notice]
