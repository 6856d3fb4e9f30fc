"""One server on a data directory."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from gateway import instance
from gateway.errors import StartError
from gateway.instance import InstanceLock, holder_of, node_of_blocking

ROOT = Path(__file__).resolve().parents[4]
HOLDER = """
import sys
from pathlib import Path
from gateway.instance import InstanceLock
lock = InstanceLock(Path(sys.argv[1]))
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


@contextmanager
def taken(directory: Path) -> Iterator[InstanceLock]:
    lock = InstanceLock(directory)
    yield lock
    lock.close()


def refusal_of(directory: Path) -> str:
    """Return why a server cannot start on a directory."""
    with pytest.raises(StartError) as caught:
        InstanceLock(directory)
    return str(caught.value)


def test_a_second_server_is_refused_by_the_firsts_name_and_without_a_path(tmp_path: Path) -> None:
    with another_server(tmp_path) as other:
        for _ in range(2):
            said = refusal_of(tmp_path)
            assert f"process {other.pid} on {socket.gethostname()}" in said
            assert "/" not in said
            assert "CANDOR_DATA_DIR" in said
        (tmp_path / "server.lock").write_text("", encoding="utf-8")
        assert "another process" in refusal_of(tmp_path)
        assert holder_of(tmp_path) == "another process"
        (tmp_path / "server.lock").unlink()
        assert "Another Candor server" in refusal_of(tmp_path)
        other.kill()
        other.wait(30)
        with taken(tmp_path):
            assert f"process {os.getpid()} " in refusal_of(tmp_path)


def test_close_lets_go_and_may_be_called_again(tmp_path: Path) -> None:
    for _ in range(3):
        with taken(tmp_path) as lock:
            lock.close()


def test_two_directories_are_two_servers(tmp_path: Path) -> None:
    for name in ("a", "数据"):
        (tmp_path / name).mkdir()
    with taken(tmp_path / "a"), taken(tmp_path / "数据"):
        assert holder_of(tmp_path / "a") == holder_of(tmp_path / "数据") is not None


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    """Agent processes may outlive a killed server; they must not keep its directory."""
    with taken(tmp_path) as lock:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        lock.close()
        with child, taken(tmp_path):
            child.communicate(b"\n")


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_directory_that_cannot_be_written_is_a_sentence(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "file":
        place.write_text("", encoding="utf-8")
    with pytest.raises(StartError) as caught:
        InstanceLock(place)
    assert str(tmp_path) not in str(caught.value)


def test_a_look_names_the_holder_and_leaves_the_lock_with_it(tmp_path: Path) -> None:
    assert holder_of(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    with taken(tmp_path):
        for _ in range(2):
            assert str(holder_of(tmp_path)).startswith(f"process {os.getpid()} on ")
        assert f"process {os.getpid()} " in refusal_of(tmp_path)
    before = (tmp_path / "server.lock").read_bytes()
    assert holder_of(tmp_path) is None
    assert (tmp_path / "server.lock").read_bytes() == before
    with taken(tmp_path), pytest.raises(StartError):
        InstanceLock(tmp_path)


def test_a_start_waits_a_moment_for_somebodys_look_and_only_so_long_for_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    naps: list[float] = []
    with taken(tmp_path) as looking:
        monkeypatch.setattr(instance, "sleep", naps.append)
        refusal_of(tmp_path)
        assert 0.1 < sum(naps) < 1
        monkeypatch.setattr(instance, "sleep", lambda _: looking.close())
        with taken(tmp_path):
            assert str(holder_of(tmp_path)).startswith(f"process {os.getpid()} on ")


def test_two_may_look_at_once(tmp_path: Path) -> None:
    InstanceLock(tmp_path).close()
    with (tmp_path / "server.lock").open(encoding="utf-8") as other:
        assert instance._lock(other.fileno(), shared=True)  # noqa: SLF001  a look in its middle
        assert holder_of(tmp_path) is None


def test_only_its_owner_reads_the_lock(tmp_path: Path) -> None:
    file = tmp_path / "server.lock"
    for _ in range(2):
        InstanceLock(tmp_path).close()
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o644)  # as an earlier release left it


def test_a_data_directory_keeps_the_id_of_its_server(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for directory in (one, two):
        directory.mkdir()
    node_of = partial(node_of_blocking, engine="postgresql")
    known = node_of(one)
    assert node_of(one) == known
    assert node_of(two) != known
    (one / "node").write_text("", encoding="utf-8")
    assert node_of(one) not in {"", known}


def test_where_one_server_has_the_database_no_id_is_stored(tmp_path: Path) -> None:
    assert node_of_blocking(tmp_path, "sqlite") == "local"
    assert not list(tmp_path.iterdir())
