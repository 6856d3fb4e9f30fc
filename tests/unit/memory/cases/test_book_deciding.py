"""What the book decides takes nobody else's time: the loop goes on turning, and a limit cuts it."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from memory.cases import case_dedup, changes, similarity
from tests.support.cases import INCIDENT, OTHER_INCIDENT, CaseWorld, caller, case_world

AGAIN = {**INCIDENT, "symptom_summary": "checkout answers 503 after the deploy (10:42)"}


_AT_MOST_S = 20
"""So long a thread that nobody lets go is there at most."""


class Slow:
    """A decision that takes until it is let go, and says when it began."""

    def __init__(self, decide: Callable[..., Any]) -> None:
        self._decide = decide
        self.began, self._let_go = threading.Event(), threading.Event()
        self.was_on_loop = False

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.began.set()
        if threading.current_thread() is threading.main_thread():
            self.was_on_loop = True  # waiting here would hang for good
        else:
            self._let_go.wait(_AT_MOST_S)
        return self._decide(*args, **named)

    def let_go(self) -> None:
        self._let_go.set()


async def begun(slow: Slow) -> None:
    """Wait for it to begin; the loop has to turn for this to end."""
    await anyio.to_thread.run_sync(slow.began.wait, abandon_on_cancel=True)


async def again(world: CaseWorld, case_id: str) -> None:
    del case_id
    await world.upsert(caller("cnv_2"), **AGAIN)


async def anew(world: CaseWorld, case_id: str) -> None:
    del case_id
    await world.upsert(caller("cnv_2"), **{**INCIDENT, "root_cause": "a broken disk"})


async def rewrite(world: CaseWorld, case_id: str) -> None:
    await world.upsert(caller(), case_id=case_id, resolution="use another pool")


async def vote(world: CaseWorld, case_id: str) -> None:
    await world.vote(caller("cnv_2"), case_id, helpful=True)


@pytest.mark.parametrize(
    ("room", "name", "work"),
    [
        (case_dedup, "fingerprint_of", again),
        (similarity, "numbers", anew),
        (changes, "to_item", again),
        (changes, "to_item", anew),
        (changes, "to_item", rewrite),
        (changes, "to_item", vote),
        (case_dedup, "fingerprint_of", rewrite),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)).rpartition(".")[2],
)
async def test_the_loop_goes_on_turning_while_it_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: Any, name: str, work: Any
) -> None:
    async with case_world(tmp_path) as world:
        case_id = (await world.upsert(caller(), **INCIDENT)).case.case_id
        await world.upsert(caller("cnv_0"), **OTHER_INCIDENT)
        for n in range(2):
            await world.upsert(
                caller(f"cnv_r{n}"), **{**AGAIN, "diagnosis": f"{INCIDENT['diagnosis']} {n}"}
            )
        slow = Slow(getattr(room, name))
        monkeypatch.setattr(room, name, slow)
        try:
            with anyio.fail_after(30):
                async with anyio.create_task_group() as group:
                    group.start_soon(work, world, case_id)
                    await begun(slow)
                    assert not slow.was_on_loop
                    assert (await world.case(case_id)).case_id == case_id
                    slow.let_go()
        finally:
            slow.let_go()
        assert not slow.was_on_loop
