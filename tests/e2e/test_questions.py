"""The agent's questions to the person (`AskUserQuestion`), asked and answered through the real agent process."""

from typing import Any

import pytest

from tests.support.live_server import LiveServer, script

pytestmark = pytest.mark.e2e

WHICH, MORE = "Which colour?", "颜色还要什么？"
OPTIONS = [{"label": name, "description": f"Use {name}."} for name in ("red", "blue")]
QUESTIONS = [
    {"question": WHICH, "header": "Colour", "options": OPTIONS, "multiSelect": False},
    {"question": MORE, "header": "More", "options": OPTIONS, "multiSelect": True},
]
ASK = {"tool": "AskUserQuestion", "input": {"questions": QUESTIONS, "answers": {WHICH: "forged"}}}
DONE = {"text": "Thank you."}


async def answered(
    server: LiveServer, conversation: str, **body: Any
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Ask; return the event of the answer, the turn's result and what the model was told."""
    async with server.client() as client, client.stream(script(ASK, DONE), conversation) as events:
        asked = (await events.until("approval.requested")).data
        assert (asked["name"], asked["summary"]) == ("AskUserQuestion", f"{WHICH} {MORE}")
        assert asked["permits"] == []
        path = f"/approvals/{asked['approval_id']}"
        await client.post(path, status=422, decision="allow", answers={"Why?": "so"})
        await client.post(path, **body)
        resolved = (await events.until("approval.resolved")).data
        finished = (await events.until("tool.finished")).data
        result = (await events.until("turn.completed")).data
    return resolved, result, finished["output"] or finished["error"]


async def test_a_refusal_reaches_the_model_with_its_word(
    asking_server: LiveServer, asking_conversation: str
) -> None:
    body = {"decision": "deny", "message": "Choose yourself."}
    _, result, told = await answered(asking_server, asking_conversation, **body)
    assert result["outcome"] == "answered_with_failures"
    assert "Choose yourself." in told


async def test_the_tool_is_offered_where_people_are_asked(
    asking_server: LiveServer, asking_conversation: str
) -> None:
    async with asking_server.client() as client:
        result = await client.ask(script({"echo": "tools"}), asking_conversation)
    assert "AskUserQuestion" in result["reply"]


PLAN = "## Plan\n\n1. Do what was asked"


async def test_a_plan_is_approved_before_anything_else_happens(asking_server: LiveServer) -> None:
    async with (
        asking_server.client() as client,
        client.stream("/plan write hello to planned.txt") as events,
    ):
        asked = (await events.until("approval.requested")).data
        assert (asked["name"], asked["permits"]) == ("ExitPlanMode", [])
        (pending,) = (await client.get("/approvals"))["approvals"]
        assert pending["input"].keys() == {"plan"}
        assert pending["input"]["plan"].startswith(PLAN)
        assert not (asking_server.workspace / "planned.txt").exists()
        await client.post(f"/approvals/{asked['approval_id']}", decision="allow")
        asked = (await events.until("approval.requested")).data
        assert (asked["name"], asked["summary"]) == ("Write", "planned.txt")
        await client.post(f"/approvals/{asked['approval_id']}", decision="allow")
        result = (await events.until("turn.completed")).data
    assert (result["outcome"], result["changes"]["files"]) == ("answered", 1)
    assert [call["name"] for call in result["tools"]] == ["Write", "ExitPlanMode", "Write"]
    shown = [event.data["input"] for event in events.seen if event.type == "tool.started"]
    assert shown[0]["file_path"].startswith(".plans/")
    assert str(asking_server.workspace) not in str(events.seen)
