"""Reading the journal back: safely, newest first, page by page."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.journal.reader import find_log, list_logs, read_log
from tests.unit.gateway.open_journal import line_text


def line(minute: int, seq: int = 1, kind: str = "request", **fields: Any) -> str:
    return line_text(f"10:{minute:02}:00", seq, kind, **fields)


def put(directory: Path, name: str, *lines: str | bytes) -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(row if isinstance(row, bytes) else row.encode() for row in lines))
    return path


def names(directory: Path, **options: Any) -> list[str]:
    return [entry.turn_id for entry in list_logs(directory, **options).entries]


def test_a_turn_without_a_response_has_no_outcome(tmp_path: Path) -> None:
    put(tmp_path, "2026-11-20/trn_a.jsonl", line(1), line(2, 2, "tool", outcome="answered"))
    put(tmp_path, "2026-11-20/trn_b.jsonl", line(1, 1, "response", outcome="answered"), b'{"torn')
    assert [entry.outcome for entry in list_logs(tmp_path).entries] == [None, None]


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_give_every_log_once_also_when_more_are_added_meanwhile(
    tmp_path: Path, limit: int
) -> None:
    for n in range(7):
        put(tmp_path, f"2026-11-{20 + n % 2}/trn_{n}.jsonl", line(n // 3))
    expected = names(tmp_path)
    found: list[str] = []
    page = list_logs(tmp_path, limit=limit)
    for n in range(10):
        found += [entry.turn_id for entry in page.entries]
        if page.next_cursor is None:
            break
        put(tmp_path, f"2026-11-22/trn_new{n}.jsonl", line(59))
        page = list_logs(tmp_path, limit=limit, cursor=page.next_cursor)
    assert found == expected
    assert len(expected) == 7


def test_a_conversation_that_a_message_names_is_not_the_logs_own(tmp_path: Path) -> None:
    forged = '{"ts":"2026-11-20T10:00:00.000Z","seq":1,"conversation_id":"cnv_evil","turn_id":'
    put(tmp_path, "2026-11-20/trn_a.jsonl", line(1, message=f"\n{forged}"))
    assert list_logs(tmp_path).entries[0].conversation_id == "cnv_c"


def test_a_cursor_that_nobody_gave_out_is_refused(tmp_path: Path) -> None:
    for cursor in ("", "x", "2026-11-20", "2026-11-20|x|trn_a", "../..|2026|trn_a"):
        with pytest.raises(ValueError, match="cursor"):
            list_logs(tmp_path, cursor=cursor)


def test_a_damaged_file_is_listed_under_the_time_of_its_last_change(tmp_path: Path) -> None:
    for content in (
        b"",
        b"\xff\xfe",
        b'{"ts":"9999-99-99T99:99:99.999Z","seq":1,"conversation_id":"cnv_a","turn_id":"t"}\n',
    ):
        path = put(tmp_path, "2026-11-20/trn_a.jsonl", content)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        (entry,) = list_logs(tmp_path).entries
        assert entry.conversation_id is None
        assert entry.started_at == datetime.fromtimestamp(1_700_000_000, UTC)


def test_only_regular_files_of_the_right_names_are_listed(tmp_path: Path) -> None:
    put(tmp_path, "secret/trn_a.jsonl", line(1))
    put(tmp_path, "outside.jsonl", line(1))
    wrong = ("trn_a.json", "README.md", "trn_.jsonl", "trn_a.jsonl.bak", ".trn_a.jsonl", "x.jsonl")
    for name in wrong:
        put(tmp_path, f"2026-11-20/{name}", line(1))
    put(tmp_path, "2026-13-20/trn_a.jsonl", line(1))
    (tmp_path / "2026-11-20/trn_dir.jsonl").mkdir()
    (tmp_path / "2026-11-20/trn_link.jsonl").symlink_to(tmp_path / "outside.jsonl")
    (tmp_path / "2026-11-19").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "2026-11-20/trn_fifo.jsonl")
    put(tmp_path, "2026-11-20/trn_good.jsonl", line(1))
    assert names(tmp_path) == ["trn_good"]
    for name in ("trn_dir", "trn_link", "trn_fifo"):
        assert read_log(tmp_path, f"2026-11-20/{name}.jsonl") is None
        assert find_log(tmp_path, name) is None
    assert read_log(tmp_path, "2026-11-19/trn_a.jsonl") is None


def test_lines_are_split_at_newlines_alone(tmp_path: Path) -> None:
    put(tmp_path, "2026-11-20/trn_a.jsonl", line(1, message="a\u2028b\x85c"), line(2, 2))
    read = list(read_log(tmp_path, "2026-11-20/trn_a.jsonl") or ())
    assert [item.number for item in read] == [1, 2]
    assert (read[0].fields or {})["message"] == "a\u2028b\x85c"
    assert read[0].text == line(1, message="a\u2028b\x85c").rstrip("\n")


def test_a_damaged_line_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    for damage in (b"{", b"[1]", b"\xff", b'{"a":NaN}', b'{"a":1}{', b"[" * 100_000):
        put(tmp_path, "2026-11-20/trn_a.jsonl", line(1), damage, b"\n", line(2, 2))
        read = list(read_log(tmp_path, "2026-11-20/trn_a.jsonl") or ())
        assert [item.fields is None for item in read] == [False, True, False]
        assert json.loads(read[1].text) == {"kind": "error", "code": "damaged_line", "line": 2}
