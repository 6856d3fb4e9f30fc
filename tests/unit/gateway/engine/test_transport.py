"""Events, transport and transcripts of a run."""

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import ByteReceiveStream
from anyio.streams.text import TextReceiveStream
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    Message,
    StreamEvent,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from claude_agent_sdk._errors import MessageParseError
from claude_agent_sdk._internal.message_parser import parse_message

from gateway.engine import runs, sdk, session_files
from gateway.engine.events import (
    ClientLost,
    EngineEvent,
    MessageBegun,
    RunFinished,
    TextDelta,
    ThinkingDelta,
)
from gateway.engine.private_sdk import SubprocessCLITransport
from gateway.engine.runs import EventQueue
from gateway.engine.transport import AgentTransport, BoundedLines, repair
from gateway.nesting import depth_of

LOST = ClientLost(exit_code=None)


async def read(queue: EventQueue) -> list[EngineEvent]:
    with anyio.fail_after(30):
        return [event async for event in queue.read()]


async def collect(queue: EventQueue, got: list[EngineEvent]) -> None:
    async for event in queue.read():
        got.append(event)  # noqa: PERF401  what was got before the end counts


async def test_what_came_before_the_reader_is_kept_in_order_up_to_the_last_event() -> None:
    queue = EventQueue()
    events = [MessageBegun(context_tokens=number) for number in range(1000)]
    finished = RunFinished(subtype="success", is_error=False, result="")
    for event in events:
        queue.put(event)
    ended = [queue.is_ended]
    queue.put(finished)
    queue.put(LOST)
    assert [*ended, queue.is_ended] == [False, True]
    assert await read(queue) == [*events, finished]
    assert await read(queue) == []


async def test_pieces_that_wait_are_joined_by_kind() -> None:
    queue = EventQueue()
    events: list[EngineEvent] = [
        *(ThinkingDelta(text=text) for text in ("想", "一想")),
        *(TextDelta(text=text) for text in "abc"),
        MessageBegun(),
        TextDelta(text="d"),
        LOST,
    ]
    for event in events:
        queue.put(event)
    assert await read(queue) == [
        ThinkingDelta(text="想一想"),
        TextDelta(text="abc"),
        MessageBegun(),
        TextDelta(text="d"),
        LOST,
    ]


@pytest.mark.parametrize("piece", [TextDelta, ThinkingDelta])
async def test_a_character_that_is_cut_over_two_pieces_is_whole_and_a_lone_half_is_kept(
    piece: type[TextDelta] | type[ThinkingDelta],
) -> None:
    queue, got = EventQueue(), list[EngineEvent]()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, queue, got)
            for text in ("a \ud83d", "\ude00 b", "\ud83d", "\ude00", "c \ud83d", "d \ud83d"):
                queue.put(piece(text=text))
                await anyio.wait_all_tasks_blocked()
            for event in (MessageBegun(), piece(text="\ude00"), LOST):
                queue.put(event)
    begun = got.index(MessageBegun())
    before, after = (
        "".join(getattr(event, "text", "") for event in part) for part in (got[:begun], got[begun:])
    )
    assert (before, after) == ("a 😀 b😀c \ud83dd \ud83d", "\ude00")
    assert piece(text="") not in got


async def test_the_first_piece_comes_at_once_and_later_ones_with_the_tick_or_the_next_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, "_GROUP_S", 1000)
    queue = EventQueue()
    got: list[EngineEvent] = []
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, queue, got)
            for text in "abc":
                queue.put(TextDelta(text=text))
                await anyio.wait_all_tasks_blocked()
            assert got == [TextDelta(text="a")]
            queue.put(LOST)
    assert got == [TextDelta(text="a"), TextDelta(text="bc"), LOST]


async def test_the_tick_wakes_the_readers_of_all_queues() -> None:
    queues = [EventQueue(), EventQueue()]
    got: list[EngineEvent] = []

    async def collect(reading: AsyncIterator[EngineEvent]) -> None:
        got.extend([await anext(reading), await anext(reading)])

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for queue in queues:
                tasks.start_soon(collect, queue.read())
            for text in "ab":
                await anyio.wait_all_tasks_blocked()
                for queue in queues:
                    queue.put(TextDelta(text=text))
    assert got == [TextDelta(text="a"), TextDelta(text="b")] * 2


def test_the_tick_gets_rarer_with_the_readers_that_wait_and_has_a_bound() -> None:
    ticks = [round(runs.next_tick(0.001, readers) * 1000) for readers in (0, 15, 16, 31, 60, 900)]
    assert ticks == [8, 8, 16, 24, 32, 32]
    assert runs.next_tick(0.033, 60) == pytest.approx(0.064)


async def test_a_waiting_reader_gets_each_event_and_a_cancelled_one_loses_none() -> None:
    queue = EventQueue()
    got: list[EngineEvent] = []
    with anyio.fail_after(30):
        for number in range(3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(collect, queue, got)
                await anyio.wait_all_tasks_blocked()
                queue.put(MessageBegun(context_tokens=number))
                tasks.cancel_scope.cancel()
        queue.put(LOST)
        await collect(queue, got)
    assert got == [*[MessageBegun(context_tokens=number) for number in range(3)], LOST]


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


async def read_lines(*chunks: bytes, max_chars: int = 1_000_000) -> list[str]:
    return [text async for text in BoundedLines(TextReceiveStream(Chunks(chunks)), max_chars)]


async def test_lines_come_whole_and_unchanged_however_they_are_cut() -> None:
    text = '{"a": "你好\u2028[["}\r\n\n{"b": [1, 2]}\n{"unfinished'
    data = text.encode()
    for size in (1, 7, 64, 10_000):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert "".join(await read_lines(*pieces)) == text


async def test_a_line_that_is_nested_too_deep_is_cut_and_one_too_long_is_for_the_reader() -> None:
    deep = "[" * 5000 + "]" * 5000
    lines = "".join(await read_lines(f'{{"a": {deep}}}\n{{"b": 1}}\n'.encode())).split("\n")
    assert depth_of(lines[0]) == 100
    assert json.loads(lines[1]) == {"b": 1}
    assert len(await read_lines(b"x" * 60, b"x" * 60, b"x" * 60, max_chars=100)) == 2


async def test_a_piece_passes_the_sdk_by_only_when_all_before_it_has_come_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def event(kind: str, number: int) -> dict[str, Any]:
        told = {"type": kind, "index": number}
        return {"type": "stream_event", "uuid": "u", "session_id": "s", "event": told}

    delta = "content_block_delta"
    sent = [
        *(event("content_block_start", 0), event(delta, 1), event(delta, 2)),
        {"type": "control_request"},
        *(event(delta, 3), {"type": "assistant", "uuid": "a"}, event(delta, 4), event(delta, 5)),
        *({"type": "stream_event", "event": {"type": delta}}, {"type": "result"}, event(delta, 6)),
    ]

    async def agent(_: object) -> AsyncIterator[dict[str, Any]]:
        for data in sent:
            await anyio.lowlevel.checkpoint()
            yield data

    monkeypatch.setattr(SubprocessCLITransport, "read_messages", agent)
    delivered: list[Message] = []
    transport = AgentTransport(ClaudeAgentOptions(), delivered.append, lambda _: None)
    through = []
    async for data in transport.read_messages():
        through.append(data)
        if data in (sent[1], sent[6]):  # the client has read so far
            transport.received = data["event"]
    assert through == [sent[index] for index in (0, 1, 3, 5, 6, 8, 9, 10)]
    assert [m.event["index"] for m in delivered if isinstance(m, StreamEvent)] == [2, 3, 5]


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
    nothing: list[dict[str, Any] | None] = [None, {}, {"message": 1}, {"message": {"content": "x"}}]
    for data in nothing:
        assert repair(MessageParseError("odd", data)) is None


def _any(value: object) -> Any:
    return value


ONE = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"


def write(root: Path, session_id: str, *entries: object) -> Path:
    path = root / "projects" / "-ws" / f"{session_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def cost(usd: object) -> dict[str, object]:
    return {"type": "cost-state", "sessionId": ONE, "totalCostUSD": usd}


def test_the_last_cost_counts_wherever_blocks_end_and_what_only_looks_like_one_is_none(
    tmp_path: Path,
) -> None:
    for padding in (0, 10, 1 << 16, 300_000):
        text = {"type": "user", "text": "x" * padding}
        write(tmp_path, ONE, cost(1), text, cost(2.5), text, text)
        assert sdk.spent_usd_blocking(tmp_path, ONE) == 2.5
    write(tmp_path, ONE, cost(1), {"text": '"cost-state"'}, '{"type":"cost-state"', cost("much"))
    assert sdk.spent_usd_blocking(tmp_path, ONE) == 1
    write(tmp_path, ONE)
    for session_id in (ONE, OTHER, "*", "../x", ""):
        assert sdk.spent_usd_blocking(tmp_path, session_id) == 0


def test_only_the_session_is_forgotten(tmp_path: Path) -> None:
    gone, kept = write(tmp_path, ONE, cost(1)), write(tmp_path, OTHER, cost(1))
    for transcript in (gone, kept):
        beside = transcript.with_suffix("") / "tool-results"
        beside.mkdir(parents=True)
        (beside / "a.txt").write_text("a", encoding="utf-8")
    for session_id in (ONE, "*", "..", "", "?" * 36):
        session_files.forget_blocking(tmp_path, session_id)
    assert sorted(entry.name for entry in gone.parent.iterdir()) == [OTHER, f"{OTHER}.jsonl"]
