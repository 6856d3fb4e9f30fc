"""Looking at the lock of a data directory takes nothing from anybody."""

import os
from pathlib import Path

import pytest

from gateway import instance
from gateway.errors import StartError
from gateway.instance import InstanceLock, holder_of


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
