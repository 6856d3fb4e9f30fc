"""The launcher as the program that it is: what it forbids holds, and what it cannot do ends the start."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from gateway.engine import launcher
from gateway.engine.environment import KEEPS
from gateway.engine.processes import launch_words
from tests.support.walls import needs_landlock, needs_own_mounts

pytestmark = needs_landlock

ROOT = Path(__file__).parents[4]
_ALL = f"handle:{(1 << 16) - 1}:0:0"
_READ_AND_RUN = 0b1101
_ALL_RIGHTS = (1 << 16) - 1


def launch(
    words: Sequence[str], *command: str, cwd: Path, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*launch_words(os.getpid(), words), *command],
        cwd=cwd,
        env={"PATH": os.defpath, "KEY": "secret", **(environ or {KEEPS: "PATH MARK"})},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def system() -> list[str]:
    paths = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/nix/store")
    return [f"path:{_READ_AND_RUN}:{path}" for path in paths]


def test_a_leave_for_one_file_is_for_that_file(tmp_path: Path) -> None:
    """Rights that only directories have are left out, or the kernel would refuse it; so are places that
    are not there.
    """
    for name in ("a", "b"):
        (tmp_path / name).write_text("alpha", "ascii")
    assert launch([], "/bin/cat", "b", cwd=tmp_path).stdout == "alpha"  # no words, no wall
    words = [_ALL, *system(), f"path:{_ALL_RIGHTS}:{tmp_path}/a", "path:4:/no/such/place"]
    assert launch(words, "/bin/cat", "a", cwd=tmp_path).stdout == "alpha"
    done = launch(words, "/bin/cat", "b", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize(
    "word", ["handle:1:0:4096", "path:65536:/usr", "port:64:443", "writable:/no/such/place"]
)
def test_what_cannot_be_done_ends_the_start(tmp_path: Path, word: str) -> None:
    words = [word] if word.startswith("handle") else [_ALL, *system(), word]
    done = launch(words, "/bin/sh", "-c", "touch ran", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("The kernel's wall could not be raised (")
    assert done.stderr.endswith("; the agent is not started.\n")
    assert list(tmp_path.iterdir()) == []


@needs_own_mounts
def test_the_mounts_are_the_agents_own(tmp_path: Path) -> None:
    """Nobody else sees them, and its working directory is the writable one."""
    (tmp_path / "ws").mkdir()
    words = [f"writable:{tmp_path}/ws"]
    done = launch(words, "/bin/sh", "-c", "touch ../out; touch in; pwd", cwd=tmp_path / "ws")
    assert "Read-only file system" in done.stderr
    assert done.stdout == f"{tmp_path}/ws\n"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "ws"]
    (tmp_path / "out").touch()


def test_root_keeps_the_powers_over_files_alone_and_others_have_none(tmp_path: Path) -> None:
    words = [_ALL, *system(), "path:12:/proc"]
    done = launch(words, "/bin/cat", "/proc/self/status", cwd=tmp_path)
    told = dict(line.split(":\t", 1) for line in done.stdout.splitlines())
    assert told["CapEff"].lstrip("0") == ("1f" if os.geteuid() == 0 else "")
    assert told["NoNewPrivs"] == "1"


def test_the_environment_is_what_is_kept_of_it_and_without_the_list_nothing_starts(
    tmp_path: Path,
) -> None:
    assert launcher.KEEPS == KEEPS
    done = launch([], "/bin/sh", "-c", "touch ran", cwd=tmp_path, environ={"MARK": "o:1"})
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
    assert done.stderr == (
        "AGENT_KEEPS_OF_CANDOR does not say what the agent may know; the agent is not started.\n"
    )
    given = {KEEPS: "MARK EMPTY MISSING", "MARK": "o:1", "EMPTY": "", "OTHER": "no"}
    done = launch([], "/usr/bin/env", cwd=tmp_path, environ=given)
    assert sorted(done.stdout.splitlines()) == ["EMPTY=", "MARK=o:1"]


_AS_A_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
_SERVER = """
import os, subprocess, sys
from gateway.engine.processes import launch_words
assert os.getuid() == 1000
words = sys.argv[1:]
child = subprocess.Popen([*launch_words(os.getpid(), words), "/bin/sleep", "300"],
                         env={"AGENT_KEEPS_OF_CANDOR": ""}, stdout=subprocess.PIPE)
print(child.pid, flush=True)
sys.stdin.read()
"""


@needs_own_mounts
def test_an_agent_of_a_user_dies_with_the_server_too(tmp_path: Path) -> None:
    """Who is not root gets a user namespace on the way; what was asked of the kernel must outlast it."""
    (tmp_path / "ws").mkdir()
    words = [f"writable:{tmp_path}/ws", _ALL, *system()]
    with subprocess.Popen(
        [*_AS_A_USER, sys.executable, "-c", _SERVER, *words],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        agent = psutil.Process(int(server.stdout.readline()))
        while agent.name() != "sleep":  # the launcher has done its work
            assert agent.status() != psutil.STATUS_ZOMBIE
        server.kill()
    _, alive = psutil.wait_procs([agent], timeout=60)
    for item in alive:
        item.kill()
    assert not alive
