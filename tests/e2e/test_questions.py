"""The agent's questions to the person (`AskUserQuestion`), refused with a word through the real agent process."""

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


async def test_a_refusal_reaches_the_model_with_its_word(
    asking_server: LiveServer, asking_conversation: str
) -> None:
    message = script(ASK, {"text": "Thank you."})
    async with (
        asking_server.client() as client,
        client.stream(message, asking_conversation) as events,
    ):
        asked = (await events.until("approval.requested")).data
        assert (asked["name"], asked["summary"]) == ("AskUserQuestion", f"{WHICH} {MORE}")
        assert asked["permits"] == []
        path = f"/approvals/{asked['approval_id']}"
        await client.post(path, status=422, decision="allow", answers={"Why?": "so"})
        await client.post(path, decision="deny", message="Choose yourself.")
        finished = (await events.until("tool.finished")).data
        result = (await events.until("turn.completed")).data
    assert result["outcome"] == "answered_with_failures"
    assert "Choose yourself." in finished["error"]
