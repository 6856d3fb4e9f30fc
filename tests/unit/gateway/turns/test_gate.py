import threading
from collections.abc import Callable
from typing import cast

import anyio
import pytest

from gateway.turns import gate as turn_gate
from gateway.turns.approvals import Answer, Question
from gateway.turns.control import TurnClock, TurnControl
from gateway.turns.evidence import Evidence
from gateway.turns.gate import Asker, TurnGate
from gateway.turns.guards import DoomLoop
from policies.permits import Effect
from policies.tools import ToolCall
from policies.verdict import Allow, Ask, Deny, Verdict
from tests.support.builders import tool_call

READS = Allow("reads", "It only reads.", changes=False)
CHANGES = Allow("changes", "It changes something.")
NO = Deny("no", "It is not allowed.", "Use ls.")
STOP = Deny("stop", "That ends the turn.", interrupt=True)


class Fixed:
    """A policy that says what it was made with, and counts how often it is asked."""

    def __init__(self, verdict: Verdict | Exception) -> None:
        self.verdict = verdict
        self.asked = 0

    def judge(self, call: ToolCall) -> Verdict:
        assert call.tool_use_id
        self.asked += 1
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


class Person:
    """Somebody who always answers the same."""

    def __init__(self, answer: Answer, before: Callable[[], None] = lambda: None) -> None:
        self.answer = answer
        self.before = before
        self.calls: list[ToolCall] = []

    async def __call__(self, call: ToolCall, _: Effect) -> tuple[Question | None, Answer]:
        self.calls.append(call)
        self.before()
        await anyio.lowlevel.checkpoint()
        return None, self.answer


class Gate(TurnGate):
    """A gate with what it wrote down."""

    lines: list[tuple[str, Allow | Deny]]


def a_gate(
    verdict: Verdict | Exception,
    *,
    person: Asker | None = None,
    ask_changes: bool = False,
    threshold: int = 5,
) -> Gate:
    lines: list[tuple[str, Allow | Deny]] = []

    def write_down(call: ToolCall, verdict: Allow | Deny) -> None:
        lines.append((call.tool_use_id, verdict))

    gate = Gate(
        policy=Fixed(verdict),
        evidence=Evidence(),
        control=TurnControl(),
        clock=TurnClock(60),
        doom_loop=DoomLoop(threshold),
        asker=person,
        ask_changes=ask_changes,
        write_permission=write_down,
        before_call=lambda _: anyio.lowlevel.checkpoint(),
        describe=lambda verdict: verdict.message.upper(),
    )
    gate.lines = lines
    return gate


async def through(gate: TurnGate, call: ToolCall | None = None) -> Allow | Deny:
    """Do as the engine does: judge, and decide where that was no plain denial."""
    call = call or tool_call()
    judged = await gate.judge(call)
    if isinstance(judged, Deny) and not judged.interrupt:
        return judged
    return await gate.decide(call)


async def test_an_allowed_call_runs_and_is_written_down_once() -> None:
    gate = a_gate(READS)
    assert await through(gate) == READS
    assert gate.lines == [("t1", READS)]
    assert gate.evidence.denials == {}


async def test_a_denied_call_is_kept_with_its_reason_as_it_may_be_shown() -> None:
    gate = a_gate(NO)
    assert await through(gate) == NO
    assert gate.evidence.denials == {1: "IT IS NOT ALLOWED. USE LS."}
    assert gate.lines == [("t1", NO)]
    assert not gate.control.is_stopping


async def test_an_interrupting_denial_ends_the_turn() -> None:
    gate = a_gate(STOP)
    assert await through(gate) == STOP
    assert gate.control.reason == "policy_interrupt"
    assert gate.lines == [("t1", STOP)]


async def test_a_person_who_agrees_lets_the_call_run_with_the_policys_input() -> None:
    person = Person(Answer(decision="allow", by="user"))
    gate = a_gate(Ask("ask", "why", {"command": "mv a b"}), person=person)
    assert await through(gate) == Allow("ask", "why", {"command": "mv a b"})
    assert person.calls[0].input == {"command": "mv a b"}


async def test_a_person_who_denies_is_quoted_to_the_model() -> None:
    person = Person(Answer(decision="deny", by="user", message="Ask Ann first."))
    gate = a_gate(Ask("ask", "why"), person=person)
    verdict = await through(gate)
    assert isinstance(verdict, Deny)
    assert verdict.rule == "approval_denied"
    assert "Ask Ann first." in verdict.reason
    assert not verdict.interrupt


async def test_with_approvals_a_person_is_asked_about_changes_alone() -> None:
    person = Person(Answer(decision="allow", by="user"))
    await through(a_gate(READS, person=person, ask_changes=True))
    assert person.calls == []
    await through(a_gate(CHANGES, person=person, ask_changes=True))
    assert len(person.calls) == 1
    await through(a_gate(CHANGES, person=person, ask_changes=False))
    assert len(person.calls) == 1


async def test_the_clock_stands_still_while_a_person_is_asked() -> None:
    paused: list[bool] = []
    person = Person(Answer(decision="allow", by="user"))
    gate = a_gate(CHANGES, person=person, ask_changes=True)
    person.before = lambda: paused.append(gate.clock.is_paused)
    await through(gate)
    assert (paused, gate.clock.is_paused) == ([True], False)


async def test_a_forced_summary_that_goes_on_calling_is_broken_off_and_the_turn_is_not() -> None:
    gate = a_gate(READS)
    gate.tools_forbidden = True
    verdicts = [await through(gate, tool_call(tool_use_id=f"t{n}")) for n in range(3)]
    assert [isinstance(verdict, Deny) and verdict.interrupt for verdict in verdicts] == [
        False,
        False,
        True,
    ]
    assert not gate.control.is_stopping


async def test_the_call_that_makes_a_doom_loop_is_denied_and_ends_the_turn() -> None:
    gate = a_gate(READS, threshold=3)
    calls = [tool_call(tool_use_id=f"t{n}") for n in range(3)]
    assert [await through(gate, call) for call in calls[:2]] == [READS, READS]
    verdict = await through(gate, calls[2])
    assert isinstance(verdict, Deny)
    assert (verdict.rule, verdict.interrupt) == ("doom_loop", True)
    assert gate.control.reason == "doom_loop"
    assert list(gate.evidence.denials) == [2]


async def test_a_turn_that_is_being_stopped_runs_nothing_more_and_calls_that_no_denial() -> None:
    gate = a_gate(READS)
    gate.control.stop("user_interrupt")
    verdict = await through(gate)
    assert isinstance(verdict, Deny)
    assert (verdict.rule, verdict.interrupt) == ("turn_stopping", True)
    assert gate.evidence.denials == {}
    assert gate.lines == [("t1", verdict)]


async def test_a_call_that_was_allowed_before_the_stop_does_not_run_after_it() -> None:
    person = Person(Answer(decision="allow", by="user"))
    gate = a_gate(CHANGES, person=person, ask_changes=True)
    assert await gate.judge(tool_call()) == CHANGES
    gate.control.stop("timeout")
    assert isinstance(await gate.decide(tool_call()), Deny)
    assert person.calls == [], "nobody is bothered for it"


async def test_an_agreement_that_comes_together_with_the_stop_lets_nothing_run() -> None:
    person = Person(Answer(decision="allow", by="user"))
    gate = a_gate(CHANGES, person=person, ask_changes=True)
    person.before = lambda: gate.control.stop("user_interrupt")
    assert isinstance(await through(gate), Deny)


async def test_a_question_that_the_turns_end_answers_is_no_denial_by_a_person() -> None:
    person = Person(Answer(decision="deny", by="turn_ended"))
    gate = a_gate(CHANGES, person=person, ask_changes=True)
    verdict = await through(gate)
    assert isinstance(verdict, Deny)
    assert verdict.rule == "turn_stopping"
    assert gate.evidence.denials == {}


async def test_what_is_decided_on_is_what_was_judged() -> None:
    gate = a_gate(READS)
    assert isinstance(gate.policy, Fixed)
    await gate.judge(tool_call())
    await gate.decide(tool_call())
    assert gate.policy.asked == 1
    await gate.judge(tool_call(tool_use_id="t2"))
    await gate.decide(tool_call(tool_use_id="t2", tool_input={"command": "rm a"}))
    assert gate.policy.asked == 3


async def test_what_is_no_verdict_is_a_denial_that_is_told() -> None:
    for nonsense in (None, True, "allow", {"permissionDecision": "allow"}, Allow, ValueError()):
        gate = a_gate(cast("Verdict", nonsense))
        verdict = await through(gate)
        assert isinstance(verdict, Deny)
        assert verdict.rule == "policy_error"
        assert gate.evidence.denials.keys() == {1}


async def test_a_policy_that_hangs_denies_and_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turn_gate, "_JUDGE_S", 0.01)
    let_go = threading.Event()

    class Hanging:
        def judge(self, _call: ToolCall) -> Verdict:
            let_go.wait(20)
            return READS

    gate = a_gate(READS, threshold=99)
    gate.policy = Hanging()
    try:
        for number in range(6):  # more than there are threads for it
            verdict = await through(gate, tool_call(tool_use_id=f"t{number}"))
            assert isinstance(verdict, Deny)
            assert verdict.rule == "policy_timeout"
    finally:
        let_go.set()
