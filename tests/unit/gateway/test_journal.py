"""What the journal writes, on real files: whole lines, numbered, masked, one file a turn; and what is said where that fails."""

import stat
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path

import claude_agent_sdk as sdk
import pytest
from blockbuster import blockbuster_ctx

from gateway.journal import writer
from tests.unit.gateway.open_journal import AT, lines_of, make, open_turn, running

OWN = {"ts": "2026-11-20T12:00:00.000Z", "conversation_id": "cnv_c", "turn_id": "trn_a"}


async def test_lines_are_whole_objects_in_files_that_are_the_owners_alone(tmp_path: Path) -> None:
    async with open_turn(tmp_path / "logs") as turn:
        turn.write("request", message="你好\n")
        turn.write("response", outcome="answered")
        assert await turn.close()
    assert lines_of(tmp_path / "logs") == [
        {**OWN, "seq": 1, "kind": "request", "message": "你好\n"},
        {**OWN, "seq": 2, "kind": "response", "outcome": "answered"},
    ]
    path = tmp_path / "logs" / turn.log_file
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (path, *path.parents[:2])]
    assert modes == [0o600, 0o700, 0o700]


def test_the_file_is_named_by_the_utc_date() -> None:
    at = datetime(2026, 11, 21, 1, 0, tzinfo=timezone(timedelta(hours=8)))
    assert make(Path("x")).open("cnv_c", "trn_a", at).log_file == "2026-11-20/trn_a.jsonl"


def test_what_is_no_turn_id_never_becomes_a_path() -> None:
    for name in ("", "trn_", "a", "../trn_a", "trn_a/../b", "trn_a\n", "trn_" + "x" * 200):
        with pytest.raises(ValueError, match="turn id"):
            make(Path("x")).open("cnv_c", name, AT)


async def test_sdk_messages_are_written_whole(tmp_path: Path) -> None:
    async with open_turn(tmp_path) as turn:
        turn.write("message", message=sdk.SystemMessage("init", {"skills": ["memory-capture"]}))
        turn.write("message", message=sdk.AssistantMessage([sdk.TextBlock("hi")], "m"))
        turn.write(
            "error", error=ValueError("\ud800"), where=tmp_path, value=float("nan"), raw=b"\xff"
        )
        assert await turn.close()
    init, said, error = lines_of(tmp_path)
    assert init["message"]["data"]["skills"] == ["memory-capture"]
    assert said["message"]["content"] == [{"type": "TextBlock", "text": "hi"}]
    assert error["error"] == {"type": "ValueError", "message": "�"}
    assert (error["where"], error["value"], error["raw"]) == (str(tmp_path), "nan", "\\xff")


async def test_secrets_are_masked_and_a_field_never_replaces_one_of_the_lines_own(
    tmp_path: Path,
) -> None:
    """Secrets stand in values, in keys and under telling keys."""
    given = {"a": ["x s3cret y"], "s3cret": 1, "password": "hunter2"}
    async with open_turn(tmp_path) as turn:
        turn.write("tool", kind="mine", seq=7, turn_id="trn_a", ts=None, input=given)
        assert await turn.close()
    masked = {"a": ["x *** y"], "***": 1, "password": "…[masked]"}
    assert lines_of(tmp_path) == [{**OWN, "seq": 1, "kind": "tool", "input": masked}]


async def test_each_turn_has_its_own_file_which_the_event_loop_never_touches(
    tmp_path: Path,
) -> None:
    journal = make(tmp_path)
    turns = [journal.open("cnv_c", f"trn_{n}", AT) for n in range(5)]
    for n in range(20):
        for turn in turns:
            turn.write("message", n=n)
    with blockbuster_ctx():
        async with running(journal):
            assert [await turn.close() for turn in turns] == [True] * 5
            assert await journal.ping() is None
    for n in range(5):
        assert [(line["seq"], line["n"]) for line in lines_of(tmp_path, f"trn_{n}")] == [
            (i + 1, i) for i in range(20)
        ]


async def test_a_mask_that_fails_shows_nothing(tmp_path: Path) -> None:
    def broken(_text: str) -> str:
        raise ValueError("pattern")

    async with open_turn(tmp_path, mask=broken) as turn:
        turn.write("message", text="s3cret")
        assert await turn.close()
    assert b"s3cret" not in (tmp_path / turn.log_file).read_bytes()
    assert len(lines_of(tmp_path)) == 1


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
    async with open_turn(directory) as turn:
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
    assert str(tmp_path) not in caplog.text
    told, response = lines_of(directory)
    assert (told["lost"], response["kind"]) == (3, "response")
