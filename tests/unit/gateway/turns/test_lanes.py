"""Order of turns, reasons to stop, and guards against loops."""

from dataclasses import replace
from typing import Any, cast

import anyio
import pytest

from gateway.conversations.event_log import TurnEvents
from gateway.conversations.model import Turn
from gateway.engine.events import ClientLost, ModelFailed, TextDone
from gateway.ids import ConversationId, TurnId, UserId
from gateway.turns.control import TurnClock, TurnControl
from gateway.turns.guards import DoomLoop, needs_follow_through, needs_summary
from gateway.turns.lanes import Lanes, Ticket
from tests.support.builders import NOON, broken_off, called, evidence_of, failed, finished, returned

HERE, THERE = ConversationId("cnv_here"), ConversationId("cnv_there")


def ticket(n: int, conversation_id: ConversationId = HERE) -> Ticket:
    turn = Turn(
        id=TurnId(f"trn_{n}"),
        conversation_id=conversation_id,
        user_id=UserId("ann"),
        seq=n,
        state="queued",
        message="hello",
        created_at=NOON,
    )
    return Ticket(turn=turn, events=cast("TurnEvents", None), control=TurnControl())


class Runs:
    """Turns that run until they are told to stop."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.broken = False

    async def run(self, one: Ticket) -> None:
        self.begun.append(one.turn.id)
        if self.broken:
            raise RuntimeError("broken")
        await one.control.wait_stop()


async def test_places_are_told_and_what_is_about_to_run_counts_as_running() -> None:
    runs = Runs()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            lanes = Lanes(runs.run, tasks)
            tickets = [ticket(n) for n in range(3)]
            assert [lanes.join(each_ticket) for each_ticket in tickets] == [0, 1, 2]
            assert lanes.running(HERE) is None
            assert lanes.current(HERE) is tickets[0]
            assert lanes.waiting(HERE) == tickets[1:]
            await anyio.wait_all_tasks_blocked()
            assert lanes.running(HERE) is lanes.current(HERE) is tickets[0]
            assert lanes.waiting(HERE) == tickets[1:]
            assert lanes.join(ticket(3)) == 3
            assert lanes.join(ticket(4, THERE)) == 0
            await anyio.wait_all_tasks_blocked()
            assert (lanes.running_count, lanes.queued_count) == (2, 3)
            for item in (*tickets, *lanes.waiting(HERE)):
                item.control.stop("user_interrupt")
            running = lanes.running(THERE)
            assert running is not None
            running.control.stop("user_interrupt")
    assert lanes.is_empty
    assert runs.begun == ["trn_0", "trn_4", "trn_1", "trn_2", "trn_3"]


async def test_a_turn_that_raises_does_not_stop_those_behind_it() -> None:
    runs = Runs()
    runs.broken = True
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            lanes = Lanes(runs.run, tasks)
            for n in range(3):
                lanes.join(ticket(n))
    assert runs.begun == ["trn_0", "trn_1", "trn_2"]
    assert lanes.is_empty


async def test_only_what_has_not_begun_is_taken_back() -> None:
    runs = Runs()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            lanes = Lanes(runs.run, tasks)
            tickets = [ticket(n) for n in range(4)]
            for each_ticket in tickets:
                lanes.join(each_ticket)
            await anyio.wait_all_tasks_blocked()
            assert lanes.take_back(HERE, TurnId("trn_0")) is None
            assert lanes.take_back(THERE, TurnId("trn_1")) is None
            assert lanes.take_back(HERE, TurnId("trn_2")) is tickets[2]
            assert lanes.take_back(HERE, TurnId("trn_2")) is None
            assert lanes.take_all_back(HERE) == [tickets[1], tickets[3]]
            assert lanes.take_all_back(THERE) == []
            assert lanes.is_busy(HERE)
            tickets[0].control.stop("user_interrupt")
    assert runs.begun == ["trn_0"]
    assert lanes.is_empty


async def test_closing_starts_nothing_more_and_stops_what_runs_after_the_grace() -> None:
    runs = Runs()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            lanes = Lanes(runs.run, tasks)
            first, second = ticket(0), ticket(1)
            lanes.join(first)
            lanes.join(second)
            await anyio.wait_all_tasks_blocked()
            await lanes.close(grace_s=0)
            assert (first.control.reason, first.control.cause) == ("user_interrupt", "shutdown")
            assert not second.control.is_stopping
            assert lanes.join(replace(second, turn=ticket(2, THERE).turn)) == 0
            assert lanes.current(THERE) is None
            await lanes.close(grace_s=0)
    assert runs.begun == ["trn_0"]
    assert lanes.waiting(HERE) == [second]


async def test_the_first_reason_to_stop_stands() -> None:
    control = TurnControl()
    assert not control.is_stopping
    control.stop("timeout")
    control.stop("user_interrupt", "left")
    assert (control.reason, control.cause, control.is_stopping) == ("timeout", None, True)
    with anyio.fail_after(30):
        await control.wait_stop()


class FakeTime:
    """Loop time that stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("gateway.turns.control.anyio.current_time", lambda: self.now)


def test_pauses_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    time = FakeTime(monkeypatch)
    clock = TurnClock(30)
    clock.pause()
    clock.pause()
    clock.go_on()
    time.now += 1000
    assert clock.left_s == 30
    clock.go_on()
    time.now += 1
    assert clock.left_s == 29


async def test_a_pause_that_begins_while_somebody_waits_holds_the_end_off() -> None:
    clock = TurnClock(0.05)
    over = anyio.Event()

    async def wait() -> None:
        await clock.wait_over()
        over.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            clock.pause()
            with anyio.move_on_after(0.06):
                await over.wait()
            assert not over.is_set()
            clock.go_on()
            await over.wait()


TEXT = TextDone(text="I have read it.")


def calls(loop: DoomLoop, *inputs: dict[str, Any], name: str = "Read") -> list[bool]:
    return [loop.observe(n, name, one) for n, one in enumerate(inputs)]


def test_the_threshold_is_the_number_of_the_call_that_makes_the_loop() -> None:
    for threshold in (2, 5, 7):
        told = calls(DoomLoop(threshold), *[{"x": 1}] * threshold)
        assert told == [False] * (threshold - 1) + [True]
    a, b = {"x": 1}, {"x": 2}
    assert calls(DoomLoop(3), a, a, b, a, a, a) == [False] * 5 + [True]


def test_five_reads_of_five_files_never_count() -> None:
    """Counting by the tool's name alone would call this a loop."""
    assert not any(calls(DoomLoop(2), *[{"file_path": f"{n}.txt"} for n in range(5)]))


@pytest.mark.parametrize("length", [2, 3])
def test_a_cycle_of_two_or_three_calls_made_so_often_is_a_loop(length: int) -> None:
    cycle = [{"command": f"ls {n}"} for n in range(length)]
    told = calls(DoomLoop(4), *cycle * 4)
    assert told == [False] * (4 * length - 1) + [True]
    assert not any(calls(DoomLoop(4), {"command": "ls"}, *cycle * 3, {"command": "ls"}, *cycle * 3))


def test_longer_cycles_and_interleaved_calls_that_differ_never_count() -> None:
    assert not any(calls(DoomLoop(2), *[{"x": n} for n in range(4)] * 5))
    assert not any(calls(DoomLoop(2), *[{"x": n // 2 if n % 2 else -1} for n in range(20)]))


def test_what_only_comments_a_call_makes_no_other_call() -> None:
    tries = [{"command": "ls", "description": f"try {n}"} for n in range(3)]
    assert calls(DoomLoop(3), *tries, name="Bash") == [False, False, True]
    assert not any(calls(DoomLoop(3), *tries, name="mcp__tracker__report"))


def test_the_same_arguments_of_another_tool_are_another_call() -> None:
    loop = DoomLoop(2)
    assert not loop.observe(1, "Read", {"path": "a"})
    assert not loop.observe(2, "Glob", {"path": "a"})


def test_the_order_of_arguments_makes_no_difference() -> None:
    loop = DoomLoop(2)
    assert not loop.observe(1, "Edit", {"a": 1, "b": [{"c": 2, "d": 3}]})
    assert loop.observe(2, "Edit", {"b": [{"d": 3, "c": 2}], "a": 1})


def test_a_call_that_is_told_twice_counts_once() -> None:
    loop = DoomLoop(2)
    assert not loop.observe(1, "Read", {})
    assert not loop.observe(1, "Read", {})
    assert loop.observe(2, "Read", {})


def test_a_run_that_ended_without_a_word_after_its_calls_needs_a_summary() -> None:
    assert needs_summary(evidence_of(called(), returned(), finished()))
    assert needs_summary(evidence_of(TextDone(text="I look."), called(), failed(), finished()))


def test_no_other_run_needs_a_summary() -> None:
    for evidence in (
        evidence_of(finished()),
        evidence_of(called(), returned(), TEXT, finished()),
        evidence_of(called(), returned(), finished(result="Told in the result.")),
        evidence_of(called(), returned(), broken_off()),
        evidence_of(called(), returned(), finished(is_error=True)),
        evidence_of(called(), returned(), finished(subtype="error_max_turns")),
        evidence_of(called(), returned(), finished(stop_reason="refusal")),
        evidence_of(called(), returned(), broken_off(), stopped_by="user_interrupt"),
        evidence_of(called(), returned(), finished(), stopped_by="doom_loop"),
        evidence_of(called(), ModelFailed(kind="x", text=""), finished()),
        evidence_of(called(), ClientLost(exit_code=1)),
        evidence_of(called()),
    ):
        assert not needs_summary(evidence), evidence


def test_a_run_that_only_read_a_skill_and_then_spoke_is_to_be_sent_on() -> None:
    reads: list[tuple[str, dict[str, Any]]] = [
        ("Read", {"file_path": "/ws/.claude/skills/memory-capture/SKILL.md"}),
        ("Read", {"file_path": "C:\\ws\\skills\\x\\SKILL.md"}),
        ("Skill", {"skill": "memory-capture"}),
        ("Bash", {"command": "cat .claude/skills/memory-organize/SKILL.md"}),
        ("Bash", {"command": "cat 'skills/a/SKILL.md' skills/b/SKILL.md"}),
    ]
    for name, tool_input in reads:
        read = called(name=name, **tool_input)
        assert needs_follow_through(evidence_of(read, returned("# Skill"), TEXT, finished())), read


def test_a_run_that_did_something_else_last_is_not_sent_on() -> None:
    others: list[tuple[str, dict[str, Any]]] = [
        ("Read", {"file_path": "README.md"}),
        ("Read", {"file_path": "NOT-A-SKILL.md"}),
        ("Read", {}),
        ("Write", {"file_path": "SKILL.md"}),
        ("Bash", {"command": "rm SKILL.md"}),
        ("Bash", {"command": "cat SKILL.md notes.md"}),
        ("Bash", {"command": "cat"}),
    ]
    for name, tool_input in others:
        done = called(name=name, **tool_input)
        assert not needs_follow_through(evidence_of(done, returned(), TEXT, finished())), done


def test_a_skill_that_was_followed_or_not_got_or_ended_otherwise_is_not_sent_on() -> None:
    read = called(name="Skill", skill="x")
    followed = (read, returned(), called("t2"), returned(tool_use_id="t2"))
    assert not needs_follow_through(evidence_of(*followed, TEXT, finished()))
    assert not needs_follow_through(evidence_of(read, failed(), TEXT, finished()))
    assert not needs_follow_through(evidence_of(read, returned(), finished()))
    assert not needs_follow_through(evidence_of(read, returned(), TEXT, broken_off()))
    assert not needs_follow_through(
        evidence_of(read, returned(), TEXT, broken_off(), stopped_by="user_interrupt")
    )
