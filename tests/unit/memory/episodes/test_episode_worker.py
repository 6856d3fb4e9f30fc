"""The background writer: every ended turn is remembered once, and none keeps the others waiting."""

from collections.abc import Sequence
from datetime import UTC, datetime

import anyio
import pytest

from memory.episodes.episode import EpisodeDraft, Written
from memory.episodes.episode_worker import EpisodeWorker
from memory.episodes.turn import ToolCall, Turn
from memory.errors import StoreUnavailable

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


class Memory:
    """A chronicle, a writer and the marks in one."""

    def __init__(self, *turn_ids: str) -> None:
        self.waiting = list(turn_ids)
        self.written: list[str] = []
        self.marked: list[str] = []
        self.bad: set[str] = set()
        self.down = 0
        self.looks = 0
        self.progressed = anyio.Event()

    async def unremembered(self, limit: int) -> Sequence[str]:
        self.looks += 1
        assert self.looks <= 10, "a turn that was dealt with is not marked and comes again"
        return self.waiting[:limit]

    async def turn(self, turn_id: str) -> Turn | None:
        if turn_id in self.bad:
            raise ValueError("a bad turn")
        if turn_id == "gone":
            return None
        calls = () if turn_id.startswith("talk") else (ToolCall(name="Bash", status="ok"),)
        return Turn(
            turn_id=turn_id, conversation_id="c", owner_id="ann", occurred_at=AT, calls=calls
        )

    async def write(self, draft: EpisodeDraft, *, remembers_turn: str | None = None) -> Written:
        if self.down:
            self.down -= 1
            self.progress()
            raise StoreUnavailable("down")
        assert remembers_turn is not None
        self.written.append(remembers_turn)
        self.waiting.remove(remembers_turn)
        self.progress()
        if remembers_turn.startswith("dull"):
            return Written(status="refused", reason="progress")
        return Written(status="stored", episode_id=draft.episode_id)

    async def mark_remembered(self, turn_id: str) -> None:
        self.marked.append(turn_id)
        self.waiting.remove(turn_id)

    def progress(self) -> None:
        self.progressed.set()
        self.progressed = anyio.Event()


async def test_turns_are_written_oldest_first_and_marked() -> None:
    memory = Memory("a", "talk", "gone", "b")
    assert await EpisodeWorker(memory, memory, memory.mark_remembered).drain() == 4
    assert memory.written == ["a", "b"]
    assert memory.marked == ["talk", "gone"]
    assert await EpisodeWorker(memory, memory, memory.mark_remembered).drain() == 0


async def test_a_turn_without_anything_to_keep_is_marked_once_and_does_not_come_again() -> None:
    memory = Memory("talk", "gone")
    assert await EpisodeWorker(memory, memory, memory.mark_remembered).drain() == 2
    assert (memory.marked, memory.waiting, memory.looks) == (["talk", "gone"], [], 2)


async def test_a_refused_turn_is_logged_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory("a", "dull")
    with caplog.at_level("INFO"):
        assert await EpisodeWorker(memory, memory, memory.mark_remembered).drain() == 2
    (record,) = caplog.records
    assert (record.msg, record.turn_id, record.reason) == ("episode_refused", "dull", "progress")  # type: ignore[attr-defined]


async def test_one_bad_turn_does_not_stop_the_rest_and_stays() -> None:
    memory = Memory(*(f"t{n}" for n in range(120)))
    memory.bad = {f"t{n}" for n in range(60)}
    told: list[str] = []
    remembering = EpisodeWorker(
        memory,
        memory,
        memory.mark_remembered,
        on_bad_turn=lambda turn_id, exc: told.append(f"{turn_id}: {exc}"),
    )
    assert await remembering.drain() == 60
    assert set(memory.waiting) == memory.bad
    assert len(told) == 60
    assert told[0] == "t0: a bad turn"
    assert await remembering.drain() == 0
    assert len(told) == 60, "it is not tried again before the next start"


async def test_a_store_that_is_away_is_told_and_nothing_is_skipped() -> None:
    memory = Memory("a", "b")
    memory.down = 1
    remembering = EpisodeWorker(memory, memory, memory.mark_remembered)
    with pytest.raises(StoreUnavailable):
        await remembering.drain()
    assert await remembering.drain() == 2


async def test_it_runs_at_its_start_and_whenever_it_is_woken() -> None:
    memory = Memory("a")
    remembering = EpisodeWorker(memory, memory, memory.mark_remembered)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            first = memory.progressed
            await group.start(remembering.run)
            await first.wait()
            assert memory.written == ["a"]
            second = memory.progressed
            memory.waiting.append("b")
            remembering.wake()
            await second.wait()
            assert memory.written == ["a", "b"]
            group.cancel_scope.cancel()
