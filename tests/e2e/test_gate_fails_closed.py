"""Whatever goes wrong in the gate, nothing runs: with the real agent process below the real turns.

Only the policy is another one, by the test's construction.
"""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.agents import open_agents, plan_agents
from gateway.assemble import open_services
from gateway.engine import options
from gateway.engine.events import ToolReturned
from gateway.engine.hooks import RunHooks
from gateway.private_files import make_directories_blocking
from gateway.turns import gate as turn_gate
from policies.calls import ToolCall
from policies.tools import ToolGate
from policies.verdict import Allow, Deny, Verdict
from tests.support.engine_talk import LONG_S, Gate, ask, bash
from tests.support.engine_talk import script as engine_script
from tests.support.engine_world import real_world
from tests.support.services import RunningServices, script, settings_below

pytestmark = pytest.mark.e2e

COPY = "cp a.txt copied.txt"


class Switchable:
    """A policy that judges as the test wants it, call by call."""

    def __init__(self) -> None:
        self.answer: Callable[[ToolCall], Any] = lambda _: Allow("test", "Tests may.")
        self.asked = 0

    def judge(self, call: ToolCall) -> Verdict:
        self.asked += 1
        verdict: Verdict = self.answer(call)
        return verdict


@asynccontextmanager
async def real_services(
    root: Path, monkeypatch: pytest.MonkeyPatch, policy: Any
) -> AsyncIterator[RunningServices]:
    """Open everything below HTTP with real agents on the demo model, and a policy of the test's."""
    settings = settings_below(root, demo="on", demo_cadence_ms=0)

    def make() -> None:
        make_directories_blocking(settings)
        settings.workspace.mkdir()
        (settings.workspace / "a.txt").write_text("alpha")

    await anyio.to_thread.run_sync(make)
    monkeypatch.setattr("gateway.workspace_parts.ToolGate", lambda *_, **__: policy)
    plan = await anyio.to_thread.run_sync(plan_agents, settings, {}, root)
    async with (
        open_agents(settings, {}, plan) as (make_engine, access),
        open_services(settings, make_engine, access) as services,
    ):
        yield RunningServices.of(services)


def raising(exc: BaseException) -> Callable[[ToolCall], Any]:
    def answer(_: ToolCall) -> Any:
        raise exc

    return answer


NONSENSE: dict[str, Callable[[ToolCall], Any]] = {
    "an exception": raising(RuntimeError("the policy is broken")),
    "no memory": raising(MemoryError()),
    "nothing": lambda _: None,
    "a dictionary": lambda _: {"permissionDecision": "allow"},
    "an input that is none": lambda _: Allow("x", "y", updated_input="ls"),  # type: ignore[arg-type]
}


async def test_nothing_runs_when_the_policy_raises_or_returns_nonsense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Switchable()
    async with real_services(tmp_path, monkeypatch, policy) as services:
        copied = services.settings.workspace / "copied.txt"
        conversation_id = None
        for name, answer in NONSENSE.items():
            policy.answer = answer
            before = policy.asked
            result = await services.ask(script(bash(COPY), {"text": "Done."}), conversation_id)
            conversation_id = result["conversation_id"]
            assert policy.asked > before, name
            assert result["outcome"] == "answered_with_failures", name
            assert result["tools"][0]["status"] in {"denied", "failed"}, name
            assert not copied.exists(), name
        policy.answer = lambda _: Allow("test", "Tests may.")
        result = await services.ask(script(bash(COPY), {"text": "Done."}), conversation_id)
        assert (result["outcome"], result["tools"][0]["status"]) == ("answered", "ok")
        assert copied.exists()


async def test_either_of_the_two_callbacks_alone_keeps_a_call_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate says yes, but one of the ways to it is broken: that is no yes."""

    async def fail(*_: Any) -> Any:  # noqa: RUF029  in the place of one that awaits
        raise RuntimeError("a fault of our own")

    async with real_world(tmp_path) as world:
        (world.setup.workspace / "a.txt").write_text("alpha")
        client = await world.connect()
        for broken in ("_judge", "_decide"):
            with monkeypatch.context() as patch:
                patch.setattr(RunHooks, broken, fail)
                told = await ask(client, engine_script(bash(COPY), {"text": "done"}))
            assert told.only(ToolReturned).is_error, broken
            assert not (world.setup.workspace / "copied.txt").exists(), broken


async def test_nothing_runs_while_the_policy_hangs_and_the_turn_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, asked, let_go = Switchable(), threading.Event(), threading.Event()

    def hang(_: ToolCall) -> Any:
        asked.set()
        let_go.wait(LONG_S)
        return Allow("test", "Tests may.")

    policy.answer = hang
    try:
        async with real_services(tmp_path, monkeypatch, policy) as services:
            copied = services.settings.workspace / "copied.txt"
            accepted = await services.send(script(bash(COPY), {"text": "Done."}))
            await anyio.to_thread.run_sync(asked.wait, LONG_S)
            with anyio.fail_after(LONG_S):
                result = await services.stop(accepted)
            assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
            assert not copied.exists()

            monkeypatch.setattr(turn_gate, "_JUDGE_S", 0.2)
            result = await services.ask(
                script(bash(COPY), {"text": "Done."}), accepted.conversation_id
            )
            assert result["outcome"] == "answered_with_failures"
            assert result["tools"][0]["status"] == "denied"
            assert "did not answer in time" in result["tools"][0]["error"]
            assert not copied.exists()
    finally:
        let_go.set()


async def test_what_was_approved_is_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that appears after the verdict is not in the command: the gate itself expanded the glob."""
    settings = settings_below(tmp_path)

    class Late:
        """The real gate, and a file that comes right after its word."""

        def judge(self, call: ToolCall) -> Verdict:
            verdict = ToolGate(settings.workspace).judge(call)
            (settings.workspace / "late.txt").write_text("late")
            return verdict

    async with real_services(tmp_path, monkeypatch, Late()) as services:
        for name in ("b c.txt", "$(touch out).txt"):
            (services.settings.workspace / name).write_text("x")
        result = await services.ask(script(bash("ls *.txt"), {"text": "Done."}))
        assert result["outcome"] == "answered", result
        (line,) = [
            item for item in await services.journal_of(result) if item["kind"] == "permission"
        ]
        (shown,) = [item for item in await services.journal_of(result) if item["kind"] == "tool"]
        assert line["input"]["command"] == "ls *.txt"
        runs = line["runs"]["command"]
        assert "*" not in runs
        for name in ("a.txt", "'b c.txt'", "'$(touch out).txt'"):
            assert name in runs
        assert "late" not in runs
        assert "late.txt" not in str(shown)
        assert "b c.txt" in str(shown)
        assert not (services.settings.workspace / "out").exists()
        assert (services.settings.workspace / "late.txt").exists()


async def test_a_subagents_call_passes_the_same_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No agents are offered; where one is all the same, it cannot do more than its maker."""

    def not_for_agents(call: ToolCall) -> Verdict:
        if call.agent_id is not None:
            return Deny("agents", "Not for agents.")
        return Allow("test", "Tests may.")

    monkeypatch.setattr(options, "_NOT_FOR_AGENTS", ())
    gate = Gate(judge=not_for_agents, decide=not_for_agents)
    task = {
        "subagent_type": "general-purpose",
        "description": "copy",
        "prompt": engine_script(bash(COPY), {"text": "sub done"}),
        "run_in_background": False,
    }
    async with real_world(tmp_path, tools=("Bash", "Agent")) as world:
        (world.setup.workspace / "a.txt").write_text("alpha")
        client = await world.connect()
        told = await ask(
            client, engine_script({"tool": "Agent", "input": task}, {"text": "done"}), gate
        )
        assert told.text.endswith("done")
        assert told.all(ToolReturned)
        by_agents = [(kind, call) for kind, call in gate.asked if call.agent_id is not None]
        assert [(kind, call.name) for kind, call in by_agents] == [("judge", "Bash")]
        assert by_agents[0][1].input["command"] == COPY
        assert not (world.setup.workspace / "copied.txt").exists()
