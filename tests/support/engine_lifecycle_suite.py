"""The contracts of an engine on sessions, interrupts and ends; part of `engine_suite`."""

import abc
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from gateway.engine.events import ClientLost, EngineEvent, EntryRecorded, TextDelta
from gateway.engine.protocol import (
    AgentClient,
    ClientDead,
    ClientSpec,
    Engine,
    SessionGone,
    SessionOrigin,
)
from tests.support.engine_talk import LONG_S, Gate, Told, ask, bash, prompt, read, script

SPEC = ClientSpec(model="candor-demo")
NOWHERE = "11111111-1111-4111-8111-111111111111"
SLOW = script({"text": "word " * 400, "delta_delay_ms": 20})


class EngineLifecycleSuite(abc.ABC):
    """See the module."""

    @abc.abstractmethod
    def open(self, root: Path) -> AbstractAsyncContextManager[Engine]: ...

    async def connect(
        self, engine: Engine, *, resume: str | None = None, fork_at: str | None = None
    ) -> AgentClient:
        with anyio.fail_after(LONG_S):
            return await engine.connect(SPEC, SessionOrigin(resume=resume, fork_at=fork_at))

    async def test_a_session_is_resumed_until_it_is_forgotten(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            await ask(client, "My word is heron.\n" + script({"text": "yes"}))
            await client.close()
            session = client.session_id
            assert session is not None
            again = await self.connect(engine, resume=session)
            told = await ask(again, script({"echo": "messages"}))
            assert "heron" in told.text
            assert again.session_id == session
            await again.close()
            with pytest.raises(SessionGone):
                await self.connect(engine, resume=session, fork_at=NOWHERE)
            for session_id in (session, session, NOWHERE, "../..", ""):
                await engine.forget_session(session_id)
            with pytest.raises(SessionGone):
                await self.connect(engine, resume=session)

    async def test_a_fork_branches_off_and_leaves_the_old_one_alone(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            first = await ask(client, "My word is heron.\n" + script({"text": "yes"}))
            await ask(client, "My word is otter.\n" + script({"text": "yes"}))
            await client.close()
            at = first.all(EntryRecorded)[-1].entry_id
            branch = await self.connect(engine, resume=client.session_id, fork_at=at)
            told = await ask(branch, "My word is adder.\n" + script({"echo": "messages"}))
            assert "heron" in told.text
            assert "otter" not in told.text
            assert branch.session_id != client.session_id
            await branch.close()
            old = await self.connect(engine, resume=client.session_id)
            told = await ask(old, script({"echo": "messages"}))
            assert "otter" in told.text
            assert "adder" not in told.text

    async def test_an_interrupt_ends_a_streaming_run_and_the_client_goes_on(
        self, tmp_path: Path
    ) -> None:
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            run = await client.start_run(prompt(SLOW))
            events: list[EngineEvent] = []
            with anyio.fail_after(LONG_S):
                async for event in run.events():
                    if isinstance(event, TextDelta) and not any(
                        isinstance(item, TextDelta) for item in events
                    ):
                        await run.interrupt()
                    events.append(event)
            told = Told(events)
            assert told.finish.subtype == "error_during_execution"
            assert (told.finish.is_error, told.finish.result) == (True, None)
            assert told.finish.terminal_reason == "aborted_streaming"
            assert client.is_alive()
            assert (await ask(client, script({"text": "still here"}))).text == "still here"

    async def test_interrupts_may_come_before_everything_twice_and_too_late(
        self, tmp_path: Path
    ) -> None:
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            run = await client.start_run(prompt(SLOW))
            await run.interrupt()
            await run.interrupt()
            told = await read(run)
            assert told.finish.subtype == "error_during_execution"
            await run.interrupt()
            second = await client.start_run(prompt(script({"text": "whole", "delay_ms": 100})))
            await run.interrupt()
            assert (await read(second)).text == "whole"
            await client.close()
            await second.interrupt()

    async def test_an_interrupt_reaches_a_run_that_waits_for_a_person(self, tmp_path: Path) -> None:
        class Waiting(Gate):
            async def decide(self, call: object) -> object:
                del call
                self.decided.set()
                await anyio.sleep_forever()
                return None

        gate = Waiting()
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            run = await client.start_run(prompt(script(bash("rm a.txt")), gate))
            with anyio.fail_after(LONG_S):
                await gate.decided.wait()
            await run.interrupt()
            assert (await read(run)).finish.subtype == "error_during_execution"
            assert (tmp_path / "ws" / "a.txt").exists()

    async def test_a_killed_client_loses_its_run_and_is_dead(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            run = await client.start_run(prompt(SLOW))
            with anyio.fail_after(LONG_S):
                await client.kill()
                await client.kill()
            told = await read(run)
            assert isinstance(told.events[-1], ClientLost)
            assert not client.is_alive()
            with pytest.raises(ClientDead):
                await client.start_run(prompt("hello"))
            await run.interrupt()

    async def test_closing_ends_the_run_and_may_be_repeated(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            run = await client.start_run(prompt(SLOW))
            with anyio.fail_after(LONG_S):
                with anyio.CancelScope() as scope:  # which does not cut it short
                    scope.cancel()
                    await client.close()
                assert not client.is_alive()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(client.close)
                    tasks.start_soon(client.close)
                await client.kill()
            assert isinstance((await read(run)).events[-1], ClientLost)
            assert not client.is_alive()
            with pytest.raises(ClientDead):
                await client.start_run(prompt("hello"))

    async def test_a_client_whose_run_was_given_up_takes_no_other(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            run = await client.start_run(prompt(SLOW))
            with pytest.raises(ClientDead):
                await client.start_run(prompt("hello"))
            assert not client.is_alive()
            assert isinstance((await read(run)).events[-1], ClientLost)

    async def test_a_cancelled_connect_leaves_room_for_another(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as engine:
            with anyio.move_on_after(0):
                await engine.connect(SPEC, SessionOrigin())
            client = await self.connect(engine)
            assert (await ask(client, script({"text": "here"}))).text == "here"
