"""What is there after a restart and after a crash."""

from pathlib import Path

from gateway.ids import LOCAL_USER as ME
from tests.support.builders import REMEMBERED, Memory, codes
from tests.support.services import (
    HANG,
    ask,
    assert_nothing_is_left,
    begun,
    copy_as_after_a_crash,
    events_of,
    journal_of,
    kinds,
    of_kind,
    result_of,
    running_services,
    same_sessions,
    script,
    send,
)

LS = {"tool": "Bash", "input": {"command": "ls"}}


async def test_after_a_crash_a_running_turn_is_told_with_its_evidence_and_queued_ones_run(
    tmp_path: Path,
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    async with running_services(before, memory=Memory(REMEMBERED)) as services:
        first = await ask(services, "hello")
        conversation_id = first["conversation_id"]
        message = script(LS, {"text": "I have listed "}, {"hang": True})
        running = await send(services, message, conversation_id)
        await begun(services, running)
        queued = await send(services, script({"echo": "messages"}), conversation_id)
        last = await send(services, "hello", conversation_id)
        await events_of(services, last, until="turn.queued")
        await copy_as_after_a_crash(services, after)
        sessions = same_sessions(services)
        await services.chat.intake.interrupt(ME, conversation_id)
    async with running_services(after, make_engine=sessions) as services:
        told = await result_of(services, running)
        results = [await result_of(services, item) for item in (queued, last)]
        events = [await events_of(services, each_item) for each_item in (running, queued, last)]
        lines = await journal_of(services, told)
        view = await services.chat.conversations.get(ME, conversation_id)
        async with await services.chat.reader.follow(ME, conversation_id) as subscription:
            everything = await subscription.next(5)
        assert_nothing_is_left(services)
    assert (told["outcome"], told["stop_reason"]) == ("engine_failed", "engine_crash")
    assert told["reply"].startswith("I have listed\n\nThe server stopped unexpectedly")
    assert [tool["status"] for tool in told["tools"]] == ["ok"]
    assert told["memory"]["injected"][0]["id"] == "epi_1"
    assert [result["outcome"] for result in results] == ["answered"] * 2
    assert "hello" in results[0]["reply"], "the session was resumed"
    for each_event in events:
        assert kinds(each_event).count("turn.completed") == 1
        assert kinds(each_event)[-1] == "turn.completed"
        assert [event.n for event in each_event] == list(range(1, len(each_event) + 1))
    assert [entry.seq for entry in everything] == sorted({element.seq for element in everything})
    assert (view.state, list(view.queue)) == ("idle", [])
    assert (lines[-1]["kind"], lines[-1]["outcome"]) == ("response", "engine_failed")
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))


async def test_what_was_open_at_the_crash_is_told_as_ended_for_those_who_follow(
    tmp_path: Path,
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    write = {"tool": "Write", "input": {"file_path": "b.txt", "content": "x"}}
    async with running_services(before, approvals="on") as services:
        accepted = await send(services, script(write))
        await events_of(services, accepted, until="approval.requested")
        await copy_as_after_a_crash(services, after)
    async with running_services(after, approvals="on") as services:
        result = await result_of(services, accepted)
        events = await events_of(services, accepted)
        assert services.chat.approvals.pending(ME, None) == []
    assert [tool["status"] for tool in result["tools"]] == ["denied"]
    assert [item["status"] for item in of_kind(events, "tool.finished")] == ["denied"]
    assert of_kind(events, "approval.resolved")[0]["by"] == "turn_ended"
    assert codes(result["notices"]) == ["tools_failed"]
    assert "it did not run" in result["reply"]


async def test_a_crash_of_the_restart_itself_changes_nothing(tmp_path: Path) -> None:
    roots = [tmp_path / str(n) for n in range(3)]
    async with running_services(roots[0]) as services:
        accepted = await send(services, HANG)
        await begun(services, accepted)
        await copy_as_after_a_crash(services, roots[1])
    async with running_services(roots[1]) as services:
        told = await result_of(services, accepted)
        await copy_as_after_a_crash(services, roots[2])
    async with running_services(roots[2]) as services:
        assert await result_of(services, accepted) == told
        events = await events_of(services, accepted)
    assert kinds(events).count("turn.completed") == 1


async def test_a_message_that_was_taken_back_stays_so(tmp_path: Path) -> None:
    taken = 0
    async with running_services(tmp_path, shutdown_grace_s=0) as services:
        running = await send(services, HANG)
        conversation_id = running.conversation_id
        await begun(services, running)
        queued = [await send(services, "hello", conversation_id) for _ in range(2)]
        await services.chat.intake.take_back(ME, conversation_id, queued[taken].turn_id)
    async with running_services(tmp_path) as services:
        results = [await result_of(services, accepted) for accepted in queued]
    assert results[taken]["reply"] == "This message was taken back before it was answered."
    assert results[1 - taken]["outcome"] == "answered"
