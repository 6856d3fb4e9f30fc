"""A journal that cannot be written says so: when it is asked, and in the log."""

import os
import threading
from pathlib import Path

import pytest

from gateway.journal import writer
from tests.unit.gateway.open_journal import AT, lines_of, make, running


async def test_ping_says_nothing_of_a_writable_journal_and_leaves_nothing(tmp_path: Path) -> None:
    assert await make(tmp_path / "logs").ping() is None
    assert list((tmp_path / "logs").iterdir()) == []


async def test_ping_names_the_fault_and_no_path(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    for directory in (tmp_path / "a", tmp_path / "a" / "logs"):
        said = await make(directory).ping()
        assert said == "The journal cannot be written: its directory is no directory."


async def test_a_ping_that_hangs_is_told_in_time_and_takes_one_thread_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes: list[Path] = []
    answer = threading.Event()

    def hang(directory: Path) -> None:
        probes.append(directory)
        answer.wait(30)

    monkeypatch.setattr(writer, "probe_blocking", hang)
    monkeypatch.setattr(writer, "PROBE_TIMEOUT_S", 0.05)
    journal = make(tmp_path)
    try:
        assert [await journal.ping() for _ in range(3)] == [writer.TOO_SLOW] * 3
        assert len(probes) == 1
    finally:
        answer.set()


async def test_a_fault_is_logged_once_and_its_end_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "logs"
    directory.write_bytes(b"")
    journal = make(directory)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        for _ in range(3):
            turn.write("message")
            assert not await turn.flush()
        directory.unlink()
        turn.write("response")
        await turn.close()
    assert [record.message for record in caplog.records] == [
        "journal_write_failed",
        "journal_write_recovered",
    ]
    assert str(os.fspath(tmp_path)) not in caplog.text
    told, response = lines_of(directory)
    assert (told["lost"], response["kind"]) == (3, "response")
