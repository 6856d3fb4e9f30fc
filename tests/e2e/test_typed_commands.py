"""What a person types after a slash either works or is answered plainly, with the real agent process."""

import pytest

from tests.support.builders import codes
from tests.support.live_server import LiveServer, script

pytestmark = pytest.mark.e2e


async def test_a_skill_is_used_through_the_gate(server: LiveServer, conversation: str) -> None:
    """The model gets a request in words, and its call of the skill is judged and written down."""
    launch = {"tool": "Skill", "input": {"skill": "memory-capture"}, "echo": "prompt"}
    rest = {"text": "Captured."}, {"on_followup": [{"text": "Followed."}]}
    message = script(launch, *rest, say="/memory-capture today")
    async with server.client() as client:
        result = await client.ask(message, conversation)
    lines = server.journal(result)
    assert (result["outcome"], result["stop_reason"]) == ("answered", "end_turn")
    assert [(tool["name"], tool["status"]) for tool in result["tools"]] == [("Skill", "ok")]
    assert "Use the skill memory-capture: call the Skill tool" in result["reply"]
    assert "\n\ntoday\n```" in result["reply"]
    assert [line["tool"] for line in lines if line["kind"] == "permission"] == ["Skill"]
    assert lines[0]["message"] == message
    assert lines[0]["prompt"].startswith("Use the skill memory-capture: ")


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        ("/compact", "There is nothing to summarise yet."),
        ("/compact 请保留文件名和路径的说明", "现在还没有可以总结的内容。"),
        ("/cost", "There is no command /cost here, so nothing was done."),
        (
            "/memory-captur please",
            "There is no command /memory-captur here, so nothing was done. Perhaps /memory-capture",
        ),
    ],
)
async def test_what_cannot_work_is_answered_without_the_model(
    server: LiveServer, message: str, reply: str
) -> None:
    async with server.client() as client:
        async with client.stream(message) as events:
            told = await events.rest()
        result = told[-1].data
    assert (result["outcome"], result["stop_reason"]) == ("answered", "end_turn")
    assert result["reply"].startswith(reply)
    assert codes(result["notices"]) == ["answered_by_gateway"]
    assert (result["model"], result["usage"]["input_tokens"]) == ("", 0)
    assert (
        "".join(item.data["text"] for item in told if item.type == "text.delta") == result["reply"]
    )
    kinds = [line["kind"] for line in server.journal(result)]
    assert (kinds[0], kinds[-1]) == ("request", "response")
    assert "message" not in kinds
