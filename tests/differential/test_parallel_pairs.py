"""Two conversations on one workspace, one of which swaps what the other one changes: nothing outside changes.

The gate, the policy, the lock and the commands are real; the moments are chosen so that the other
conversation does all that it is allowed to between two steps of the first.
`tests/e2e/test_parallel_pairs.py` runs the same pairs through agent processes.
"""

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.lowlevel
import pytest

from gateway.turns.approval_answer import Answer
from gateway.turns.approval_views import AskReason
from gateway.turns.workspace_lock import WorkspaceLock
from policies.calls import ToolCall
from policies.paths.trees import TreeInspector
from policies.tools import ToolGate
from policies.verdict import Allow, Deny
from tests.support.engine_talk import until
from tests.support.parallel_pairs import KINDS, Call, Ground, Kind
from tests.support.turn_gates import READS, Gate

Moment = Literal["before the last verdict", "while a person is asked", "before it runs"]

MOMENTS: Sequence[tuple[Moment, bool]] = [
    ("before it runs", False),
    ("before the last verdict", False),
    ("while a person is asked", True),
    ("before it runs", True),
]
"""When the other conversation acts, and whether approvals are on."""
MANY = pytest.param(500, marks=pytest.mark.soak)
AT_ALL_MOMENTS = pytest.mark.parametrize("count", [len(MOMENTS), MANY], ids=["some", "many"])
AT_THE_FIRST = pytest.mark.parametrize("count", [1, MANY], ids=["one", "many"])


class Unlocked(WorkspaceLock):
    """A lock that keeps nobody out."""

    async def acquire(self, holder: object) -> bool:
        del holder
        await anyio.lowlevel.checkpoint()
        return True

    def release(self, holder: object) -> None:
        pass


def run_blocking(workspace: Path, name: str, given: Mapping[str, Any]) -> None:
    """Do what a tool does, as the agent program would."""
    if name == "Bash":
        line = f"shopt -u extglob; eval {shlex.quote(given['command'])}"
        subprocess.run(["/bin/bash", "-c", line], cwd=workspace, capture_output=True, check=False)
        return
    file = Path(given.get("file_path") or given["notebook_path"])
    try:
        old = given.get("old_string", "as it was")
        text = given.get("content") or file.read_text("utf-8").replace(old, "as it is now")
        file.write_text(text, encoding="utf-8")
    except OSError:
        pass  # the other conversation took it away


class Conversation:
    """One conversation's turn: its gate, and its calls."""

    def __init__(self, ground: Ground, lock: WorkspaceLock, *, asks: bool) -> None:
        self.gate = Gate(READS, lock, asks=asks)
        self.gate.policy = ToolGate(ground.workspace)
        self.workspace = ground.workspace
        self._calls = 0

    async def judge(self, call: Call, folder: Path) -> ToolCall | None:
        """Return a call that the hook does not deny."""
        self._calls += 1
        step = call.at(folder)
        asked = ToolCall(
            name=step["tool"],
            input=step["input"],
            cwd=str(self.workspace),
            tool_use_id=f"t{self._calls}",
            index=self._calls,
        )
        return None if isinstance(await self.gate.judge(asked), Deny) else asked

    async def run(self, call: ToolCall, allowed: Allow) -> None:
        """Run a call as the verdict says, to its end."""
        given = call.input if allowed.updated_input is None else allowed.updated_input
        work = partial(run_blocking, self.workspace, call.name, given)
        await anyio.to_thread.run_sync(work)
        self.gate.returned(call.index)

    async def do(self, calls: Sequence[Call], folder: Path) -> None:
        """Make calls from the first verdict to the end."""
        for call in calls:
            asked = await self.judge(call, folder)
            verdict = None if asked is None else await self.gate.decide(asked)
            if asked is not None and isinstance(verdict, Allow):
                await self.run(asked, verdict)


async def race(
    ground: Ground, lock: WorkspaceLock, kind: Kind, folder: Path, moment: Moment, *, asks: bool
) -> bool:
    """Run the other conversation at a moment of a call; return whether the call was allowed."""
    one, other = (Conversation(ground, lock, asks=asks) for _ in range(2))
    swap = partial(other.do, kind.swaps, folder)
    person = one.gate.person

    async def answer_late(call: ToolCall, effect: Any, why: AskReason) -> Answer:
        await swap()
        return await person(call, effect)

    if moment == "while a person is asked":
        one.gate.asker = answer_late
    asked = await one.judge(kind.change, folder)
    assert asked is not None
    if moment == "before the last verdict":
        await swap()
    verdict = await one.gate.decide(asked)
    if isinstance(verdict, Deny):
        return False
    has_swapped = anyio.Event()

    async def act() -> None:
        if moment == "before it runs":
            await swap()
        has_swapped.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(act)
        await until(lambda: has_swapped.is_set() or lock.waiting > 0)
        await one.run(asked, verdict)
    return True


async def races(
    root: Path, kind: Kind, count: int, *, lock: WorkspaceLock | None = None
) -> tuple[list[str], int]:
    """Run so many pairs; return what changed outside, and how many of the calls were allowed."""
    ground, lock = Ground(root), lock or WorkspaceLock()
    effects: list[str] = []
    allowed = 0
    for number, (moment, asks) in enumerate(islice(cycle(MOMENTS), count)):
        folder = await anyio.to_thread.run_sync(ground.lay_blocking, number)
        allowed += await race(ground, lock, kind, folder, moment, asks=asks)
        found = await anyio.to_thread.run_sync(ground.effects_blocking, number)
        effects += [f"{moment}, approvals {asks}: {name}" for name in found]
    return effects, allowed


@pytest.fixture
def any_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow links and hard links to be moved."""
    monkeypatch.setattr(TreeInspector, "inspect_move", TreeInspector.inspect_landing)


@AT_ALL_MOMENTS
@pytest.mark.parametrize("name", KINDS)
async def test_no_pair_changes_anything_outside(tmp_path: Path, name: str, count: int) -> None:
    effects, allowed = await races(tmp_path, KINDS[name], count)
    assert effects == []
    assert allowed > 0


@AT_ALL_MOMENTS
@pytest.mark.usefixtures("any_move")
@pytest.mark.parametrize("name", KINDS)
async def test_none_does_by_the_lock_and_the_last_verdict_alone(
    tmp_path: Path, name: str, count: int
) -> None:
    effects, allowed = await races(tmp_path, KINDS[name], count)
    assert effects == []
    assert 0 < allowed < count, "those that the other one was quicker than are denied"


@AT_THE_FIRST
@pytest.mark.parametrize("name", KINDS)
async def test_none_does_by_the_refused_moves_alone(tmp_path: Path, name: str, count: int) -> None:
    effects, _ = await races(tmp_path, KINDS[name], count, lock=Unlocked())
    assert effects == []


@pytest.mark.usefixtures("any_move")
@pytest.mark.parametrize("name", KINDS)
async def test_without_both_each_pair_changes_something_outside(tmp_path: Path, name: str) -> None:
    effects, _ = await races(tmp_path, KINDS[name], 1, lock=Unlocked())
    assert effects != []
