"""Messages requests in the shapes that the real agent process sends."""

from collections.abc import Sequence
from typing import Any

from gateway.demo.answer import Answer, Reply, Text, ToolCall
from gateway.demo.conversation import Conversation, read_conversation

EMPTY_NOTICE = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"
HOOK = "UserPromptSubmit hook additional context: "


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def user(*blocks: dict[str, object] | str) -> dict[str, object]:
    return {"role": "user", "content": [text(b) if isinstance(b, str) else b for b in blocks]}


def assistant(*blocks: dict[str, object] | str) -> dict[str, object]:
    return {**user(*blocks), "role": "assistant"}


def system(words: str) -> dict[str, object]:
    return {"role": "system", "content": words}


def tool_use(tool_id: str, name: str = "Bash", **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "id": tool_id, "name": name, "input": arguments}


def tool_result(tool_id: str, words: str, *, is_error: bool = False) -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": tool_id, "content": words, "is_error": is_error}


def called(name: str, result: str, *, is_error: bool = False) -> list[dict[str, object]]:
    """Return the messages of one tool call and its result."""
    return [assistant(tool_use(name, name)), user(tool_result(name, result, is_error=is_error))]


def read(
    *messages: dict[str, object], tools: Sequence[str] = ("Bash", "Read"), session: str = "s1"
) -> Conversation:
    request: dict[str, object] = {
        "model": "candor-demo",
        "system": [text("You are a Claude agent.")],
        "messages": list(messages),
        "tools": [{"name": name, "input_schema": {"properties": {}}} for name in tools],
    }
    return read_conversation(request, session=session)


def words_of(reply: Reply) -> str:
    assert isinstance(reply, Answer), reply
    return "".join(block.text for block in reply.blocks if isinstance(block, Text))


def calls_of(reply: Reply) -> list[tuple[Any, Any]]:
    assert isinstance(reply, Answer), reply
    return [(b.name, b.arguments) for b in reply.blocks if isinstance(b, ToolCall)]
