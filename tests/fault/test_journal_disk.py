"""The journal on a disk that is full, read-only, limited, and in a process that is killed."""

import json
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.journal.writer import Journal
from tests.fault.journal_program import keep_journal
from tests.support.child_programs import command, kill_after_blocking, run_blocking

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="limits and signals of POSIX"),
]

AT = datetime(2026, 11, 20, tzinfo=UTC)


def run(what: str, directory: Path) -> list[dict[str, Any]]:
    return run_blocking(command(keep_journal, what, directory))


def lines_of(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    assert raw.endswith(b"\n")
    return [json.loads(line) for line in raw.split(b"\n")[:-1]]


def in_a_namespace(script: str) -> list[str]:
    """Run a shell script as root of its own little world, where it may mount disks."""
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script]


def can_mount(directory: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    script = f"mount -t tmpfs none {shlex.quote(str(directory))}"
    return subprocess.run(in_a_namespace(script), capture_output=True, check=False).returncode == 0


def test_a_full_disk_loses_lines_and_never_a_turn(tmp_path: Path) -> None:
    """On a real file system without room; what was lost is told, and it recovers by itself."""
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    if not can_mount(disk):
        pytest.skip("this machine lets nobody mount a small disk in a namespace")
    program = shlex.join(command(keep_journal, "fill_a_full_disk", disk / "logs"))
    script = f"mount -t tmpfs -o size=256k none {disk}; {program}; cp -r {disk}/logs {kept}"
    full, read_only = run_blocking(in_a_namespace(script))

    assert full["in_time"] is False
    assert 0 < full["lost"] < 401
    assert full["ping_when_full"] == "The journal cannot be written: the disk is full."
    assert (full["again"], full["ping_after"]) == (True, None)
    lines = lines_of(kept / "2026-11-20" / "trn_a.jsonl")
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    told = [line["lost"] for line in lines if line["kind"] == "error"]
    assert len(lines) - len(told) + full["lost"] == 401
    assert lines_of(kept / "2026-11-20" / "trn_again.jsonl")[0]["seq"] == 1

    assert (read_only["read_only"], read_only["lost"]) == (False, 1)
    assert read_only["ping"] == "The journal cannot be written: the file system is read-only."


def test_a_line_that_does_not_fit_is_taken_back_whole(tmp_path: Path) -> None:
    (said,) = run("reach_a_size_limit", tmp_path)
    lines = lines_of(tmp_path / "2026-11-20" / "trn_a.jsonl")
    assert (said["flushed"], said["closed"]) == (False, False)
    assert said["size"] < 10_000
    *kept, told, response = lines
    assert [line["n"] for line in kept] == list(range(len(kept)))
    assert told["lost"] == said["lost"] == said["lost_then"] == 30 - len(kept)
    assert response["kind"] == "response"
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    told, response = lines_of(tmp_path / "2026-11-20" / "trn_small.jsonl")
    assert told["lost"] == said["small"] == 2
    assert response["kind"] == "response"


def test_without_file_descriptors_lines_are_lost_and_counted(tmp_path: Path) -> None:
    (said,) = run("run_out_of_files", tmp_path)
    assert said == {
        "flushed": False,
        "ping": "The journal cannot be written: too many files are open.",
        "closed": False,
        "lost": 1,
    }
    kinds = [line["kind"] for line in lines_of(tmp_path / "2026-11-20" / "trn_a.jsonl")]
    assert kinds == ["request", "error", "response"]


def test_what_close_called_kept_survives_a_kill(tmp_path: Path) -> None:
    assert run("write_then_die", tmp_path) == [{"closed": True}]
    assert len(lines_of(tmp_path / "2026-11-20" / "trn_a.jsonl")) == 1000


async def test_a_journal_whose_writer_was_killed_goes_on(tmp_path: Path) -> None:
    """At whatever moment the kill comes: no flushed line is gone, and the next line is whole."""
    words = command(keep_journal, "write_until_killed", tmp_path)
    said = await anyio.to_thread.run_sync(kill_after_blocking, words, 10)
    written = said[-1]["written"]

    journal = Journal(tmp_path, mask=str)
    async with anyio.create_task_group() as tasks:
        await tasks.start(journal.run)
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("response")
        assert await turn.close()
        tasks.cancel_scope.cancel()

    raw = (tmp_path / "2026-11-20" / "trn_a.jsonl").read_bytes().split(b"\n")[:-1]
    seqs = []
    for line in raw:
        try:
            seqs.append(json.loads(line)["seq"])
        except ValueError:
            assert line == raw[-2]
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) > written
    assert json.loads(raw[-1])["kind"] == "response"
