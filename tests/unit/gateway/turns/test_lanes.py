"""Order of turns, reasons to stop, and guards against loops."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import anyio
import pytest

from gateway.conversations.event_log import TurnEvents
from gateway.engine.events import ClientLost, ModelFailed, TextDone
from gateway.ids import ConversationId, TurnId
from gateway.turns.control import TurnClock, TurnControl
from gateway.turns.evidence import Evidence, ToolUse
from gateway.turns.guards import DoomLoop, needs_follow_through, needs_summary, skills_read
from gateway.turns.lanes import Lanes, Ticket
from tests.conformance.suites.conversation_values import turn
from tests.support.builders import broken_off, called, evidence_of, failed, finished, returned

HERE, THERE = ConversationId("cnv_here"), ConversationId("cnv_there")


def ticket(n: int, conversation_id: ConversationId = HERE) -> Ticket:
    one = turn(str(n), seq=n, conversation_id=conversation_id)
    return Ticket(turn=one, events=cast("TurnEvents", None), control=TurnControl())


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


@asynccontextmanager
async def laned(runs: Runs) -> AsyncIterator[Lanes]:
    """Open lanes that take turns there, until the last has ended."""
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            yield Lanes(runs.run, tasks)


async def test_places_are_told_and_what_is_about_to_run_counts_as_running() -> None:
    runs = Runs()
    async with laned(runs) as lanes:
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
        assert (len(lanes.running_in), lanes.queued_count) == (2, 3)
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
    async with laned(runs) as lanes:
        for n in range(3):
            lanes.join(ticket(n))
    assert runs.begun == ["trn_0", "trn_1", "trn_2"]
    assert lanes.is_empty


async def test_only_what_has_not_begun_is_taken_back() -> None:
    runs = Runs()
    async with laned(runs) as lanes:
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
    async with laned(runs) as lanes:
        first, second = ticket(0), ticket(1)
        lanes.join(first)
        lanes.join(second)
        await anyio.wait_all_tasks_blocked()
        await lanes.close(grace_s=0)
        assert (first.control.reason, first.control.cause) == ("shutdown", "shutdown")
        assert not second.control.is_stopping
        assert lanes.join(replace(second, turn=ticket(2, THERE).turn)) == 0
        assert lanes.current(THERE) is None
        await lanes.close(grace_s=0)
    assert runs.begun == ["trn_0"]
    assert lanes.waiting(HERE) == [second]


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
    clock = TurnClock(0.5)
    over = anyio.Event()

    async def wait() -> None:
        await clock.wait_over()
        over.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            clock.pause()
            with anyio.move_on_after(0.6):
                await over.wait()
            assert not over.is_set()
            clock.go_on()
            await over.wait()


TEXT = TextDone(text="I have read it.")


A, B = {"x": 1}, {"x": 2}
TRIES = [{"command": "ls", "description": f"try {n}"} for n in range(3)]
FOUR = [{"x": n} for n in range(4)]
LOOPS: list[tuple[str, int, Sequence[dict[str, Any]], bool]] = [
    *(("Read", threshold, [A] * threshold, True) for threshold in (2, 5, 7)),
    ("Read", 3, [A, A, B, A, A, A], True),
    # counting by the tool's name alone would call this a loop
    ("Read", 2, [{"file_path": f"{n}.txt"} for n in range(5)], False),
    # a cycle of two or three calls is one, and a longer one is not; nor are calls between which others stand
    *(("Read", 4, FOUR[:length] * 4, True) for length in (2, 3)),
    *(("Read", 4, [{}, *FOUR[:length] * 3] * 2, False) for length in (2, 3)),
    ("Read", 2, FOUR * 5, False),
    ("Read", 2, [{"x": n // 2 if n % 2 else -1} for n in range(20)], False),
    # what only comments a call makes no other call, where the tool is known
    ("Bash", 3, TRIES, True),
    ("mcp__tracker__report", 3, TRIES, False),
    # nor does the order of its arguments
    ("Edit", 2, [{"a": 1, "b": [{"c": 2, "d": 3}]}, {"b": [{"d": 3, "c": 2}], "a": 1}], True),
]


def test_the_call_that_makes_a_loop_is_the_last_one_of_it() -> None:
    for name, threshold, inputs, is_loop in LOOPS:
        loop = DoomLoop(threshold)
        told = [loop.observe(n, name, one) for n, one in enumerate(inputs)]
        assert told == [False] * (len(inputs) - 1) + [is_loop], (name, inputs)


def test_the_same_arguments_of_another_tool_or_told_twice_are_no_other_call() -> None:
    loop = DoomLoop(2)
    assert not loop.observe(1, "Read", {"path": "a"})
    assert not loop.observe(2, "Glob", {"path": "a"})
    assert not loop.observe(2, "Glob", {"path": "a"})
    assert loop.observe(3, "Glob", {"path": "a"})


def test_sub_agents_that_begin_alike_make_no_loop_and_each_of_them_can() -> None:
    loop = DoomLoop(3)
    calls = [(index, f"agent {index % 3}") for index in range(9)]
    told = [loop.observe(index, "Bash", {"command": "ls"}, caller) for index, caller in calls]
    assert told == [False] * 6 + [True] * 3


SUMMARIES: dict[bool, list[Evidence]] = {
    True: [
        evidence_of(called(), returned(), finished()),
        evidence_of(TextDone(text="I look."), called(), failed(), finished()),
    ],
    False: [
        evidence_of(finished()),
        evidence_of(called(), returned(), TEXT, finished()),
        evidence_of(called(), returned(), finished(result="Told in the result.")),
        evidence_of(called(), returned(), broken_off()),
        evidence_of(called(), returned(), finished(is_error=True)),
        evidence_of(called(), returned(), finished(subtype="error_max_turns")),
        evidence_of(called(), returned(), finished(stop_reason="refusal")),
        evidence_of(called(), returned(), broken_off(), stopped_by="user_interrupt"),
        evidence_of(called(), returned(), finished(), stopped_by="doom_loop"),
        evidence_of(called(), ModelFailed(kind="x", text=""), finished(is_error=True)),
        evidence_of(called(), ClientLost(exit_code=1)),
        evidence_of(called()),
    ],
}


def test_a_run_that_ended_without_a_word_after_its_calls_needs_a_summary_and_no_other() -> None:
    for is_needed, runs in SUMMARIES.items():
        assert [run for run in runs if needs_summary(run) is not is_needed] == []


READ_ALONE: list[tuple[str, dict[str, Any]]] = [
    ("Read", {"file_path": "/ws/.claude/skills/memory-capture/SKILL.md"}),
    ("Read", {"file_path": "C:\\ws\\skills\\x\\SKILL.md"}),
    ("Skill", {"skill": "memory-capture"}),
    ("Bash", {"command": "cat .claude/skills/memory-organize/SKILL.md"}),
    ("Bash", {"command": "cat 'skills/a/SKILL.md' skills/b/SKILL.md"}),
]
DID_MORE: list[tuple[str, dict[str, Any]]] = [
    *(("Read", {"file_path": name}) for name in ("README.md", "NOT-A-SKILL.md")),
    *(("Read", {}), ("Write", {"file_path": "SKILL.md"})),
    *(("Bash", {"command": f"{line}"}) for line in ("rm SKILL.md", "cat SKILL.md notes.md", "cat")),
]


def test_a_run_that_only_read_a_skill_and_then_spoke_is_to_be_sent_on() -> None:
    for name, tool_input in (*READ_ALONE, *DID_MORE):
        run = evidence_of(called(name=name, **tool_input), returned("# Skill"), TEXT, finished())
        assert needs_follow_through(run) == ((name, tool_input) in READ_ALONE), (name, tool_input)


def test_the_skills_that_a_call_showed_are_named_and_other_files_by_their_paths() -> None:
    def named(name: str, given: dict[str, Any]) -> set[str]:
        use = ToolUse(index=1, tool_use_id="t", name=name, input=given, summary="", started_s=0.0)
        return skills_read(use)

    assert [named(name, given) for name, given in READ_ALONE] == [
        {"/ws/.claude/skills/memory-capture"},
        {"C:/ws/skills/x"},
        {"memory-capture"},
        {"memory-organize"},
        {"skills/a", "skills/b"},
    ]
    assert named("Read", {"file_path": "./.claude/skills/a b/SKILL.md"}) == {"a b"}
    assert named("Read", {"file_path": "deep/.claude/skills/a/SKILL.md"}) == {
        "deep/.claude/skills/a"
    }


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
