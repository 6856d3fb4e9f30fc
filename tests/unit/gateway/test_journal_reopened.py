"""The journal goes on behind what a crash, another writer or a deleted file left."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.gateway.open_journal import AT, DAY, make, running, seqs


async def append(directory: Path, *kinds: Any) -> None:
    journal = make(directory)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        for kind in kinds:
            turn.write(kind)
        assert await turn.close()


async def test_a_reopened_journal_goes_on_behind_its_last_line_and_has_one_response(
    tmp_path: Path,
) -> None:
    await append(tmp_path, "request", "error")
    await append(tmp_path, "response")
    await append(tmp_path, "response")
    assert seqs(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize(
    "torn",
    [
        b'{"ts":"2026-',
        b"\xff\xfe\x00",
        b'{"seq":99',
        b"\0" * 5000,
        b'{"seq":"9"}',
        b"[9]",
        b"x" * 200_000,
    ],
)
async def test_a_torn_last_line_never_spoils_the_next(tmp_path: Path, torn: bytes) -> None:
    await append(tmp_path, "request", "error")
    path = tmp_path / DAY / "trn_a.jsonl"
    path.write_bytes(path.read_bytes() + torn)
    await append(tmp_path, "response")
    raw = path.read_bytes().split(b"\n")
    assert raw[2] == torn
    assert json.loads(raw[3])["seq"] == 3
    assert raw[4:] == [b""]


async def test_a_last_line_that_only_lacks_its_newline_counts(tmp_path: Path) -> None:
    await append(tmp_path, "request", "error")
    path = tmp_path / DAY / "trn_a.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    await append(tmp_path, "response")
    assert seqs(tmp_path) == [1, 2, 3]


async def test_a_long_last_line_is_found_whole(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("request")
        turn.write("message", text="x" * 3_000_000)
        assert await turn.close()
    await append(tmp_path, "response")
    assert seqs(tmp_path) == [1, 2, 3]


async def test_two_journals_of_one_turn_share_its_numbering(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        one, two = (journal.open("cnv_c", "trn_a", AT) for _ in range(2))
        for turn in (one, two, one, two):
            turn.write("message")
            assert await turn.flush()
    assert seqs(tmp_path) == [1, 2, 3, 4]


async def test_a_file_deleted_in_mid_turn_begins_anew(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("request")
        assert await turn.flush()
        (tmp_path / turn.log_file).unlink()
        (tmp_path / DAY).rmdir()
        turn.write("response")
        assert await turn.close()
    assert seqs(tmp_path) == [1]


async def test_a_symbolic_link_in_the_files_place_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("mine", encoding="utf-8")
    (tmp_path / "logs" / DAY).mkdir(parents=True)
    (tmp_path / "logs" / DAY / "trn_a.jsonl").symlink_to(target)
    journal = make(tmp_path / "logs")
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("request")
        assert not await turn.close()
        assert turn.lost == 1
    assert target.read_text(encoding="utf-8") == "mine"
