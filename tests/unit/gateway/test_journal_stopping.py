"""Waiting for the journal and stopping it, with a disk that is slow or does not answer."""

import threading
from pathlib import Path

import anyio.lowlevel
import pytest

from gateway.journal import writer
from tests.unit.gateway.open_journal import AT, Gate, make, running, seqs


async def test_closing_does_not_wait_for_more_lines_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LINGER_S", 3600)
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        for _ in range(3):
            turn.write("message")
            assert await turn.flush()
    assert seqs(tmp_path) == [1, 2, 3]


async def test_what_waits_is_written_when_the_writer_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LINGER_S", 3600)
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        for _ in range(2500):
            turn.write("message")
        await anyio.lowlevel.checkpoint()
    assert seqs(tmp_path) == list(range(1, 2501))
    assert turn.lost == 0


async def test_a_batch_in_the_thread_is_finished_and_counted_when_the_writer_is_cancelled(
    tmp_path: Path,
) -> None:
    gate = Gate()
    journal = make(tmp_path, mask=gate)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("message")
        await gate.wait_reached()
        turn.write("response")
        opener = threading.Timer(0.05, gate.opened.set)
        opener.start()
    assert seqs(tmp_path) == [1, 2]
    assert await turn.close()


async def test_a_disk_that_does_not_answer_holds_up_neither_a_turn_nor_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "DRAIN_TIMEOUT_S", 0.05)
    gate = Gate()
    lost: list[int] = []
    journal = make(tmp_path, mask=gate, on_lost=lost.append)
    try:
        async with running(journal):
            turn = journal.open("cnv_c", "trn_a", AT)
            turn.write("message")
            await gate.wait_reached()
            turn.write("response")
            assert not await turn.close(within_s=0.05)
        assert turn.lost == sum(lost) == 2
        assert not await turn.close()
    finally:
        gate.opened.set()
