"""Sub-agents and lists of tasks through the real agent process."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.live_server import LiveServer, bash, running_server, script

pytestmark = pytest.mark.e2e

NO_REPORT: dict[str, Any] = {"hang": True}


def hand_over(*steps: dict[str, Any], what: str = "Look around") -> dict[str, Any]:
    """Return the step that hands a script to a sub-agent."""
    return {"tool": "Agent", "input": {"description": what, "prompt": script(*steps)}}


def side_by_side(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [{"name": step["tool"], "input": step["input"]} for step in steps]}


async def test_the_calls_of_sub_agents_pass_the_gate_and_stand_below_their_parent(
    server: LiveServer, conversation: str
) -> None:
    await anyio.Path(server.workspace / "kept.txt").write_text("kept")
    helper = hand_over(
        {"text": "I look."} | bash("cat kept.txt"), bash("curl a.example"), {"text": "Found."}
    )
    other = hand_over(bash("ls"), {"text": "Nothing."}, what="Look elsewhere")
    async with server.client() as client:
        async with client.stream(
            script(side_by_side(helper, other), bash("ls"), {"text": "Told."}), conversation
        ) as events:
            result = (await events.until("turn.completed")).data
        again = await client.ask(
            script(bash("ls"), {"text": "Still here."}), result["conversation_id"]
        )
    tools = result["tools"]
    first, second = (use for use in tools if use["name"] == "Agent")
    below = {
        index: [(use["summary"], use["status"]) for use in tools if use["parent_index"] == index]
        for index in (None, first["index"], second["index"])
    }
    assert (first["summary"], second["summary"]) == ("Look around", "Look elsewhere")
    assert below[first["index"]] == [("cat kept.txt", "ok"), ("curl a.example", "denied")]
    assert below[second["index"]] == [("ls", "ok")]
    assert [text for text, _ in below[None]] == ["Look around", "Look elsewhere", "ls"]
    assert {use["parent_tool_use_id"] for use in tools} == {
        None,
        first["tool_use_id"],
        second["tool_use_id"],
    }
    assert (result["reply"], result["outcome"]) == ("Told.", "answered_with_failures")
    started = [event.data for event in events.seen if event.type == "tool.started"]
    assert [use["parent_index"] for use in started] == [use["parent_index"] for use in tools]
    asked = [line for line in server.journal(result) if line["kind"] == "permission"]
    assert len(asked) == len(tools)
    assert [use["status"] for use in again["tools"]] == ["ok"]


async def test_the_report_of_a_sub_agent_is_told_without_the_frame_for_the_model(
    server: LiveServer, conversation: str
) -> None:
    report = "It is **there**.\n\n    indented\nagentId: none"
    message = script(hand_over({"text": report}), {"text": "Told."})
    async with server.client() as client:
        result = await client.ask(message, conversation)
        path = f"/conversations/{conversation}/turns/{result['turn_id']}/tools/1"
        call = await client.get(path)
    assert call["output"] == report


async def test_a_person_is_asked_about_a_sub_agents_call_and_after_it(
    asking_server: LiveServer, asking_conversation: str
) -> None:
    for name in ("one.txt", "two.txt"):
        await anyio.Path(asking_server.workspace / name).write_text("x")
    message = script(
        hand_over(bash("rm one.txt"), {"text": "Gone."}), bash("rm two.txt"), {"text": "Both gone."}
    )
    async with (
        asking_server.client() as client,
        client.stream(message, asking_conversation) as events,
    ):
        for index in (2, 3):
            asked = (await events.until("approval.requested")).data
            assert asked["index"] == index
            await client.post(f"/approvals/{asked['approval_id']}", decision="allow")
        result = (await events.until("turn.completed")).data
    assert [use["status"] for use in result["tools"]] == ["ok", "ok", "ok"]
    assert [use["parent_index"] for use in result["tools"]] == [None, 1, None]


async def test_an_interrupt_stops_sub_agents_with_their_turn_and_the_next_turn_is_asked_as_ever(
    asking_server: LiveServer,
) -> None:
    await anyio.Path(asking_server.workspace / "later.txt").write_text("x")
    message = script(side_by_side(hand_over(bash("ls"), NO_REPORT), hand_over(NO_REPORT)))
    async with asking_server.client() as client:
        async with client.stream(message) as events:
            ended = await events.until("tool.finished")
            conversation = ended.data["conversation_id"]
            await client.http.post(f"/conversations/{conversation}/interrupt", params={"wait": 1})
            result = (await events.until("turn.completed")).data
        assert result["stop_reason"] == "user_interrupt"
        assert {use["status"] for use in result["tools"] if use["name"] == "Agent"} == {
            "interrupted"
        }
        rest = script(hand_over(bash("rm later.txt"), {"text": "Gone."}), {"text": "Done."})
        async with client.stream(rest, conversation) as events:
            asked = (await events.until("approval.requested")).data
            await client.post(f"/approvals/{asked['approval_id']}", decision="allow")
            after = (await events.until("turn.completed")).data
    assert (after["outcome"], [use["status"] for use in after["tools"]]) == (
        "answered",
        ["ok", "ok"],
    )


async def test_the_answers_to_sub_agents_count_against_the_turns_steps(tmp_path: Path) -> None:
    looks = [bash(f"ls {name}") for name in ("a", "b", "c", "d", "e", "f", "g", "h")]
    async with running_server(tmp_path, max_agent_steps=6) as server, server.client() as client:
        fine = await client.ask(script(hand_over(bash("ls"), {"text": "Ok."}), {"text": "Ok."}))
        over = await client.ask(
            script(hand_over(*looks, {"text": "Ok."}), {"text": "Ok."}), fine["conversation_id"]
        )
    assert fine["stop_reason"] == "end_turn"
    assert (over["outcome"], over["stop_reason"]) == ("stopped", "max_turns")
    assert len(over["tools"]) < len(looks)


async def test_a_model_that_is_silent_to_a_sub_agent_ends_the_turn(tmp_path: Path) -> None:
    async with running_server(tmp_path, model_silence_s=5) as server, server.client() as client:
        result = await client.ask(script(hand_over(bash("ls"), NO_REPORT), {"text": "Ok."}))
    assert result["stop_reason"] == "model_timeout"
    assert [use["status"] for use in result["tools"]] == ["interrupted", "ok"]


async def test_a_definition_in_the_workspace_does_not_shape_a_sub_agent(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, server.client() as client:
        agents = anyio.Path(server.workspace / ".claude/agents")
        await agents.mkdir(parents=True)
        await (agents / "general-purpose.md").write_text(
            "---\nname: general-purpose\ndescription: d\n---\nANOTHER PROMPT\n"
        )
        echo = hand_over({"echo": "system"})
        result = await client.ask(script(echo, {"text": "Done."}))
        call = await client.get(
            f"/conversations/{result['conversation_id']}/turns/{result['turn_id']}/tools/1"
        )
    assert "You are a sub-agent in Candor" in call["output"]
    assert "ANOTHER PROMPT" not in call["output"]


async def test_a_list_of_tasks_is_told_as_it_stands(server: LiveServer) -> None:
    def task(name: str, **given: Any) -> dict[str, Any]:
        return {"tool": name, "input": given}

    message = script(
        task("TaskCreate", subject="Read the notes", description="d"),
        task("TaskCreate", subject="Write a test", description="d"),
        task("TaskUpdate", taskId="1", status="completed"),
        task("TaskGet", taskId="2"),
        task("TaskList"),
        {"text": "Planned."},
    )
    async with server.client() as client, client.stream(message) as events:
        result = (await events.until("turn.completed")).data
    assert result["tasks"] == [
        {"id": "1", "subject": "Read the notes", "status": "completed"},
        {"id": "2", "subject": "Write a test", "status": "pending"},
    ]
    changed = [event.data["tasks"] for event in events.seen if event.type == "tasks.changed"]
    assert [len(tasks) for tasks in changed] == [1, 2, 2, 2, 2]
    assert {use["status"] for use in result["tools"]} == {"ok"}


async def test_sub_agents_and_lists_can_be_switched_off(tmp_path: Path) -> None:
    tried = script(hand_over({"text": "Ok."}), {"text": "Done."})
    async with (
        running_server(tmp_path, subagents="off", task_lists="off") as server,
        server.client() as client,
    ):
        echo = await client.ask(script({"echo": "tools"}))
        result = await client.ask(tried, echo["conversation_id"])
    assert {"Agent", "TaskCreate", "TaskList"}.isdisjoint(echo["reply"].split())
    assert [use["status"] for use in result["tools"]] == ["failed"]
