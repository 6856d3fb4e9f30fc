"""The client's own rules, on a stand-in for the SDK: who calls it, what is taken, what is bounded."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKError,
    CLIConnectionError,
    Message,
    ProcessError,
    StreamEvent,
    SystemMessage,
)

from gateway.engine import client as client_module
from gateway.engine import processes
from gateway.engine.client import SdkClient
from gateway.engine.events import EngineEvent, Observed, RunFinished, TextDone
from gateway.engine.hooks import RunHooks
from gateway.engine.protocol import ClientDead, EngineUnavailable, Prompt, SessionGone
from gateway.engine.runs import SdkRun
from gateway.engine.warm_up import WarmUpFailed, warm_up
from tests.support.engine_fakes import FakeSdk, result, says, streams
from tests.support.engine_talk import Told, prompt, read, until

SOON_S = 20


@pytest.fixture(autouse=True)
def _no_real_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeSdk.made = []
    monkeypatch.setattr(client_module, "ClaudeSDKClient", FakeSdk)


class Bench:
    """A client on a stand-in."""

    def __init__(self) -> None:
        self.unsolicited: list[Message] = []
        self.hooks = RunHooks()
        self.client = SdkClient("c", "nobody:c", self.hooks)
        self.client.session.on_unsolicited = self.unsolicited.append

    @property
    def sdk(self) -> FakeSdk:
        (made,) = FakeSdk.made
        return made

    async def begin(self) -> SdkRun:
        return await self.client.start_run(prompt("hello"))

    async def end(self, run: SdkRun, **more: Any) -> Told:
        """End a run as the agent."""
        self.sdk.give(result(uuids=[run.uuid], **more))
        return await read(run)

    async def begin_and_interrupt(self) -> tuple[SdkRun, anyio.Event]:
        """Begin a run whose interrupt does not settle before the event."""
        hold = self.sdk.hold_interrupt = anyio.Event()
        run = await self.begin()
        await run.interrupt()
        await wait_for(self, "interrupt")
        return run, hold


@asynccontextmanager
async def opened() -> AsyncIterator[Bench]:
    bench = Bench()
    with anyio.fail_after(SOON_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.client.serve, ClaudeAgentOptions())
            await bench.client.wait_connected()
            yield bench
            await bench.client.close()


async def wait_for(bench: Bench, name: str) -> None:
    await until(lambda: name in [one for one, _ in bench.sdk.calls])


async def test_one_task_connects_sends_interrupts_and_disconnects() -> None:
    """SDK #378, #454, #776: scopes that cross tasks burn a processor for ever."""
    async with opened() as bench:
        run = await bench.begin()
        await run.interrupt()
        await wait_for(bench, "interrupt")
        await bench.end(run)
    owners = {task for name, task in bench.sdk.calls if name != "receive"}
    names = [name for name, _ in bench.sdk.calls if name != "receive"]
    assert names == ["connect", "query", "interrupt", "disconnect"]
    assert len(owners) == 1
    assert anyio.get_current_task().id not in owners


async def test_another_turns_result_does_not_end_the_run() -> None:
    """SDK #1190: one query is not one result."""
    async with opened() as bench:
        bench.sdk.give(says("before"), result(uuids=["other"]))
        await until(lambda: len(bench.unsolicited) == 2)
        run = await bench.begin()
        bench.sdk.give(
            says("background", uuids=["other"]),
            result(uuids=["other"], result="background"),
            streams("mine", uuids=[run.uuid]),
            result(uuids=[run.uuid], result="mine"),
        )
        told = await read(run)
        assert told.finish.result == told.streamed == "mine"
        assert told.text == ""
        assert [event.solicited for event in told.all(Observed)] == [False, False, True]
        assert len(bench.unsolicited) == 4


async def test_what_comes_after_the_result_is_not_the_next_runs() -> None:
    async with opened() as bench:
        run = await bench.begin()
        late = SystemMessage(subtype="late", data={})
        unreadable = ClaudeSDKError("unknown")
        bench.sdk.give(streams("a"), unreadable, streams("b"), result(uuids=[run.uuid]), late)
        assert (await read(run)).streamed == "ab", "what the SDK cannot read is passed over"
        await until(lambda: bool(bench.unsolicited))
        second = await bench.begin()
        assert len((await bench.end(second)).all(Observed)) == 1


async def test_an_interrupt_that_comes_late_does_not_hit_the_next_run() -> None:
    async with opened() as bench:
        first, hold = await bench.begin_and_interrupt()
        await first.interrupt()  # waits behind the one that is under way
        await bench.end(first)
        hold.set()
        second = await bench.begin()
        await first.interrupt()
        assert (await bench.end(second, result="whole")).finish.result == "whole"
        assert bench.sdk.interrupts == 1


async def test_a_run_costs_what_it_added_to_the_total() -> None:
    async with opened() as bench:
        bench.client.session.count_cost_from(1.0)
        costs = []
        for total in (1.25, 1.75, None, 0.5):  # a total that falls was begun anew
            run = await bench.begin()
            costs.append((await bench.end(run, total_cost_usd=total)).finish.cost_usd)
        assert costs == [0.25, 0.5, 0.0, 0.5]


@pytest.mark.parametrize(
    ("failure", "exit_code"),
    [(ProcessError("gone", exit_code=-9), -9), (RuntimeError("broken"), None), (None, None)],
)
async def test_an_agent_that_ends_loses_its_run_and_is_noticed(
    failure: Exception | None, exit_code: int | None
) -> None:
    async with opened() as bench:
        run = await bench.begin()
        bench.client.on_stderr("last words")
        bench.sdk.give(streams("a"), failure)
        told = await read(run)
        assert (told.lost.exit_code, told.lost.stderr) == (exit_code, ("last words",))
        assert not bench.client.is_alive()
        with pytest.raises(ClientDead):
            await bench.begin()


async def test_a_prompt_that_cannot_be_written_says_so() -> None:
    async with opened() as bench:
        why = "Cannot write to terminated process (exit code: -9)"
        bench.sdk.refuse_query = CLIConnectionError(why)
        with pytest.raises(ClientDead) as told:
            await bench.begin()
        assert "exit code: -9" in told.value.detail
        assert not bench.client.is_alive()


async def test_a_close_is_not_held_up_by_a_prompt_or_an_interrupt_that_does_not_settle() -> None:
    """TS #425."""
    async with opened() as bench:
        bench.sdk.hold_query = anyio.Event()

        async def begin() -> None:
            with pytest.raises(ClientDead):
                await bench.begin()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(begin)
            await wait_for(bench, "query")
            await bench.client.close()
    FakeSdk.made = []
    async with opened() as bench:
        run, _ = await bench.begin_and_interrupt()
        await bench.client.close()
        assert (await read(run)).lost.exit_code is None


async def test_a_prompt_given_up_on_its_way_makes_the_client_useless() -> None:
    """What the agent answers to it would be taken for the next prompt's."""
    async with opened() as bench:
        bench.sdk.hold_query = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.begin)
            await wait_for(bench, "query")
            tasks.cancel_scope.cancel()
        assert not bench.client.is_alive()


async def test_a_prompt_given_up_before_it_was_sent_is_never_sent() -> None:
    async with opened() as bench:
        first, hold = await bench.begin_and_interrupt()
        await bench.end(first)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bench.begin)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert bench.client.is_alive()
        hold.set()
        run = await bench.begin()
        assert [item["uuid"] for item in bench.sdk.sent] == [first.uuid, run.uuid]
        assert first.uuid != run.uuid
        assert bench.sdk.sent[0]["message"] == {"role": "user", "content": "hello"}
        await bench.end(run)


async def test_a_client_that_cannot_be_connected_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    for failure, kind in (
        (CLIConnectionError("no such program"), EngineUnavailable),
        (Exception("Control request timeout: initialize"), EngineUnavailable),
        (Exception("No conversation found with session ID: x"), SessionGone),
        (Exception("No message found with message.uuid of: x"), SessionGone),
    ):
        FakeSdk.made = []
        bench = Bench()

        def refusing(options: ClaudeAgentOptions, why: Exception = failure, **more: Any) -> FakeSdk:
            sdk = FakeSdk(options, **more)
            sdk.refuse_connect = why
            return sdk

        monkeypatch.setattr(client_module, "ClaudeSDKClient", refusing)
        with anyio.fail_after(SOON_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bench.client.serve, ClaudeAgentOptions())
                with pytest.raises(kind) as told:
                    await bench.client.wait_connected()
                assert str(failure) in told.value.detail
                await bench.client.close()
        assert not bench.client.is_alive()


async def test_a_close_that_the_agent_ignores_is_enforced(monkeypatch: pytest.MonkeyPatch) -> None:
    """SDK #729, #916: its own bound is about 20 s, and ends the child alone."""
    killed: list[str] = []

    def kill(mark: str, known: object = ()) -> int:
        del known
        killed.append(mark)
        return 0

    monkeypatch.setattr(client_module, "CLOSE_GRACE_S", 0.01)
    monkeypatch.setattr(processes, "kill_client_blocking", kill)
    async with opened() as bench:
        bench.sdk.stays_until = lambda: bool(killed)
        await bench.client.close()
        assert not bench.sdk.overstayed
    assert set(killed) == {"nobody:c"}


async def test_whatever_the_agent_sends_is_heard_and_one_that_compacts_is_not_silent() -> None:
    """A tool's input that is being written has no event of ours, and is no silence."""
    piece = {"type": "content_block_delta", "delta": {"type": "input_json_delta"}}
    async with opened() as bench:
        run = await bench.begin()
        run._silent_since = 0  # noqa: SLF001  long before
        bench.sdk.give(StreamEvent(uuid="u", session_id="s", event=piece))
        await until(lambda: run.silent_since > 0)
        assert run.silent_since <= anyio.current_time()
        bench.sdk.give(SystemMessage(subtype="status", data={"status": "compacting"}))
        await until(lambda: run.silent_since == math.inf)
        bench.sdk.give(SystemMessage(subtype="status", data={"status": None}))
        await until(lambda: run.silent_since < math.inf)


async def test_a_warm_up_that_somebody_else_answered_has_failed() -> None:
    async def events() -> AsyncIterator[EngineEvent]:  # noqa: RUF029  a run's are awaited
        yield TextDone(text="Hello from the model.")
        yield RunFinished(subtype="success", is_error=False, result=None)

    async def start_run(_prompt: Prompt) -> SimpleNamespace:
        await anyio.lowlevel.checkpoint()
        return SimpleNamespace(events=events)

    client: Any = SimpleNamespace(client_id="one", start_run=start_run)
    relay: Any = SimpleNamespace(set_warm_up=lambda *_: None)
    with pytest.raises(WarmUpFailed):
        await warm_up(client, relay)
