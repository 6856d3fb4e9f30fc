"""One server on a data directory."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway import instance
from gateway.errors import StartError
from gateway.instance import InstanceLock, holder_of, machine_memory_bytes

ROOT = Path(__file__).resolve().parents[4]
HOLDER = """
import sys
from pathlib import Path
from gateway.instance import InstanceLock
lock = InstanceLock(Path(sys.argv[1]))
lock.take()
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_server(directory: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_server_is_refused_by_the_firsts_name_and_without_a_path(tmp_path: Path) -> None:
    with another_server(tmp_path) as other:
        lock = InstanceLock(tmp_path)
        with pytest.raises(StartError) as caught:
            lock.take()
        assert f"process {other.pid} on {socket.gethostname()}" in str(caught.value)
        assert "/" not in str(caught.value)
        assert "CANDOR_DATA_DIR" in str(caught.value)


def test_a_removed_lock_file_lets_no_second_server_in(tmp_path: Path) -> None:
    with another_server(tmp_path):
        (tmp_path / "server.lock").unlink()
        with pytest.raises(StartError, match="Another Candor server"):
            InstanceLock(tmp_path).take()


def test_a_refused_server_leaves_the_holders_name(tmp_path: Path) -> None:
    with another_server(tmp_path) as other:
        for _ in range(2):
            with pytest.raises(StartError, match=f"process {other.pid} "):
                InstanceLock(tmp_path).take()


def test_a_killed_server_holds_nothing(tmp_path: Path) -> None:
    with another_server(tmp_path) as other:
        other.kill()
        other.wait(30)
        lock = InstanceLock(tmp_path)
        lock.take()
        with pytest.raises(StartError, match=f"process {os.getpid()} ") as caught:
            InstanceLock(tmp_path).take()
        assert f"process {other.pid} " not in str(caught.value)
        lock.close()


def test_close_lets_go_and_may_be_called_again(tmp_path: Path) -> None:
    for _ in range(3):
        lock = InstanceLock(tmp_path)
        lock.take()
        lock.close()
        lock.close()


def test_two_directories_are_two_servers(tmp_path: Path) -> None:
    locks = []
    for name in ("a", "数据"):
        (tmp_path / name).mkdir()
        locks.append(InstanceLock(tmp_path / name))
        locks[-1].take()
    for lock in locks:
        lock.close()


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    """Agent processes may outlive a killed server; they must not keep its directory."""
    lock = InstanceLock(tmp_path)
    lock.take()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        lock.close()
        again = InstanceLock(tmp_path)
        again.take()
        again.close()
        child.communicate(b"\n")


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_directory_that_cannot_be_written_is_a_sentence(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "file":
        place.write_text("", encoding="utf-8")
    with pytest.raises(StartError) as caught:
        InstanceLock(place)
    assert str(tmp_path) not in str(caught.value)


def test_an_unnamed_holder_is_another_process(tmp_path: Path) -> None:
    with another_server(tmp_path):
        (tmp_path / "server.lock").write_text("", encoding="utf-8")
        with pytest.raises(StartError, match="another process"):
            InstanceLock(tmp_path).take()


def test_the_machine_has_memory() -> None:
    assert machine_memory_bytes() > 64 * 1024 * 1024


def test_a_look_names_the_holder_and_leaves_the_lock_with_it(tmp_path: Path) -> None:
    assert holder_of(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    lock = InstanceLock(tmp_path)
    lock.take()
    for _ in range(2):
        assert str(holder_of(tmp_path)).startswith(f"process {os.getpid()} on ")
    with pytest.raises(StartError, match=f"process {os.getpid()} "):
        InstanceLock(tmp_path).take()
    lock.close()
    before = (tmp_path / "server.lock").read_bytes()
    assert holder_of(tmp_path) is None
    assert (tmp_path / "server.lock").read_bytes() == before
    again = InstanceLock(tmp_path)
    again.take()
    again.close()


def test_an_unnamed_holder_is_another_process_to_a_look_too(tmp_path: Path) -> None:
    lock = InstanceLock(tmp_path)
    lock.take()
    (tmp_path / "server.lock").write_text("", encoding="utf-8")
    assert holder_of(tmp_path) == "another process"
    lock.close()


def test_a_start_in_the_moment_of_somebodys_look_is_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, starting = InstanceLock(tmp_path), InstanceLock(tmp_path)
    looking.take()
    monkeypatch.setattr(instance, "sleep", lambda _: looking.close())
    starting.take()
    assert str(holder_of(tmp_path)).startswith(f"process {os.getpid()} on ")
    starting.close()


def test_a_start_waits_for_a_server_only_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps: list[float] = []
    lock = InstanceLock(tmp_path)
    lock.take()
    monkeypatch.setattr(instance, "sleep", naps.append)
    with pytest.raises(StartError):
        InstanceLock(tmp_path).take()
    assert 0.1 < sum(naps) < 1
    lock.close()


def test_two_may_look_at_once(tmp_path: Path) -> None:
    InstanceLock(tmp_path).close()
    with (tmp_path / "server.lock").open(encoding="utf-8") as other:
        assert instance._lock(other.fileno(), shared=True)  # noqa: SLF001  a look in its middle
        assert holder_of(tmp_path) is None
