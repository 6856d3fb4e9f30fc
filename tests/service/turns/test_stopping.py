"""A turn is stopped: by its user, by a newer message, by the limit of time, at any moment of its life."""

from pathlib import Path

import anyio
import pytest

from gateway.engine.events import EngineEvent, RunFinished
from gateway.engine.protocol import ClientDead, Prompt
from gateway.turns.run_driver import RunDriver
from tests.support.builders import codes
from tests.support.scripted_engine import ScriptedClient, ScriptedRun
from tests.support.services import HANG, RunningServices, running_services, script

ECHO = script({"echo": "messages"})


async def state(services: RunningServices, conversation_id: str) -> str:
    return (await services.view(conversation_id)).state


async def test_a_message_can_interrupt_the_running_turn(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        running = await services.begin()
        after = await services.ask("hello", running.conversation_id, when_busy="interrupt")
        result = await services.result_of(running)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert result["reply"].startswith("I begin\n\nYou stopped this turn")
    assert after["outcome"] == "answered"


async def test_a_turn_that_has_not_begun_yet_can_be_interrupted_as_well(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        accepted = await services.send(HANG)
        assert await services.interrupt(accepted.conversation_id) == accepted.turn_id
        assert await state(services, accepted.conversation_id) == "stopping"
        result = await services.result_of(accepted)
        again = await services.send(HANG)
        after = await services.ask("hello", again.conversation_id, when_busy="interrupt")
        assert (await services.result_of(again))["outcome"] == "interrupted"
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert after["outcome"] == "answered"


async def test_a_turn_that_waits_for_a_free_client_can_be_interrupted(tmp_path: Path) -> None:
    async with running_services(tmp_path, max_live_clients=1) as services:
        first = await services.begin()
        second = await services.send("hello")
        await services.events_of(second, until="turn.started")
        await anyio.wait_all_tasks_blocked()
        result = await services.stop(second)
        await services.stop(first)
        assert (await services.ask("hello", second.conversation_id))["outcome"] == "answered"
        services.assert_nothing_is_left()
    assert result["outcome"] == "interrupted"


def make_deaf(monkeypatch: pytest.MonkeyPatch) -> anyio.Event:
    """Make the agent ignore interrupts; the returned event is set by one."""
    came = anyio.Event()

    async def ignore(_run: ScriptedRun) -> None:
        came.set()
        await anyio.lowlevel.checkpoint()

    monkeypatch.setattr(ScriptedRun, "interrupt", ignore)
    return came


async def test_a_turn_is_stopping_until_the_agent_has_really_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came = make_deaf(monkeypatch)
    async with running_services(tmp_path, interrupt_grace_s=60) as services:
        accepted = await services.begin()
        assert await state(services, accepted.conversation_id) == "running"
        await services.interrupt(accepted.conversation_id)
        with anyio.fail_after(30):
            await came.wait()
        await anyio.wait_all_tasks_blocked()
        assert await state(services, accepted.conversation_id) == "stopping"
        assert len(services.lanes.running_in) == 1
        await services.scripted.clients[0].kill()
        result = await services.result_of(accepted)
        assert await state(services, accepted.conversation_id) == "idle"
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")


async def test_an_agent_that_ignores_the_interrupt_is_killed_after_the_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_deaf(monkeypatch)
    async with running_services(tmp_path, interrupt_grace_s=0.05) as services:
        accepted = await services.begin()
        result = await services.stop(accepted)
        assert services.scripted.clients == []
        after = await services.ask(ECHO, accepted.conversation_id)
        services.assert_nothing_is_left()
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert codes(result["notices"]) == ["kill"]
    assert "I begin" in after["reply"], "the session was resumed"


async def test_a_start_that_hangs_is_ended_by_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(client: ScriptedClient, _prompt: Prompt) -> ScriptedRun:
        while client.is_alive():
            await anyio.lowlevel.checkpoint()
        raise ClientDead("The agent process has ended.")

    async with running_services(tmp_path, turn_timeout_s=0.1, interrupt_grace_s=0.1) as services:
        with monkeypatch.context() as patched:
            patched.setattr(ScriptedClient, "start_run", hang)
            result = await services.ask("hello")
        services.assert_nothing_is_left()
    async with running_services(tmp_path) as services:  # without a limit that a turn could exceed
        after = await services.ask("hello", result["conversation_id"])
    assert (result["outcome"], result["stop_reason"]) == ("stopped", "timeout")
    assert after["outcome"] == "answered"


async def test_a_stop_while_the_prompt_is_on_its_way_interrupts_the_run_that_comes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = ScriptedClient.start_run
    async with running_services(tmp_path, interrupt_grace_s=60) as services:
        conversation_id = (await services.ask("hello"))["conversation_id"]

        async def stop_and_send(client: ScriptedClient, prompt: Prompt) -> ScriptedRun:
            await services.interrupt(conversation_id)
            await anyio.wait_all_tasks_blocked()
            return await send(client, prompt)

        monkeypatch.setattr(ScriptedClient, "start_run", stop_and_send)
        result = await services.ask(HANG, conversation_id)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert codes(result["notices"]) == [], "it is not killed"


async def test_a_stop_that_comes_when_the_run_has_ended_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = RunDriver._take  # noqa: SLF001  between two events

    async def stop_late(driver: RunDriver, event: EngineEvent) -> None:
        await take(driver, event)
        if isinstance(event, RunFinished):
            driver._context.control.stop("user_interrupt")  # noqa: SLF001  as a person does
            await anyio.wait_all_tasks_blocked()

    monkeypatch.setattr(RunDriver, "_take", stop_late)
    async with running_services(tmp_path, interrupt_grace_s=0.1) as services:
        result = await services.ask("hello")
        assert len(services.scripted.clients) == 1, "it was neither interrupted nor killed"
    assert (result["outcome"], codes(result["notices"])) == ("answered", [])


async def test_a_stop_while_a_dead_client_is_replaced_leaves_no_client_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_kill = ScriptedClient.kill
    async with running_services(tmp_path) as services:
        conversation_id = (await services.ask("hello"))["conversation_id"]

        async def stop_and_kill(client: ScriptedClient) -> None:
            current = services.lanes.running(conversation_id)
            assert current is not None
            current.control.stop("user_interrupt")
            await anyio.lowlevel.checkpoint()
            await real_kill(client)

        async def die(_client: ScriptedClient, _prompt: Prompt) -> ScriptedRun:
            await anyio.lowlevel.checkpoint()
            raise ClientDead("The agent process has ended.")

        with monkeypatch.context() as patched:
            patched.setattr(ScriptedClient, "start_run", die)
            patched.setattr(ScriptedClient, "kill", stop_and_kill)
            result = await services.ask("hello", conversation_id)
        assert services.scripted.clients == []
        services.assert_nothing_is_left()
        after = await services.ask("hello", conversation_id)
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert after["outcome"] == "answered"


async def test_a_stop_during_the_summary_ends_the_turn(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        ls = {"tool": "Bash", "input": {"command": "ls"}}
        followup = {"on_followup": [{"text": "I did ", "delta_delay_ms": 10_000}]}
        accepted = await services.begin(script(ls, {"empty": True}, followup))
        result = await services.stop(accepted)
        services.assert_nothing_is_left()
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert codes(result["notices"]) == ["forced_summary"]
