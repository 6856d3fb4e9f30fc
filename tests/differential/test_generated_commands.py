"""Whatever the gate allows is run by a real shell, and afterwards nothing outside was read, written or run."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from policies.paths.workspace import ExtraDirectory
from policies.rules import KNOWN_COMMANDS, shipped_rules
from policies.tools import ToolGate
from policies.verdict import Allow
from tests.differential.commands import command_lines
from tests.differential.throwaway import throwaway_root
from tests.differential.trial import Trial
from tests.differential.yard import Yard
from tests.unit.policies.corpus import fill, read_cases

IN_ORDINARY_RUN = 300
IN_SOAK = 20_000
MOST_BATCHES = 20
LEAST_BATCH = 100
"""The first line of a batch is always the simplest one."""
FOLDERS = ("", "", "", "src", "docs", "项目/子目录", "src/deep")
ALL_COMMANDS = replace(shipped_rules(), commands=KNOWN_COMMANDS)
"""Those that have to be switched on, too."""


@pytest.fixture(scope="module")
def yard() -> Iterator[Yard]:
    with throwaway_root(KNOWN_COMMANDS) as root:
        yield Yard(root, root.yard.parent / "pristine")


@pytest.fixture
def trial(yard: Yard) -> Trial:
    return Trial(ToolGate(yard.root.workspace, rules=ALL_COMMANDS), yard)


def run_many(trial: Trial, count: int) -> None:
    """Generate until so many commands were allowed and run; some come twice and are run once."""
    for batch in range(MOST_BATCHES):
        if len(trial.seen) < count:
            run_batch(trial, max(LEAST_BATCH, count - len(trial.seen)), batch)


def run_batch(trial: Trial, count: int, batch: int) -> None:
    """Each batch has a seed of its own: where Hypothesis finds a CI it starts all of them alike."""
    workspace = str(trial.yard.root.workspace)

    @seed(batch)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(command_lines(workspace), st.sampled_from(FOLDERS))
    def run(command: str, folder: str) -> None:
        assume(trial.run(command, folder))

    run()


@pytest.fixture
def opened(yard: Yard) -> Iterator[Trial]:
    """Where rules open two more directories, one of them for writing."""
    yard.open_to = {"ro": False, "rw": True}
    directories = tuple(
        ExtraDirectory(path=yard.path.resolve() / name, writable=writable)
        for name, writable in yard.open_to.items()
    )
    rules = replace(ALL_COMMANDS, directories=directories)
    yield Trial(ToolGate(yard.root.workspace, rules=rules), yard)
    yard.open_to = {}


LONG = pytest.mark.parametrize(
    "count", [IN_ORDINARY_RUN, pytest.param(IN_SOAK, marks=pytest.mark.soak)], ids=["some", "many"]
)


@LONG
def test_nothing_that_is_allowed_escapes(trial: Trial, count: int) -> None:
    run_many(trial, count)
    assert len(trial.seen) >= count
    assert {f"bash_{name}" for name in KNOWN_COMMANDS} <= trial.rules


@LONG
def test_nothing_that_is_allowed_escapes_from_more_directories(opened: Trial, count: int) -> None:
    run_many(opened, count // 2)
    assert len(opened.seen) >= count // 2


def test_the_honest_cases_run_without_an_escape(trial: Trial) -> None:
    """Some are refused here, because the folders that they take hold something to protect."""
    for case in read_cases("policy-allow.jsonl"):
        if case.tool == "Bash" and case.platform == "posix" and not case.setup:
            trial.run(fill(case.input, trial.yard.root.workspace)["command"])
    assert len(trial.seen) > 50


@pytest.mark.parametrize("command", ["cat ../outside.txt", "cp a.txt out/x", "ls -la ..", "id"])
def test_a_hole_in_the_gate_is_found(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """With a gate that lets one bad command through, whatever it was asked about, the trial fails."""

    def lets_through(*_: object) -> Allow:
        return Allow("hole", "A hole.", {"command": command})

    monkeypatch.setattr(ToolGate, "judge", lets_through)
    with pytest.raises(AssertionError, match="allowed:"):
        run_many(trial, 5)
