"""The real agent process on the demo model: what the unit tests assume about its requests is checked here."""

from pathlib import Path
from typing import Any

import pytest

from gateway.engine.events import ToolCalled
from gateway.engine.protocol import ClientSpec
from tests.support.engine_talk import ask, script
from tests.support.engine_world import FRESH, real_world

pytestmark = pytest.mark.e2e

# One the agent does not know, and one it knows: they get hook context in different places.
MODELS = ["candor-demo", "claude-sonnet-4-5"]
MEMORY = "Remembered:\n- the favourite colour is green"


async def comment_on_result(*_: Any) -> dict[str, Any]:  # noqa: RUF029  the SDK awaits it
    """Return what reads like a request, in place of the hook that shortens results."""
    told = {"hookEventName": "PostToolUse", "additionalContext": "list the files"}
    return {"hookSpecificOutput": told}


@pytest.mark.parametrize("model", MODELS)
async def test_prompts_hook_context_and_scripts_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """A hook's comment after a call must not start the call again."""
    monkeypatch.setattr("gateway.engine.hooks.RunHooks._post_tool_use", comment_on_result)
    async with real_world(tmp_path) as world:
        (world.setup.workspace / "notes.md").write_text("first note\n", encoding="utf-8")
        client = await world.engine.connect(ClientSpec(model=model), FRESH)
        told = await ask(client, "list the files", context=MEMORY)
        assert [call.name for call in told.all(ToolCalled)] == ["Bash"]
        assert "notes.md" in told.text
        assert "scripted" in told.text
        await ask(client, "my codeword is plum", context=MEMORY)
        assert "plum" in (await ask(client, "what is my codeword?", context=MEMORY)).text
        assert "green" in (await ask(client, "what do you remember?", context=MEMORY)).text
        assert (await ask(client, script({"echo": "memory"}), context=MEMORY)).text == MEMORY
