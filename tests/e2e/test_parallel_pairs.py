"""Pairs of calls of two agent processes at once, behind the kernel's wall and without it: nothing outside changes.

`tests/differential/test_parallel_pairs.py` runs the same pairs at chosen moments.
"""

import math
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.engine.client import SdkClient
from gateway.turns.approval_answer import Answer
from gateway.turns.approval_views import AskReason
from gateway.turns.gate import TurnGate
from gateway.turns.workspace_lock import WorkspaceLock
from policies.calls import ToolCall
from policies.paths.trees import TreeInspector
from policies.permits import Effect
from policies.tools import ToolGate
from policies.verdict import Allow, Verdict
from tests.support.engine_talk import ask, script
from tests.support.engine_world import RealWorld, real_world, walled_world
from tests.support.parallel_pairs import KINDS, Ground, Kind
from tests.support.turn_gates import READS, Gate
from tests.support.walls import needs_landlock

pytestmark = pytest.mark.e2e

TOOLS = ("Read", "Write", "Edit", "NotebookEdit", "Bash", "Skill")
IN_A_TURN = 16
"""Pairs of one turn of each conversation."""
IN_A_SESSION = 5 * IN_A_TURN
"""The model gets all that was said in a session."""
OF_EACH = 500
MANY = (
    *("copy, hard link", "copy, link", "write, hard link", "edit, hard link"),
    *("edit, folder", "write, folder", "remove, folder"),
)
"""The kinds of which many pairs are played."""

_NUMBER = re.compile(r"/p(\d+)/")


class Meeting:
    """Where two conversations are, so that they make the calls of a pair at once."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], float] = {}
        self._changed = anyio.Event()

    def reach(self, side: str, what: str, number: float) -> None:
        """Record that a side has reached a step of a pair."""
        self._at[side, what] = max(number, self._at.get((side, what), -1))
        self._changed.set()
        self._changed = anyio.Event()

    def end(self, side: str) -> None:
        """Record that a side has finished its pairs."""
        for what in ("pair", "question"):
            self.reach(side, what, math.inf)

    async def wait_for(self, number: int, *places: tuple[str, str]) -> None:
        """Wait until a side has come so far in one of these."""
        while all(self._at.get(place, -1) < number for place in places):
            await self._changed.wait()


class MeetingGate(Gate):
    """The gate of one of the two, `changes` or `swaps`: they begin each pair together.

    The person who is asked about the change answers when the other conversation has done what it
    may.
    """

    def __init__(self, side: str, scene: "Scene", meeting: Meeting, *, asks: bool) -> None:
        super().__init__(READS, scene.lock, asks=asks)
        self.policy = ToolGate(scene.ground.workspace)
        self.asker = self._answer
        self._side, self._meeting = side, meeting

    async def judge(self, call: ToolCall) -> Verdict:
        number = _number_of(call)
        self._meeting.reach(self._side, "pair", number)
        await self._meeting.wait_for(number, (_other(self._side), "pair"))
        return await super().judge(call)

    def end(self) -> None:
        """End the conversation's turn."""
        self.end_run()
        self._meeting.end(self._side)

    async def _answer(self, call: ToolCall, effect: Effect, why: AskReason) -> Answer:
        del effect
        number = _number_of(call)
        self._meeting.reach(self._side, "question", number)
        if self._side == "changes":
            await self._meeting.wait_for(number + 1, ("swaps", "pair"))
        else:
            await self._meeting.wait_for(number, ("changes", "question"))
        return Answer(decision="allow", by="user")


def _other(side: str) -> str:
    return "swaps" if side == "changes" else "changes"


def _number_of(call: ToolCall) -> int:
    found = _NUMBER.search(" ".join(map(str, call.input.values())))
    assert found is not None, call
    return int(found[1])


@dataclass
class Scene:
    """Two agents on one workspace."""

    ground: Ground
    world: RealWorld
    lock: WorkspaceLock = field(default_factory=WorkspaceLock)
    played: int = 0
    allowed: int = 0
    """How many calls that change something were allowed."""
    clients: Mapping[str, SdkClient] = field(default_factory=dict)
    _in_session: int = 0

    async def _connect(self) -> None:
        """Connect agents, which remember nothing of the pairs before."""
        self._in_session = 0
        for client in self.clients.values():
            await client.close()
        self.clients = {side: await self.world.connect() for side in ("changes", "swaps")}

    async def play(self, kinds: Sequence[Kind], *, asks: bool) -> list[str]:
        """Play a pair of each of these kinds; return what has changed outside."""
        effects: list[str] = []
        for start in range(0, len(kinds), IN_A_TURN):
            if not self.clients or self._in_session >= IN_A_SESSION:
                await self._connect()
            effects += await self._play_turn(kinds[start : start + IN_A_TURN], asks=asks)
        return effects

    async def _play_turn(self, kinds: Sequence[Kind], *, asks: bool) -> list[str]:
        numbers = range(self.played, self.played + len(kinds))
        self.played += len(kinds)
        self._in_session += len(kinds)
        steps: dict[str, list[dict[str, Any]]] = {"changes": [], "swaps": []}
        for number, kind in zip(numbers, kinds, strict=True):
            folder = await anyio.to_thread.run_sync(self.ground.lay_blocking, number)
            if kind.reads is not None:
                read = {"file_path": str(folder / kind.reads)}
                steps["changes"].append({"tool": "Read", "input": read})
            steps["changes"].append(kind.change.at(folder))
            steps["swaps"] += [swap.at(folder) for swap in kind.swaps]
        meeting = Meeting()
        async with anyio.create_task_group() as tasks:
            for side, client in self.clients.items():
                gate = MeetingGate(side, self, meeting, asks=asks)
                tasks.start_soon(self._converse, client, script(*steps[side]), gate)
        return [
            f"{number}: {name}"
            for number in numbers
            for name in await anyio.to_thread.run_sync(self.ground.effects_blocking, number)
        ]

    async def _converse(self, client: SdkClient, message: str, gate: "MeetingGate") -> None:
        await ask(client, message, gate)
        gate.end()
        self.allowed += sum(
            isinstance(verdict, Allow) and verdict.changes for _, verdict in gate.lines
        )


@asynccontextmanager
async def scene(root: Path, *, is_walled: bool) -> AsyncIterator[Scene]:
    """Set the scene; open it in the test's body."""
    if not is_walled:
        async with real_world(root, tools=TOOLS) as world:
            yield Scene(Ground(root), world)
        return
    async with walled_world(root, tools=TOOLS) as (world, wall):
        assert wall.kind == "landlock"
        yield Scene(Ground(root), world)


async def let_run(gate: TurnGate, call: ToolCall, verdict: Verdict, allowed: Allow) -> Allow:
    """Stand in for the lock and the last verdict."""
    del gate, call, verdict
    await anyio.lowlevel.checkpoint()
    return allowed


@needs_landlock
async def test_no_pair_of_agents_changes_anything_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although links and hard links may be moved here; without the lock and the last verdict some do."""
    async with scene(tmp_path, is_walled=True) as there:
        monkeypatch.setattr(TreeInspector, "inspect_move", TreeInspector.inspect_landing)
        kinds = list(KINDS.values())[::2]  # half of them: a pair costs 0.2 s
        assert await there.play(kinds, asks=False) == []
        assert there.allowed >= len(kinds)
        monkeypatch.setattr(TurnGate, "_before_running", let_run)
        found = await there.play([KINDS["copy, hard link"]], asks=True)
        assert found == [f"{len(kinds)}: victim.txt"]


@pytest.mark.soak
@pytest.mark.parametrize(
    "is_walled", [False, pytest.param(True, marks=needs_landlock)], ids=["no wall", "wall"]
)
@pytest.mark.parametrize("name", MANY)
async def test_of_many_pairs_of_agents_none_changes_anything_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, is_walled: bool
) -> None:
    """As shipped, and where links and hard links may be moved; with approvals and without."""
    kinds = [KINDS[name]] * (OF_EACH // 4)
    async with scene(tmp_path, is_walled=is_walled) as there:
        for asks in (False, True):
            assert await there.play(kinds, asks=asks) == []
        monkeypatch.setattr(TreeInspector, "inspect_move", TreeInspector.inspect_landing)
        for asks in (False, True):
            assert await there.play(kinds, asks=asks) == []
        assert (there.played, there.allowed >= OF_EACH) == (OF_EACH, True)
