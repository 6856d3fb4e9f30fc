"""What the journal writes, on real files: whole lines, numbered, masked, one file a turn."""

import stat
from datetime import datetime, timedelta, timezone
from pathlib import Path

import claude_agent_sdk as sdk
import pytest
from blockbuster import blockbuster_ctx

from tests.unit.gateway.open_journal import AT, lines_of, make, running, seqs


async def test_lines_are_whole_objects_numbered_from_one_in_order(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("request", message="你好\n")
        turn.write("response", outcome="answered")
        assert await turn.close()
    own = {"ts": "2026-11-20T12:00:00.000Z", "conversation_id": "cnv_c", "turn_id": "trn_a"}
    assert lines_of(tmp_path) == [
        {**own, "seq": 1, "kind": "request", "message": "你好\n"},
        {**own, "seq": 2, "kind": "response", "outcome": "answered"},
    ]


async def test_files_and_directories_are_the_owners_alone(tmp_path: Path) -> None:
    journal = make(tmp_path / "logs")
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("request")
        assert await turn.close()
    path = tmp_path / "logs" / turn.log_file
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


def test_the_file_is_named_by_the_utc_date() -> None:
    at = datetime(2026, 11, 21, 1, 0, tzinfo=timezone(timedelta(hours=8)))
    assert make(Path("x")).open("cnv_c", "trn_a", at).log_file == "2026-11-20/trn_a.jsonl"


def test_what_is_no_turn_id_never_becomes_a_path() -> None:
    for name in ("", "trn_", "a", "../trn_a", "trn_a/../b", "trn_a\n", "trn_" + "x" * 200):
        with pytest.raises(ValueError, match="turn id"):
            make(Path("x")).open("cnv_c", name, AT)


async def test_lines_written_before_the_writer_runs_are_kept(tmp_path: Path) -> None:
    journal = make(tmp_path)
    turn = journal.open("cnv_c", "trn_a", AT)
    turn.write("request")
    async with running(journal):
        assert await turn.close()
    assert seqs(tmp_path) == [1]


async def test_sdk_messages_are_written_whole(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
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


async def test_secrets_are_masked_in_values_in_keys_and_under_telling_keys(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("tool", input={"a": ["x s3cret y"], "s3cret": 1, "password": "hunter2"})
        assert await turn.close()
    assert lines_of(tmp_path)[0]["input"] == {"a": ["x *** y"], "***": 1, "password": "…[masked]"}


async def test_a_field_named_like_the_lines_own_never_replaces_it(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("tool", kind="mine", seq=7, turn_id="trn_a", ts=None)
        assert await turn.close()
    assert lines_of(tmp_path) == [
        {
            "ts": "2026-11-20T12:00:00.000Z",
            "seq": 1,
            "conversation_id": "cnv_c",
            "turn_id": "trn_a",
            "kind": "tool",
        }
    ]


async def test_each_turn_has_its_own_file_and_numbering(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turns = [journal.open("cnv_c", f"trn_{n}", AT) for n in range(5)]
        for n in range(20):
            for turn in turns:
                turn.write("message", n=n)
        assert [await turn.close() for turn in turns] == [True] * 5
    for n in range(5):
        assert [(line["seq"], line["n"]) for line in lines_of(tmp_path, f"trn_{n}")] == [
            (i + 1, i) for i in range(20)
        ]


async def test_the_event_loop_never_touches_the_disk(tmp_path: Path) -> None:
    journal = make(tmp_path)
    with blockbuster_ctx():
        async with running(journal):
            turn = journal.open("cnv_c", "trn_a", AT)
            turn.write("request", message="x")
            assert await turn.close()
            assert await journal.ping() is None
    assert seqs(tmp_path) == [1]


async def test_a_mask_that_fails_shows_nothing(tmp_path: Path) -> None:
    def broken(_text: str) -> str:
        raise ValueError("pattern")

    journal = make(tmp_path, mask=broken)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("message", text="s3cret")
        assert await turn.close()
    assert b"s3cret" not in (tmp_path / turn.log_file).read_bytes()
    assert len(lines_of(tmp_path)) == 1
