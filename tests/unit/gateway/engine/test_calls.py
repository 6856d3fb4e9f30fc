"""Calls, results and messages of a run, matched to what belongs to it."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import anyio
from claude_agent_sdk import Message, SystemMessage, UserMessage

from gateway.engine.calls import RunCalls
from gateway.engine.events import ToolCalled, ToolReturned
from gateway.engine.message_filter import MessageFilter
from gateway.engine.result_text import plain_result
from gateway.engine.runs import SdkRun
from gateway.engine.tool_output import shorten
from policies.calls import ToolCall
from policies.verdict import Allow, Deny
from tests.support.engine_fakes import result, says, streams

YES = Allow("yes", "It may.")
NO = Deny("no", "It may not.", "Do otherwise.")
INSIDE = {"file_path": "/ws/in.txt", "content": "x"}
OUTSIDE = {"file_path": "/etc/out.txt", "content": "x"}
LISTING = {"command": "ls"}
REFUSED = "<tool_use_error>InputValidationError: …</tool_use_error>"


class Run:
    """The calls of a run and the events that were told of them; every call has the same id."""

    def __init__(self, *, calls_before: int = 0, lag_s: float = 0) -> None:
        self.told: list[ToolCalled] = []
        self.returns: list[int] = []
        self.calls = RunCalls(self.told.append, calls_before=calls_before, stream_lag_s=lag_s)
        self.calls.on_returned = self.returns.append

    def streams(self, *inputs: Mapping[str, Any], name: str = "Write") -> None:
        for tool_input in inputs:
            self.calls.stream(ToolCalled(tool_use_id="t", name=name, input=tool_input))

    async def shows(self, tool_input: Mapping[str, Any], name: str = "Write") -> ToolCall:
        return await self.calls.show(
            ToolCall(name=name, input=tool_input, cwd="/ws", tool_use_id="t")
        )

    async def runs(self, tool_input: Mapping[str, Any], name: str = "Write") -> int:
        """Take a call through both hooks; it is allowed."""
        await self.shows(tool_input, name)
        asked = self.calls.ask("t", name, tool_input)
        assert asked is not None
        await self.calls.allow(asked, YES)
        return asked.index

    async def denies(self, tool_input: Mapping[str, Any], name: str = "Write") -> int:
        shown = await self.shows(tool_input, name)
        self.calls.deny(shown, NO)
        return shown.index

    def result(self, text: str = "Done.", *, is_error: bool = False) -> int | None:
        """Return which call a result is attributed to."""
        event = ToolReturned(tool_use_id="t", is_error=is_error, text=text)
        return self.calls.take_result(event).index

    def denial(self) -> int | None:
        return self.result(f"PreToolUse:Write hook error: {NO.message}", is_error=True)

    @property
    def indexes(self) -> list[tuple[int, Any]]:
        return [(event.index, event.input) for event in self.told]


async def test_calls_are_numbered_in_the_order_of_the_stream_from_where_the_turn_stands() -> None:
    run = Run(calls_before=3)
    run.streams(INSIDE, OUTSIDE)
    assert (await run.shows(OUTSIDE)).index == 5
    assert (await run.shows(INSIDE)).index == 4
    assert run.indexes == [(4, INSIDE), (5, OUTSIDE)]


async def test_a_denial_and_a_result_under_one_id_each_find_their_call() -> None:
    run = Run()
    run.streams(INSIDE, OUTSIDE)
    assert (await run.runs(INSIDE), await run.denies(OUTSIDE)) == (1, 2)
    assert (run.denial(), run.result()) == (2, 1)
    assert run.returns == [2, 1]


async def test_a_denied_call_is_never_given_anothers_success() -> None:
    run = Run()
    run.streams(INSIDE, OUTSIDE)
    await run.denies(INSIDE)
    await run.denies(OUTSIDE)
    assert run.result() is None


async def test_a_result_is_of_the_call_that_ran_and_a_refusal_of_the_one_no_hook_saw() -> None:
    for texts in ([REFUSED, "Exit code 1"], ["Exit code 1", REFUSED], ["Done.", REFUSED]):
        run = Run()
        run.streams({}, LISTING, name="Bash")
        assert await run.runs(LISTING, "Bash") == 2
        found = {text: run.result(text, is_error=text != "Done.") for text in texts}
        assert found == {text: 1 if text == REFUSED else 2 for text in texts}


async def test_of_calls_with_one_id_one_runs_at_a_time_until_the_run_ends() -> None:
    run = Run()
    run.streams(LISTING, LISTING, name="Bash")
    assert await run.runs(LISTING, "Bash") == 1
    later: list[int] = []

    async def run_later() -> None:
        later.append(await run.runs(LISTING, "Bash"))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_later)
            await anyio.wait_all_tasks_blocked()
            assert later == []
            assert run.result() == 1
        assert later == [2]
        run.streams(LISTING, name="Bash")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_later)
            await anyio.wait_all_tasks_blocked()
            assert later == [2]
            run.calls.end()
    assert run.result() == 2


REWRITTEN = {"file_path": "/ws/rewritten.txt"}
SHORT = [{**INSIDE, "file_path": "b.txt"}, {**INSIDE, "file_path": "in.txt"}]
KNOWN: list[tuple[list[dict[str, str]], dict[str, str], int, int | None]] = [
    # by an input that the agent program completed
    (SHORT, INSIDE, 2, 2),
    (SHORT, {"mode": "default", **INSIDE}, 2, 2),
    # a rewritten input is a guess, unless its id is its own
    ([INSIDE, OUTSIDE], REWRITTEN, 1, None),
    ([INSIDE], REWRITTEN, 1, 1),
]


async def test_a_call_is_known_by_its_input_and_no_result_is_attributed_on_a_guess() -> None:
    for streamed, tool_input, index, attributed in KNOWN:
        run = Run()
        run.streams(*streamed)
        assert (await run.runs(tool_input), run.result()) == (index, attributed), tool_input


async def test_a_hook_may_come_before_its_call_in_the_stream() -> None:
    run = Run(lag_s=60)
    run.streams(OUTSIDE)
    shown: list[int] = []

    async def show() -> None:
        shown.append((await run.shows(INSIDE)).index)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(show)
            await anyio.wait_all_tasks_blocked()
            run.streams(INSIDE)
    assert shown == [2]


async def test_a_call_that_the_stream_does_not_have_is_told_and_not_told_again() -> None:
    run = Run()
    assert await run.runs(INSIDE) == 1
    run.streams(INSIDE)
    assert run.indexes == [(1, INSIDE)]
    assert run.result() == 1


async def test_a_result_that_was_taken_for_a_call_that_had_yet_to_run_makes_both_unknown() -> None:
    run = Run()
    run.streams(INSIDE, OUTSIDE)
    await run.runs(INSIDE)
    assert run.result(REFUSED, is_error=True) == 2  # in truth the first one's
    assert run.returns == [2]
    with anyio.fail_after(30):
        await run.runs(OUTSIDE)
    assert 1 in run.returns, "else what it holds would keep the second one waiting"
    run.returns.clear()
    assert run.result() is None
    assert 2 in run.returns


async def test_a_call_that_no_hook_was_shown_is_not_there_to_be_asked_about() -> None:
    run = Run()
    run.streams(INSIDE)
    assert run.calls.ask("t", "Write", INSIDE) is None
    await run.runs(INSIDE)
    assert run.calls.ask("t", "Write", INSIDE) is None, "answered already"


def test_the_agent_programs_own_denials_are_read_as_far_as_they_name_one_call() -> None:
    run = Run()
    run.streams(INSIDE, OUTSIDE)
    denial = {"tool_use_id": "t", "tool_name": "Write", "tool_input": OUTSIDE}
    assert run.calls.denied_by_agent([denial]) == (2,)
    for nothing in (None, "odd", [], ["odd", {}], [{"tool_use_id": "t"}], [{"tool_use_id": ["t"]}]):
        assert run.calls.denied_by_agent(nothing) == ()


BACKGROUND = {"kind": "task-notification"}
INIT = SystemMessage(subtype="init", data={})


def sorted_by(filter_: MessageFilter, *messages: Message) -> list[bool]:
    return [filter_.is_solicited(message) for message in messages]


def begun(run_uuid: str = "mine") -> MessageFilter:
    filter_ = MessageFilter()
    filter_.begin(run_uuid)
    return filter_


def test_an_interrupted_run_may_get_a_result_without_a_name_but_not_a_background_turns() -> None:
    filter_ = begun()
    assert not filter_.is_solicited(result(origin=BACKGROUND))
    filter_.interrupt()
    assert filter_.is_solicited(result(uuids=[]))
    assert not filter_.is_solicited(result(uuids=["other"]))
    assert not filter_.is_solicited(result(origin=BACKGROUND))
    filter_.begin("next")
    filter_.is_solicited(says("other", uuids=["other"]))
    assert not filter_.is_solicited(result(uuids=[])), "this run is not interrupted"


def test_without_a_run_nothing_is_solicited() -> None:
    filter_ = MessageFilter()
    assert sorted_by(filter_, INIT, streams("a"), says("a"), result()) == [False] * 4


def test_a_turn_that_began_before_the_run_keeps_its_messages_to_itself() -> None:
    filter_ = MessageFilter()
    filter_.is_solicited(streams("background"))
    filter_.begin("mine")
    tool_result = cast("Message", UserMessage(content="background"))
    messages = (streams("background"), tool_result, says("background"), result(origin=BACKGROUND))
    assert sorted_by(filter_, *messages) == [False] * 4
    assert sorted_by(filter_, streams("a"), says("a"), result(uuids=["mine"])) == [True] * 3


def test_a_turn_that_takes_the_prompt_in_becomes_the_runs_own() -> None:
    filter_ = MessageFilter()
    filter_.is_solicited(streams("background"))
    filter_.begin("mine")
    messages = (streams("a", uuids=["mine"]), says("a"), result(uuids=["mine"], origin=BACKGROUND))
    assert sorted_by(filter_, *messages) == [True] * 3


SHOWN = {
    "<tool_use_error>File does not exist.</tool_use_error>": "File does not exist.",
    "PreToolUse:Bash hook error: Pipes are not allowed.": "Pipes are not allowed.",
    "<persisted-output>\nOutput too large (9KB). Full output saved to: /data/x y.txt\n\n"
    "Preview (first 2KB):\nline\n...\n</persisted-output>": (
        "Output too large (9KB).\n\nPreview (first 2KB):\nline\n...\n"
    ),
    "a <b> hook error: 报告 saved to: x": "a <b> hook error: 报告 saved to: x",
}


def test_what_the_agent_program_wraps_around_a_result_is_taken_off() -> None:
    assert {raw: plain_result(raw) for raw in SHOWN} == SHOWN


LONG: list[Any] = [
    {"stdout": "x" * 30_000, "stderr": "", "persistedOutputPath": "/data/x.txt"},
    {"stdout": "字" * 17_999, "stderr": "e" * 9_000},
    {"mode": "content", "content": "1:x\n" * 90_000},
    {"mode": "files_with_matches", "filenames": [f"src/{i}.py" for i in range(9_000)]},
    [{"type": "text", "text": "x" * 60_000}],
]


def test_a_long_result_is_cut_and_says_so_and_a_short_one_or_an_image_is_not() -> None:
    for response in LONG:
        told = "\n".join(strings(shorten(response)))
        assert len(told) < 19_000
        assert "left out here" in told
        assert "/data/x.txt" not in told
    short = {"stdout": "行\n" * 3_000, "stderr": "", "interrupted": False}
    image = [{"type": "image", "source": {"data": "x" * 90_000}}]
    assert (shorten(short), shorten(image)) == (short, image)


def strings(value: Any) -> list[str]:
    """List the texts in a result."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for part in parts for text in strings(part)]


TASK = {"description": "Look", "prompt": "Look around."}


async def handed_over(calls: RunCalls, tool_use_id: str) -> None:
    """Start a call of Agent."""
    calls.stream(ToolCalled(tool_use_id=tool_use_id, name="Agent", input=TASK))
    shown = ToolCall(name="Agent", input=TASK, cwd="/ws", tool_use_id=tool_use_id)
    await calls.allow(await calls.show(shown), YES)


async def test_a_sub_agents_call_names_its_parent_where_that_is_known() -> None:
    told: list[ToolCalled] = []
    calls = RunCalls(told.append, stream_lag_s=0)
    await handed_over(calls, "a1")
    unseen = ToolCall(name="Bash", input=LISTING, cwd="/ws", tool_use_id="b1", agent_id="x")
    await calls.show(unseen)  # its message is late, and only one sub-agent is at work
    await handed_over(calls, "a2")
    calls.stream(ToolCalled(tool_use_id="b2", name="Bash", input=LISTING, parent_tool_use_id="a2"))
    await calls.show(replace(unseen, tool_use_id="b3"))  # of either
    calls.stream(ToolCalled(tool_use_id="b4", name="Bash", input=LISTING, parent_tool_use_id="?"))
    parents = [(call.parent_tool_use_id, call.parent_index) for call in told]
    assert parents == [
        (None, None),
        ("a1", 1),
        (None, None),
        ("a2", 3),
        (None, None),
        ("?", None),
    ]


async def test_only_a_sub_agents_result_is_taken_out_of_its_frame() -> None:
    frame = "[Subagent hand-back] Its words. The report follows:\n  Found.\nagentId: a\n<usage>"
    calls = RunCalls(lambda _: None, stream_lag_s=0)
    await handed_over(calls, "a1")
    calls.stream(ToolCalled(tool_use_id="b1", name="Bash", input=LISTING))
    shown = ToolCall(name="Bash", input=LISTING, cwd="/ws", tool_use_id="b1")
    await calls.allow(await calls.show(shown), YES)
    told = [
        calls.take_result(ToolReturned(tool_use_id=name, is_error=False, text=frame)).text
        for name in ("a1", "b1")
    ]
    assert told == ["Found.", frame]


async def test_without_the_relay_the_work_of_a_sub_agent_is_no_silence() -> None:
    run = SdkRun(lambda _: None)
    assert run.silent_since < math.inf
    await handed_over(run.calls, "a1")
    assert run.silent_since == math.inf
    run.calls.take_result(ToolReturned(tool_use_id="a1", is_error=False, text="Found."))
    assert run.silent_since < math.inf
