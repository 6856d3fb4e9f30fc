"""Finding and ending processes, on harmless real ones."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from gateway.engine import processes
from gateway.engine.processes import MARK

LAUNCHED = "import os, sys; print(os.getsid(0) == os.getpid(), os.getppid(), sys.argv[1:])"


@contextmanager
def started(*command: str, mark: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, **({} if mark is None else {MARK: mark})}
    process = subprocess.Popen(command, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_the_owner_is_the_data_directory_however_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    plain = processes.owner_of(tmp_path / "data")
    assert processes.owner_of(tmp_path / "link") == plain
    assert processes.owner_of(tmp_path / "data" / ".." / "data") == plain
    assert processes.owner_of(tmp_path) != plain
    assert ":" not in plain


def test_a_child_runs_until_it_has_ended_whoever_waited_for_it() -> None:
    with started("sleep", "300") as child:
        assert processes.is_running(child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not processes.is_running(child.pid)  # a zombie
        child.wait()
        assert not processes.is_running(child.pid)


async def test_whether_it_runs_may_be_asked_on_the_loop() -> None:
    """The guard against blocking calls is on in this test."""
    await anyio.lowlevel.checkpoint()
    assert not processes.is_running(os.getpid() + 1_000_000)


def test_killing_takes_the_mark_and_what_is_known_and_leaves_the_exit_code_to_its_owner() -> None:
    with (
        started("sleep", "300", mark="o:one") as marked,
        started("sleep", "300") as known,
        started("sleep", "300", mark="o:oneandmore") as other,
    ):
        assert processes.kill_client_blocking("o:one", [psutil.Process(known.pid)]) == 2
        assert (marked.wait(30), known.wait(30)) == (-9, -9)
        assert other.poll() is None
        assert processes.kill_client_blocking("o:one") == 0


def test_a_process_with_the_id_of_one_that_was_listed_earlier_is_killed() -> None:
    with started("sleep", "300", mark="o:again") as child:
        for listed in psutil.process_iter():
            if listed.pid == child.pid:
                listed._ident = (child.pid, 0.0)  # type: ignore[attr-defined]  # noqa: SLF001
        assert processes.kill_client_blocking("o:again") == 1
        assert child.wait(30) == -9


def test_memory_is_that_of_the_whole_tree() -> None:
    large = "x = b'a' * 50_000_000; import time; time.sleep(300)"
    small = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {large!r}])"
    with started(sys.executable, "-c", small) as process:
        tree = psutil.Process(process.pid)
        while not (children := tree.children()):
            pass
        (child,) = children
        try:
            while child.memory_info().rss < 40_000_000:
                pass
            large_one = processes.memory_bytes_blocking(child)
            assert processes.memory_bytes_blocking(tree) > large_one > 30_000_000
        finally:
            child.kill()
    assert processes.memory_bytes_blocking(tree) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists a process's children")
def test_measuring_memory_reads_no_foreign_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("all processes were read")

    with started("sh", "-c", "sleep 300 & wait") as process:
        tree = psutil.Process(process.pid)
        while not (children := tree.children()):
            pass
        try:
            monkeypatch.setattr(psutil.Process, "children", refuse)
            monkeypatch.setattr(psutil, "pids", refuse)
            child = processes.memory_bytes_blocking(children[0])
            assert processes.memory_bytes_blocking(tree) > child > 0
        finally:
            children[0].kill()


def test_the_launcher_becomes_the_agent_in_a_session_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "folder" $HOME'
    folder.mkdir()
    agent = folder / "agent.py"
    agent.write_text(f"#!{sys.executable}\n{LAUNCHED}\n", encoding="utf-8")
    agent.chmod(0o700)
    start = processes.launch_script_blocking(folder, agent)
    env = {"AGENT_KEEPS_OF_CANDOR": "", "PATH": os.defpath}
    for _ in range(2):  # it is written anew at every start
        told = subprocess.run(
            [start, "--one", "two words"], check=True, capture_output=True, text=True, env=env
        )
        assert told.stdout.strip() == f"True {os.getpid()} ['--one', 'two words']"
        assert processes.launch_script_blocking(folder, agent) == start
    assert sorted(entry.name for entry in folder.iterdir()) == ["agent.py", "start-agent"]


def test_processes_that_cannot_be_listed_are_not_taken_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults = [OSError(errno.EMFILE, "Too many open files") for _ in range(3)]
    real = psutil.process_iter

    def process_iter() -> Iterator[psutil.Process]:
        if faults:
            raise faults.pop()
        return real()

    monkeypatch.setattr(psutil, "process_iter", process_iter)
    monkeypatch.setattr(processes, "_LIST_AGAIN_S", 0)
    with started("sleep", "300", mark="o:listed") as child:
        assert processes.kill_client_blocking("o:listed") == 1
        assert child.wait(30) == -9
    faults += [OSError(errno.EMFILE, "Too many open files") for _ in range(1000)]
    with pytest.raises(OSError, match="Too many"):
        processes.kill_client_blocking("o:listed")


def test_a_mark_that_cannot_be_read_is_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    unreadable: list[int] = []
    real = psutil.Process.environ

    def environ(process: psutil.Process) -> dict[str, str]:
        if process.pid in unreadable:
            unreadable.remove(process.pid)
            raise OSError(errno.EMFILE, "Too many open files")
        return real(process)

    monkeypatch.setattr(psutil.Process, "environ", environ)
    with started("sleep", "300", mark="o:read") as child:
        unreadable.append(child.pid)
        assert processes.kill_client_blocking("o:read") == 1
        assert child.wait(30) == -9
