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
