"""What the agent program writes is readable for the SDK, however a model formed its calls."""

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from anyio.abc import ByteReceiveStream
from anyio.streams.text import TextReceiveStream
from claude_agent_sdk import AssistantMessage, ToolResultBlock, ToolUseBlock, UserMessage
from claude_agent_sdk._errors import MessageParseError
from claude_agent_sdk._internal.message_parser import parse_message

from gateway.engine.transport import BoundedLines, repair
from gateway.nesting import depth_of


class Chunks(ByteReceiveStream):
    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = list(chunks)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        if not self._chunks:
            raise anyio.EndOfStream
        return self._chunks.pop(0)

    async def aclose(self) -> None:
        await anyio.lowlevel.checkpoint()


async def read(*chunks: bytes, max_chars: int = 1_000_000) -> list[str]:
    return [text async for text in BoundedLines(TextReceiveStream(Chunks(chunks)), max_chars)]


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
async def test_lines_come_whole_and_unchanged_however_they_are_cut(size: int) -> None:
    text = '{"a": "你好\u2028[["}\r\n\n{"b": [1, 2]}\n{"unfinished'
    data = text.encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert "".join(await read(*pieces)) == text


async def test_a_line_that_is_nested_too_deep_is_cut_and_the_others_are_not() -> None:
    deep = "[" * 5000 + "]" * 5000
    lines = "".join(await read(f'{{"a": {deep}}}\n{{"b": 1}}\n'.encode())).split("\n")
    assert depth_of(lines[0]) == 100
    assert json.loads(lines[1]) == {"b": 1}


async def test_a_line_that_is_too_long_is_handed_on_for_the_reader_to_refuse() -> None:
    assert len(await read(b"x" * 60, b"x" * 60, b"x" * 60, max_chars=100)) == 2


def refused(kind: str, content: object) -> MessageParseError:
    message = {"role": kind, "model": "m", "content": content}
    with pytest.raises(MessageParseError) as caught:
        parse_message({"type": kind, "message": message, "uuid": "u"})
    return caught.value


def test_calls_and_results_without_an_id_or_a_name_are_read_all_the_same() -> None:
    call = repair(refused("assistant", [{"type": "tool_use", "name": "Bash"}, "odd", {"x": 1}]))
    assert isinstance(call, AssistantMessage)
    assert call.content == [ToolUseBlock(id=_any(None), name="Bash", input={})]
    result = repair(refused("user", [{"type": "tool_result", "content": "out", "is_error": True}]))
    assert isinstance(result, UserMessage)
    assert result.content == [ToolResultBlock(_any(None), content="out", is_error=True)]
    assert result.uuid == "u"


def _any(value: object) -> Any:
    return value


@pytest.mark.parametrize("data", [None, {}, {"message": 1}, {"message": {"content": "text"}}])
def test_what_holds_no_blocks_is_not_repaired(data: dict[str, Any] | None) -> None:
    assert repair(MessageParseError("odd", data)) is None
