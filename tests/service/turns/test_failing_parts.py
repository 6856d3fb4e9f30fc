"""Memory, the journal or a part of the turn itself fails: there is a result, and the lane goes on."""

from pathlib import Path
from typing import Any

import pytest

from memory.errors import StoreConflict
from memory.intents.record import IntentRecorder
from tests.support.builders import Memory, codes
from tests.support.services import HANG, kinds, of_kind, running_services, script


@pytest.mark.parametrize(
    ("pack", "code", "deadline_ms"),
    [
        (None, "memory_timeout", 20),
        (RuntimeError("broken"), "memory_failed", 10_000),
        ("no pack at all", "memory_failed", 10_000),
    ],
)
async def test_a_memory_that_is_slow_or_broken_never_breaks_a_turn(
    tmp_path: Path, pack: Any, code: str, deadline_ms: int
) -> None:
    async with running_services(
        tmp_path, memory=Memory(pack), recall_deadline_ms=deadline_ms
    ) as services:
        result = await services.ask("hello")
        lines = await services.journal_of(result)
        services.assert_nothing_is_left()
    assert (result["outcome"], result["memory"]["degraded"]) == ("answered", [code])
    assert (lines[1]["kind"], lines[1]["degraded"]) == ("context", [code])


@pytest.mark.parametrize("fault", [StoreConflict("It contradicts."), RuntimeError("broken")])
@pytest.mark.parametrize("message", ["hello", "你好"])
async def test_what_happened_in_a_turn_cannot_be_recorded_and_the_turn_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, message: str
) -> None:
    def fail(*_: object) -> None:
        raise fault

    async with running_services(tmp_path) as services:
        with monkeypatch.context() as patched:
            patched.setattr(IntentRecorder, "recording", fail)
            result, events, _ = await services.play(message)
        services.assert_nothing_is_left()
    assert (result["outcome"], codes(result["notices"])) == ("answered", ["memory_not_written"])
    assert kinds(events)[-1] == "turn.completed"


async def test_a_turn_that_nothing_can_be_noted_of_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    async with running_services(tmp_path) as services:
        monkeypatch.setattr(IntentRecorder, "runtime_line", fail)
        read = {"tool": "Read", "input": {"file_path": "a.txt"}}
        accepted = await services.begin(script(read, {"text": "I begin"}, {"hang": True}))
        result = await services.stop(accepted)
        services.assert_nothing_is_left()
    assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
    assert [tool["status"] for tool in result["tools"]] == ["ok"]


@pytest.mark.parametrize(("kind", "in_the_log"), [("message", True), ("response", False)])
async def test_lines_that_the_journal_lost_are_told_in_the_result_and_if_it_can_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, in_the_log: bool
) -> None:
    async with running_services(tmp_path) as services:
        real = services.journal.enqueue
        monkeypatch.setattr(
            services.journal, "enqueue", lambda turn, line: line.kind != kind and real(turn, line)
        )
        result, events, lines = await services.play("hello")
    assert codes(result["notices"]) == ["journal_lost"]
    assert result["outcome"] == "answered"
    assert of_kind(events, "turn.completed") == [result]
    assert kinds(events)[-2:] == ["notice", "turn.completed"]
    assert (codes(lines[-1].get("notices", [])) == ["journal_lost"]) == in_the_log


@pytest.mark.parametrize(
    "place",
    [
        "gateway.turns.turn_recall.TurnRecall._report",
        "gateway.turns.client_lease.ClientLease.take",
        "gateway.turns.event_emitter.EventEmitter.emit",
        "gateway.turns.runner.TurnWork._continue",
        "gateway.turns.completion.turn_result",
        "gateway.turns.completion.broke_off",
    ],
)
async def test_whatever_fails_in_the_run_or_its_result_the_turn_ends_and_the_lane_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async with running_services(tmp_path) as services:
        with monkeypatch.context() as patched:

            def fail(*_: object, **__: object) -> None:
                patched.undo()
                raise RuntimeError("broken")

            patched.setattr(place, fail)
            accepted = await services.send(HANG if "emit" in place else "hello")
            result = await services.result_of(accepted)
        after = await services.ask("hello", accepted.conversation_id)
        events = await services.events_of(accepted)
        lines = [item["kind"] for item in await services.journal_of(result)]
        services.assert_nothing_is_left()
    assert (result["outcome"], result["stop_reason"]) == ("engine_failed", "engine_crash")
    assert after["outcome"] == "answered"
    assert kinds(events).count("turn.completed") == 1
    assert (lines[0], lines.count("context"), lines[-1]) == ("request", 1, "response")
