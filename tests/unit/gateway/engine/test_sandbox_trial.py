"""The trial itself, on real children: it sees what gets out, and leaves nothing behind."""

import os
from pathlib import Path

import pytest

from gateway.engine.processes import launch_words
from gateway.engine.sandbox import protection, trial
from gateway.engine.sandbox.places import AgentPlaces
from gateway.engine.sandbox.trial import Outcome, attempt_blocking
from tests.support.walls import needs_landlock, needs_own_mounts

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the trial is a shell's")

FREE = Outcome(
    ran=True, writes_outside=True, reads_outside=True, changes_outside=True, works_inside=True
)


def test_a_child_without_a_wall_does_everything(tmp_path: Path) -> None:
    inside = tmp_path / "my work"
    inside.mkdir()
    assert attempt_blocking([], tmp_path, [inside]) == FREE
    assert attempt_blocking(launch_words(os.getpid(), []), tmp_path, [inside]) == FREE
    assert [path.name for path in tmp_path.rglob("*")] == ["my work"]


def test_a_place_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = attempt_blocking([], tmp_path, [tmp_path, tmp_path / "file"])
    assert (found.ran, found.works_inside) == (True, False)


@pytest.mark.parametrize("before", [["/no/such/program"], ["false"], ["sleep", "300"]])
def test_a_child_that_does_not_come_to_its_end_has_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: list[str]
) -> None:
    monkeypatch.setattr(trial, "_DEADLINE_S", 0.2)
    assert not attempt_blocking(before, tmp_path, [tmp_path]).ran


@needs_landlock
@needs_own_mounts
def test_behind_the_wall_it_does_nothing_outside(tmp_path: Path) -> None:
    from gateway.engine.sandbox import landlock  # noqa: PLC0415  its library is for Linux

    workspace, own = tmp_path / "it's ws: $HOME", tmp_path / "own"
    workspace.mkdir()
    own.mkdir()
    places = AgentPlaces(program=Path("/bin/sh"), workspace=workspace, own=(own,))
    rules = landlock.landlock_words(places, landlock.landlock_version())
    outcomes = [
        attempt_blocking(launch_words(os.getpid(), words), tmp_path, [workspace, own])
        for words in (rules, [*landlock.mount_words(places), *rules])
    ]
    kept = {"ran": True, "writes_outside": False, "reads_outside": False, "works_inside": True}
    assert outcomes == [Outcome(**kept, changes_outside=changes) for changes in (True, False)]


def test_without_bubblewrap_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    fault = protection.find_bubblewrap_fault_blocking(tmp_path, tmp_path)
    assert fault == "bubblewrap and socat are not installed"


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("exit 1", "bubblewrap cannot start a program here"),
        (
            'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
            "bubblewrap does not keep a program in the workspace here",
        ),
    ],
)
def test_a_bubblewrap_that_keeps_nothing_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, fault: str
) -> None:
    for name in ("bwrap", "socat"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}\n", "ascii")
        program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    assert protection.find_bubblewrap_fault_blocking(tmp_path, tmp_path) == fault


def test_what_a_killed_trial_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".candor-trial").touch()
    assert not attempt_blocking(["false"], tmp_path, [tmp_path]).ran
    assert list(tmp_path.iterdir()) == []
