"""The callbacks of the agent process, called as it calls them."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import anyio
import pytest
from claude_agent_sdk import (
    HookContext,
    HookInput,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from gateway.engine.hooks import RunHooks
from policies.calls import ToolCall
from policies.verdict import Deny
from tests.support.engine_talk import Gate, LateContext, prompt, unheard_calls

NO = Deny(rule="no", reason="Never.", hint="Do otherwise.")
CONTEXT = cast("HookContext", {"signal": None})
INPUT = {"command": "ls"}


async def judged(hooks: RunHooks, tool_use_id: str = "t") -> dict[str, Any]:
    told = {"tool_name": "Bash", "tool_input": INPUT, "cwd": "/ws/deep", "agent_id": "sub"}
    (matcher,) = hooks.matchers()["PreToolUse"]
    answer = await matcher.hooks[0](cast("HookInput", told), tool_use_id, CONTEXT)
    return cast("dict[str, Any]", answer)


async def decided(
    hooks: RunHooks, tool_use_id: str = "t"
) -> PermissionResultAllow | PermissionResultDeny:
    context = ToolPermissionContext(tool_use_id=tool_use_id, agent_id="sub")
    return await hooks.can_use_tool("Bash", INPUT, context)


def begun(gate: Gate, context: str = "") -> RunHooks:
    hooks = RunHooks()
    hooks.begin(prompt("hello", gate, context), unheard_calls())
    return hooks


async def test_a_call_is_shown_with_the_directory_it_runs_in() -> None:
    gate = Gate()
    hooks = begun(gate)
    assert await judged(hooks) == {}
    assert isinstance(await decided(hooks), PermissionResultAllow)
    call = ToolCall(
        name="Bash", input=INPUT, cwd="/ws/deep", tool_use_id="t", agent_id="sub", index=1
    )
    assert gate.asked == [("judge", call), ("decide", call)]


async def test_a_call_that_was_not_judged_in_the_run_is_denied() -> None:
    class Slow(Gate):
        async def decide(self, call: ToolCall) -> Any:
            hooks.end()
            hooks.begin(prompt("next"), unheard_calls())
            return await super().decide(call)

    hooks = begun(gate := Gate())
    assert isinstance(await decided(hooks, "unseen"), PermissionResultDeny)
    await judged(hooks)
    hooks.end()
    assert (await judged(hooks))["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert isinstance(await decided(hooks), PermissionResultDeny), "no run"
    assert gate.kinds == ["judge"]
    hooks = begun(Gate())
    await judged(hooks)
    hooks.begin(prompt("next", Gate()), unheard_calls())
    assert isinstance(await decided(hooks), PermissionResultDeny), "of the run before"
    hooks = begun(Slow())
    await judged(hooks)
    assert isinstance(await decided(hooks), PermissionResultDeny), "a yes that comes after its run"


async def test_more_calls_than_can_be_remembered_are_denied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.engine.hooks._MAX_CALLS", 4)
    hooks = begun(Gate())
    for number in range(4):
        assert await judged(hooks, f"t{number}") == {}
    assert await judged(hooks, "one more") != {}
    assert isinstance(await decided(hooks, "one more"), PermissionResultDeny)


async def test_context_that_comes_when_the_run_is_over_is_not_given() -> None:
    hooks = RunHooks()
    late = LateContext()
    hooks.begin(replace(prompt("hello", Gate()), context=late), unheard_calls())
    (matcher,) = hooks.matchers()["UserPromptSubmit"]
    answers: list[object] = []

    async def ask() -> None:
        answers.append(await matcher.hooks[0](cast("HookInput", {}), None, CONTEXT))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await late.asked.wait()
            hooks.end()
            hooks.begin(prompt("another", Gate()), unheard_calls())
            late.give("The tea is green.")
    assert answers == [{}]


async def test_what_a_decision_shields_is_finished_when_the_sdk_cancels_its_callback() -> None:
    class Withdrawing(Gate):
        def __init__(self) -> None:
            super().__init__()
            self.withdraws, self.stored, self.withdrawn = (anyio.Event() for _ in range(3))

        async def decide(self, call: ToolCall) -> Any:
            with anyio.CancelScope(shield=True):
                self.withdraws.set()
                await self.stored.wait()
                self.withdrawn.set()
            await anyio.sleep_forever()

    hooks = begun(gate := Withdrawing())
    await judged(hooks)
    with anyio.fail_after(5):
        callback = asyncio.get_running_loop().create_task(decided(hooks))  # as the SDK does
        await gate.withdraws.wait()
        callback.cancel()
        with pytest.raises(asyncio.CancelledError):
            await callback
        gate.stored.set()
        await gate.withdrawn.wait()


async def test_a_hook_that_breaks_denies_in_our_words() -> None:
    hooks = begun(Gate())
    (matcher,) = hooks.matchers()["PreToolUse"]
    told = await matcher.hooks[0](cast("HookInput", {"tool_name": "Bash"}), "t", CONTEXT)
    output = cast("dict[str, Any]", told)["hookSpecificOutput"]
    assert output["permissionDecision"] == "deny"
    assert output["permissionDecisionReason"].startswith("The policy could not judge")
