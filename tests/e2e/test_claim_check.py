"""Claims that no call supports, found by a real side query on the demo model, served as any service."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.demo_service import demo_model_as_a_service
from tests.support.live_server import running_server, script

pytestmark = pytest.mark.e2e

CLAIM = "I wrote report.csv."


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve the demo model as any service."""
    with demo_model_as_a_service() as url:
        yield url


async def test_a_claim_without_a_call_is_quoted_in_the_stored_result_and_readers_are_told(
    tmp_path: Path, url: str
) -> None:
    """The reply holds what the demo model is to say when it is asked about the reply, with its quotes escaped."""
    answer = json.dumps({"claims": [CLAIM, 'I deleted "everything".']})
    reply = f"Done. {CLAIM}\n{script({'text': answer}, say='Details:')}"
    environ = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
    options = {"model": "candor-demo", "side_model": "candor-demo", "prewarmed_clients": 0}
    async with (
        running_server(tmp_path, command=None, environ=environ, check="model", **options) as server,
        server.client() as client,
    ):
        conversation_id = server.new_conversation()
        async with client.follow(conversation_id) as events:
            result = await client.ask(script({"text": reply}), conversation_id)
            changed = await events.until("conversation.changed")
            seen = [event.type for event in events.seen]
        told = await client.get(f"/conversations/{conversation_id}/messages")
        again = await client.replay(conversation_id, result["turn_id"])
    assert result["notices"] == []
    assert (changed.id, changed.data["turn_id"]) == ("", result["turn_id"])
    assert seen[-2:] == ["turn.completed", "conversation.changed"]
    (notice,) = told["messages"][-1]["result"]["notices"]
    assert (notice["code"], notice["quotes"]) == ("unsupported_claim", [CLAIM])
    assert again[-1].data["notices"] == [notice]
    assert "conversation.changed" not in [event.type for event in again]
