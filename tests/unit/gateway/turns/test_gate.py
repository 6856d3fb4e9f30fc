"""The gate around stops, faults and a person's answer; the service tests show what it allows and denies."""

import threading
from dataclasses import replace
from typing import cast

import anyio
import pytest

from gateway.turns import gate as turn_gate
from gateway.turns.approval_views import AskReason
from policies.calls import ToolCall
from policies.permits import Effect
from policies.verdict import Allow, Ask, Deny, Verdict
from tests.support.builders import called, returned, tool_call
from tests.support.turn_gates import CHANGES, READS, Fixed, Gate


async def test_a_person_agrees_to_the_policys_input_while_the_clock_stands_still() -> None:
    paused: list[bool] = []
    gate = Gate(Ask("ask", "why", {"command": "mv a b"}))
    gate.person.before = lambda: paused.append(gate.clock.is_paused)
    assert await gate.through() == Allow("ask", "why", {"command": "mv a b"})
    assert gate.person.calls[0].input == {"command": "mv a b"}
    assert (paused, gate.clock.is_paused) == ([True], False)


async def test_a_calls_time_begins_when_its_turn_has_come_not_while_its_neighbour_waits() -> None:
    gate = Gate(CHANGES)
    asked_s = anyio.current_time() - 3600  # a person took their time
    for call in (called("t1"), called("t2")):
        gate.evidence.tool_called(call, "ls", asked_s)

    await gate.through(replace(tool_call(), index=2, tool_use_id="t2"))

    gate.evidence.take(returned(tool_use_id="t2"), anyio.current_time())
    duration_ms = gate.evidence.tools[2].duration_ms
    assert duration_ms is not None
    assert duration_ms < 3_600_000


async def test_a_turn_that_is_being_stopped_runs_nothing_more_and_calls_that_no_denial() -> None:
    gate = Gate(Deny("never", "It is denied."))
    gate.control.stop("user_interrupt")
    verdict = await gate.through()
    assert isinstance(verdict, Deny)
    assert (verdict.rule, verdict.interrupt) == ("turn_stopping", True)
    assert gate.evidence.denials == {}
    assert gate.lines == [("t1", verdict)]
    gate = Gate(CHANGES)  # allowed before the stop
    assert await gate.judge(tool_call()) == CHANGES
    gate.control.stop("timeout")
    assert isinstance(await gate.decide(tool_call()), Deny)
    assert gate.person.calls == [], "nobody is bothered for it"
    gate = Gate(CHANGES)  # allowed with the stop
    gate.person.before = lambda: gate.control.stop("user_interrupt")
    assert isinstance(await gate.through(), Deny)


async def test_what_is_decided_on_is_what_was_judged() -> None:
    gate = Gate(READS)
    assert isinstance(gate.policy, Fixed)
    await gate.through()
    assert gate.policy.asked == 1
    await gate.judge(tool_call(tool_use_id="t2"))
    await gate.decide(tool_call(tool_use_id="t2", tool_input={"command": "rm a"}))
    assert gate.policy.asked == 3


async def test_what_is_no_verdict_is_a_denial_that_is_told() -> None:
    for nonsense in (None, True, "allow", {"permissionDecision": "allow"}, Allow, ValueError()):
        gate = Gate(cast("Verdict", nonsense))
        verdict = await gate.through()
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

    gate = Gate(READS)
    gate.policy = Hanging()
    try:
        for number in range(6):  # more than there are threads for it
            verdict = await gate.through(tool_call(tool_use_id=f"t{number}"))
            assert isinstance(verdict, Deny)
            assert verdict.rule == "policy_timeout"
    finally:
        let_go.set()


UNKNOWN = Deny(
    "command_not_allowed",
    "It is not listed.",
    question=Ask(
        "command_not_allowed",
        "It is not listed.",
        {"command": "make"},
        effect=Effect(tool="Bash", command="make", what="make", is_unknown=True),
        paths=None,
    ),
)


async def test_a_person_is_asked_about_what_is_unknown_and_learns_why() -> None:
    gate = Gate(UNKNOWN)
    assert await gate.through() == Allow(
        "command_not_allowed", "It is not listed.", {"command": "make"}
    )
    assert gate.person.calls[0].input == {"command": "make"}
    assert gate.person.reasons == [
        AskReason(kind="unlisted", why="IT IS NOT LISTED.", is_program=True)
    ]
    assert gate.evidence.denials == {}


async def test_nobody_is_asked_about_what_is_forbidden_or_where_nobody_is_there() -> None:
    for verdict in (Deny("never", "Never."), replace(UNKNOWN, question=None)):
        gate = Gate(verdict)
        assert await gate.through() == verdict
        assert gate.person.calls == []
    gate = Gate(UNKNOWN, asks=False)
    gate.asker = None
    assert await gate.through() == UNKNOWN


async def test_what_became_forbidden_while_the_person_was_asked_does_not_run() -> None:
    gate = Gate(UNKNOWN)
    forbidden = Deny("secret_file", "It holds secrets.")

    def swap() -> None:
        gate.fixed.verdict = forbidden

    gate.person.before = swap
    assert await gate.through() == forbidden
