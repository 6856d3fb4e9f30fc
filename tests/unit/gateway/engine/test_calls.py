"""Which call of a run is which, whatever ids a model gives its calls."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from gateway.engine.calls import RunCalls
from gateway.engine.events import ToolCalled, ToolReturned
from policies.tools import ToolCall
from policies.verdict import Allow, Deny

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
        self.calls = RunCalls(self.told.append, calls_before=calls_before, stream_lag_s=lag_s)

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


async def test_a_denied_call_is_never_given_anothers_success() -> None:
    run = Run()
    run.streams(INSIDE, OUTSIDE)
    await run.denies(INSIDE)
    await run.denies(OUTSIDE)
    assert run.result() is None


async def test_a_failure_is_of_the_call_that_ran_and_a_refusal_of_the_one_no_hook_was_shown() -> (
    None
):
    for texts in ([REFUSED, "Exit code 1"], ["Exit code 1", REFUSED]):
        run = Run()
        run.streams({}, LISTING, name="Bash")
        assert await run.runs(LISTING, "Bash") == 2
        found = {text: run.result(text, is_error=True) for text in texts}
        assert found == {REFUSED: 1, "Exit code 1": 2}


async def test_a_success_is_of_the_call_that_ran_whatever_came_before() -> None:
    run = Run()
    run.streams({}, LISTING, name="Bash")
    await run.runs(LISTING, "Bash")
    assert run.result() == 2
    assert run.result(REFUSED, is_error=True) == 1


async def test_of_calls_with_one_id_only_one_runs_at_a_time() -> None:
    run = Run()
    run.streams(LISTING, LISTING, name="Bash")
    assert await run.runs(LISTING, "Bash") == 1
    second: list[int] = []

    async def run_second() -> None:
        second.append(await run.runs(LISTING, "Bash"))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_second)
            await anyio.wait_all_tasks_blocked()
            assert second == []
            assert run.result() == 1
    assert second == [2]
    assert run.result() == 2


async def test_the_end_of_the_run_lets_a_waiting_call_go() -> None:
    run = Run()
    run.streams(LISTING, LISTING, name="Bash")
    await run.runs(LISTING, "Bash")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.runs, LISTING, "Bash")
            await anyio.wait_all_tasks_blocked()
            run.calls.end()


@pytest.mark.parametrize(
    "completed",
    [
        {"file_path": "/ws/in.txt", "content": "x"},
        {"content": "x", "file_path": "/ws/in.txt", "mode": "default"},
    ],
)
async def test_a_call_is_known_by_an_input_that_the_agent_program_completed(
    completed: dict[str, Any],
) -> None:
    run = Run()
    run.streams({"file_path": "b.txt", "content": "x"}, {"file_path": "in.txt", "content": "x"})
    assert await run.runs(completed) == 2
    assert run.result() == 2


async def test_where_it_is_a_guess_which_call_ran_no_result_is_attributed() -> None:
    run = Run()
    run.streams(INSIDE, OUTSIDE)
    await run.runs({"file_path": "/ws/rewritten.txt"})
    assert run.result() is None


async def test_a_rewritten_input_under_an_id_of_its_own_is_no_guess() -> None:
    run = Run()
    run.streams(INSIDE)
    assert await run.runs({"file_path": "/ws/rewritten.txt"}) == 1
    assert run.result() == 1


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
    with anyio.fail_after(30):
        await run.runs(OUTSIDE)
    assert run.result() is None


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
