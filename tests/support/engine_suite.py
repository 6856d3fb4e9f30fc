"""The contracts of an engine, one test each; whatever stands behind the seam must pass them.

A subclass gives `open`: an engine and its workspace, with `a.txt` ("alpha") and `b.txt` ("beta").
A model that fails is asked once more, not ten times.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from gateway.engine.events import (
    ClientLost,
    EntryRecorded,
    MessageBegun,
    ModelFailed,
    ModelRetrying,
    Observed,
    RunFinished,
    SessionReady,
    TextDelta,
    TextDone,
    ThinkingDelta,
    ToolCalled,
    ToolReturned,
)
from gateway.engine.own_tools import OwnAnswer, OwnServer, OwnTool
from gateway.engine.protocol import ClientSpec, SessionOrigin
from policies.verdict import Allow, Deny
from tests.support.engine_lifecycle_suite import EngineLifecycleSuite
from tests.support.engine_talk import (
    LONG_S,
    Gate,
    LateContext,
    Told,
    ask,
    bash,
    prompt,
    read,
    script,
)

_NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
GREETER = OwnServer("greeter", (OwnTool("greet", "Greets somebody.", _NAMED),))
GREET = "mcp__greeter__greet"
WITH_GREETER = ClientSpec(model="candor-demo", servers=(GREETER,))
NO = Deny(rule="test", reason="Tests may not.", hint="Do otherwise.")
STOP = Deny(rule="test", reason="Tests may not.", interrupt=True)


class EngineSuite(EngineLifecycleSuite):
    """See the module."""

    async def test_a_run_tells_its_events_in_order_and_ends_once(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as engine:
            assert await engine.ping() is None
            client = await self.connect(engine)
            assert not client.session_id
            told = await ask(client, script({"thinking": "hm", "text": "one two 三"}))
            kinds = [type(item) for item in told.plain]
            ordered = [SessionReady, MessageBegun, TextDelta, TextDone, RunFinished]
            assert [kinds.index(item) for item in ordered] == sorted(map(kinds.index, ordered))
            assert kinds.index(ThinkingDelta) < kinds.index(TextDelta)
            assert sum(kind in {RunFinished, ClientLost} for kind in kinds) == 1
            assert (told.finish.subtype, told.finish.is_error) == ("success", False)
            assert told.finish.result == "one two 三"
            sessions = {told.finish.session_id, told.only(SessionReady).session_id}
            assert sessions == {client.session_id}
            assert told.all(EntryRecorded)
            assert told.all(Observed)
            assert all(event.solicited for event in told.all(Observed))
            text = "Zwei Zeilen.\n\n第二行 with  spaces."
            told = await ask(client, script({"text": text}))
            assert told.streamed == told.only(TextDone).text == text

    async def test_each_call_is_judged_decided_and_run_as_it_was_changed(
        self, tmp_path: Path
    ) -> None:
        changed = Allow(rule="test", reason="", updated_input={"command": "cat b.txt"})
        gate = Gate(decide=changed)
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            told = await ask(client, script(bash("cat a.txt"), {"text": "read"}), gate)
            called, returned = told.only(ToolCalled), told.only(ToolReturned)
            assert (gate.kinds, gate.returns) == (["judge", "decide"], [1])
            for _, call in gate.asked:
                assert (call.name, call.input["command"]) == ("Bash", "cat a.txt")
                assert call.tool_use_id == called.tool_use_id == returned.tool_use_id
                assert Path(call.cwd) == tmp_path / "ws"
            assert called.input["command"] == "cat a.txt"
            assert (returned.is_error, returned.text.strip()) == (False, "beta")
            assert told.text == "read"
            gate = Gate()
            calls = [{"name": "Bash", "input": {"command": f"cat {name}.txt"}} for name in "ab"]
            told = await ask(client, script({"tools": calls}, {"text": "read"}), gate)
            texts = {event.tool_use_id: event.text.strip() for event in told.all(ToolReturned)}
            in_order = [event.tool_use_id for event in told.all(ToolCalled)]
            assert [texts[tool_use_id] for tool_use_id in in_order] == ["alpha", "beta"]
            assert sorted(gate.kinds) == ["decide", "decide", "judge", "judge"]
            assert sorted(gate.returns) == [1, 2]

    async def test_a_tool_of_our_own_is_gated_and_answered_by_the_run_it_is_called_in(
        self, tmp_path: Path
    ) -> None:
        asked: list[tuple[str, dict[str, Any]]] = []

        async def first(name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
            await anyio.lowlevel.checkpoint()
            asked.append((name, dict(arguments)))
            return OwnAnswer(f"First: 你好 {arguments['name']}")

        async def second(name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
            await anyio.lowlevel.checkpoint()
            return OwnAnswer("Second refuses.", is_error=True)

        async def broken(name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
            await anyio.lowlevel.checkpoint()
            raise RuntimeError("a secret of ours")

        greet = script({"tool": GREET, "input": {"name": "王", "more": 1}}, {"text": "greeted"})
        async with self.open(tmp_path) as engine:
            with anyio.fail_after(LONG_S):
                client = await engine.connect(WITH_GREETER, SessionOrigin())
            gate = Gate()
            told = await ask(client, greet, gate, call_own=first)
            assert (told.text, told.only(ToolReturned).is_error) == ("greeted", False)
            assert told.only(ToolReturned).text == "First: 你好 王"
            assert asked == [(GREET, {"name": "王", "more": 1})]
            assert gate.kinds == ["judge", "decide"]
            told = await ask(client, greet, call_own=second)
            assert told.only(ToolReturned).is_error
            assert "Second refuses." in told.only(ToolReturned).text
            told = await ask(client, greet, call_own=broken)
            assert (told.text, told.only(ToolReturned).is_error) == ("greeted", True)
            assert "The tool broke" in told.only(ToolReturned).text
            assert "secret" not in told.only(ToolReturned).text
            told = await ask(client, greet, Gate(decide=NO), call_own=first)
            assert told.only(ToolReturned).is_error
            told = await ask(client, greet)
            assert "No turn is running" in told.only(ToolReturned).text
            assert len(asked) == 1

    async def test_an_agent_without_a_tool_of_our_own_cannot_call_it(self, tmp_path: Path) -> None:
        async def never(name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
            await anyio.lowlevel.checkpoint()
            raise AssertionError

        greet = script({"tool": GREET, "input": {"name": "Ann"}}, {"text": "not greeted"})
        async with self.open(tmp_path) as engine:
            told = await ask(await self.connect(engine), greet, call_own=never)
            assert (told.text, told.only(ToolReturned).is_error) == ("not greeted", True)

    async def test_a_failing_or_denied_call_is_told_and_the_run_goes_on(
        self, tmp_path: Path
    ) -> None:
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            told = await ask(client, script(bash("cat none.txt"), {"text": "well"}))
            assert told.only(ToolReturned).is_error
            assert (told.text, told.finish.is_error) == ("well", False)
            for gate, asked in (
                (Gate(judge=NO), ["judge"]),
                (Gate(decide=NO), ["judge", "decide"]),
            ):
                told = await ask(client, script(bash("rm a.txt"), {"text": "not done"}), gate)
                assert told.only(ToolReturned).is_error
                assert NO.message in told.only(ToolReturned).text
                assert (told.text, told.finish.subtype) == ("not done", "success")
                assert gate.kinds == asked
            for gate in (
                Gate(judge=RuntimeError("broken")),
                Gate(decide=RuntimeError("broken")),
                Gate(judge=None),
                Gate(judge="allow"),
                Gate(decide=None),
                Gate(decide={"behavior": "allow"}),
            ):
                told = await ask(client, script(bash("rm a.txt"), {"text": "not done"}), gate)
                assert told.only(ToolReturned).is_error
                assert told.text == "not done"
            for gate in (Gate(judge=STOP, decide=STOP), Gate(decide=STOP), Gate(judge=STOP)):
                told = await ask(client, script(bash("rm a.txt"), {"text": "never"}), gate)
                assert told.only(ToolReturned).is_error
                assert told.finish.subtype == "error_during_execution"
                assert (told.finish.is_error, told.finish.result) == (True, None)
                assert told.finish.terminal_reason == "aborted_tools"
                assert told.text == ""
            assert (tmp_path / "ws" / "a.txt").exists()

    async def test_prompt_and_context_reach_the_model_as_they_were_side_by_side(
        self, tmp_path: Path
    ) -> None:
        begin = "/help me@example.org @a.txt\n@/etc/hostname and `@cached`, 看@b.txt\n"
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            told = await ask(client, script({"echo": "context"}), context="The tea is green.")
            assert "The tea is green." in told.text
            told = await ask(client, begin + script({"echo": "prompt"}), context="The tea is red.")
            assert told.text.startswith(begin)
            assert "The tea is red." not in told.text
            told = await ask(client, begin + script({"echo": "messages"}))
            assert "alpha" not in told.text
            assert "beta" not in told.text
            told = await ask(client, script({"empty": True}, {"empty": True}))
            assert (told.finish.subtype, told.finish.is_error) == ("success", False)
            assert not told.finish.result
            assert told.text == ""
            told = await ask(client, script({"refusal": True}))
            assert told.finish.stop_reason == "refusal"
            assert told.text == ""

    async def test_the_model_waits_for_late_context_and_an_interrupt_does_not(
        self, tmp_path: Path
    ) -> None:
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            told = Told([])
            for is_interrupted in (False, True):
                late = LateContext()
                run = await client.start_run(
                    replace(prompt(script({"echo": "context"})), context=late)
                )
                with anyio.fail_after(LONG_S):
                    await late.asked.wait()
                if is_interrupted:
                    await run.interrupt()
                late.give("The tea is green.")
                told = await read(run)
                assert isinstance(told.events[-1], RunFinished), "the agent lives on"
                assert ("The tea is green." in told.text) is not is_interrupted
            assert told.finish.subtype == "error_during_execution"
            assert (await ask(client, script({"text": "yes"}))).text == "yes"

    async def test_a_prompt_that_is_blocked_never_reaches_the_model(self, tmp_path: Path) -> None:
        async def refuse() -> None:
            await anyio.lowlevel.checkpoint()

        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            blocked = replace(prompt(script({"text": "Zebra."})), context=refuse)
            with anyio.fail_after(LONG_S):
                told = await read(await client.start_run(blocked))
            assert isinstance(told.events[-1], RunFinished)
            assert (told.text, told.all(MessageBegun)) == ("", [])
            assert "Zebra" not in (await ask(client, script({"echo": "messages"}))).text

    async def test_a_failing_service_is_told_and_waited_out_or_given_up(
        self, tmp_path: Path
    ) -> None:
        async with self.open(tmp_path) as engine:
            client = await self.connect(engine)
            told = await ask(client, script({"status": 529}, {"text": "here"}))
            retry = told.only(ModelRetrying)
            assert (retry.attempt, retry.max_attempts, retry.status) == (1, 1, 529)
            assert retry.delay_ms > 0
            assert (told.text, told.finish.is_error) == ("here", False)
            dropped = {"drop": True, "after_chars": 20}
            told = await ask(client, script(dropped, {"text": "begun anew"}))
            assert told.only(ModelRetrying).status is None
            kinds = [type(event) for event in told.plain]
            last = len(kinds) - 1 - kinds[::-1].index(MessageBegun)
            assert Told(told.plain[last:]).streamed == told.text == "begun anew"
            for status, retries in ((401, 1), (404, 0), (529, 1)):
                told = await ask(client, script({"status": status, "times": 99}))
                assert [event.status for event in told.all(ModelRetrying)] == [status] * retries
                assert told.only(ModelFailed).text
                assert told.text == told.streamed == ""
                assert (told.finish.is_error, told.finish.api_error_status) == (True, status)
                assert told.finish.terminal_reason == "api_error"

    async def test_clients_side_by_side_do_not_mix(self, tmp_path: Path) -> None:
        async with self.open(tmp_path) as engine:
            told: dict[str, Told] = {}

            async def talk(word: str) -> None:
                client = await self.connect(engine)
                told[word] = await ask(
                    client, script({"text": f"{word} " * 30, "delta_delay_ms": 5})
                )

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(talk, "heron")
                tasks.start_soon(talk, "otter")
            for word, other in (("heron", "otter"), ("otter", "heron")):
                assert told[word].text == f"{word} " * 30
                assert other not in told[word].streamed
            assert told["heron"].finish.session_id != told["otter"].finish.session_id

    async def test_unread_events_are_kept_and_hold_up_no_permission(self, tmp_path: Path) -> None:
        """SDK #779: its queue of 100 messages, once full, held the permission requests up too."""
        gate = Gate()
        words = "".join(f"w{number} " for number in range(400))
        steps = script({"text": words, "delta_delay_ms": 0, **bash("cat a.txt")}, {"text": "done"})
        async with self.open(tmp_path) as engine:
            run = await (await self.connect(engine)).start_run(prompt(steps, gate))
            with anyio.fail_after(LONG_S):
                await gate.decided.wait()
            told = await read(run)
            assert told.streamed == f"{words}done"

    async def test_a_client_has_a_name_of_its_own_and_tells_its_memory(
        self, tmp_path: Path
    ) -> None:
        async with self.open(tmp_path) as engine:
            one, other = await self.connect(engine), await self.connect(engine)
            assert one.client_id != other.client_id
            assert await anyio.to_thread.run_sync(one.memory_bytes_blocking) >= 0
            assert not list(one.stderr_tail())
