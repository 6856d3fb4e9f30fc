"""The bounded answers of MCP servers over HTTP."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from gateway.mcp_servers import transports
from gateway.mcp_servers.transports import _EVENT_ENDS, _Bounded


class Chunks(httpx2.AsyncByteStream):
    """An answer that comes in pieces."""

    def __init__(self, data: bytes, size: int) -> None:
        self._pieces = [data[at : at + size] for at in range(0, len(data), size)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class Watched(bytearray):
    """Counts the bytes that are searched."""

    searched = 0

    def rfind(self, mark: bytes, begin: int = 0) -> int:  # type: ignore[override]
        Watched.searched += len(self) - begin
        return super().rfind(mark, begin)

    def __contains__(self, mark: object) -> bool:
        Watched.searched += len(self)
        return super().__contains__(mark)  # type: ignore[operator]


async def passed_on(data: bytes, size: int) -> list[bytes]:
    return [piece async for piece in _Bounded(Chunks(data, size), _EVENT_ENDS)]


@pytest.mark.parametrize("end", _EVENT_ENDS)
async def test_events_are_passed_on_whole_wherever_they_are_cut(end: bytes) -> None:
    events = [b"data: one" + end, "data: 二".encode() + end, b"data: three"]
    for size in range(1, 8):
        passed = await passed_on(b"".join(events), size)
        assert b"".join(passed) == b"".join(events)
        assert all(piece.endswith(end) for piece in passed[:-1])
        assert passed[0] == events[0], "it is not held back"


async def test_an_event_in_many_pieces_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "bytearray", Watched, raising=False)
    data = b'data: "' + b"x" * 20_000 + b'"\n\n'
    assert b"".join(await passed_on(data, 10)) == data
    assert Watched.searched < 10 * len(data)
