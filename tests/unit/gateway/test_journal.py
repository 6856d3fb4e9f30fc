"""The journal's writer, on real files."""

import json
import os
import stat
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import claude_agent_sdk as sdk
import pytest
from blockbuster import blockbuster_ctx

from gateway.journal import Journal, probe, writer

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DAY = "2026-11-20"


def mask(text: str) -> str:
    return text.replace("s3cret", "***")


def make(directory: Path, **options: Any) -> Journal:
    return Journal(directory, mask=options.pop("mask", mask), now=lambda: AT, **options)


@asynccontextmanager
async def running(journal: Journal) -> AsyncIterator[None]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            await tasks.start(journal.run)
            yield
            tasks.cancel_scope.cancel()


def lines_of(directory: Path, turn_id: str = "trn_a", day: str = DAY) -> list[dict[str, Any]]:
    raw = (directory / day / f"{turn_id}.jsonl").read_bytes()
    assert raw.endswith(b"\n")
    return [json.loads(line) for line in raw.split(b"\n")[:-1]]


def seqs(directory: Path) -> list[int]:
    return [line["seq"] for line in lines_of(directory)]


class Gate:
    """A mask that holds the writer's thread until it is opened: a disk that does not answer."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def __call__(self, text: str) -> str:
        self.reached.set()
        self.opened.wait(30)
        return text

    async def wait_reached(self) -> None:
        await anyio.to_thread.run_sync(self.reached.wait, 30)


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


def test_opening_and_writing_touch_no_disk(tmp_path: Path) -> None:
    turn = make(tmp_path / "logs").open("cnv_c", "trn_a", AT)
    turn.write("request")
    assert not (tmp_path / "logs").exists()


def test_the_file_is_named_by_the_utc_date() -> None:
    at = datetime(2026, 11, 21, 1, 0, tzinfo=timezone(timedelta(hours=8)))
    assert make(Path("x")).open("cnv_c", "trn_a", at).log_file == "2026-11-20/trn_a.jsonl"


@pytest.mark.parametrize(
    "name", ["", "trn_", "a", "../trn_a", "trn_a/../b", "trn_a\n", "trn_" + "x" * 200]
)
def test_what_is_no_turn_id_never_becomes_a_path(name: str) -> None:
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


async def test_a_value_that_changes_or_raises_costs_itself_and_not_the_line(tmp_path: Path) -> None:
    class Shifting(dict[str, int]):
        def items(self) -> Any:
            raise RuntimeError("dictionary changed size during iteration")

    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("tool", given=Shifting(a=1), name="Read")
        assert await turn.close()
    assert lines_of(tmp_path)[0]["given"] == "[unreadable]"
    assert lines_of(tmp_path)[0]["name"] == "Read"


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
            "kind_": "mine",
            "seq_": 7,
            "ts_": None,
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


async def test_ten_thousand_lines_are_all_there(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        for n in range(10_000):
            turn.write("message", n=n)
        assert await turn.close(within_s=50)
        assert turn.lost == 0
    assert seqs(tmp_path) == list(range(1, 10_001))


async def test_the_event_loop_never_touches_the_disk(tmp_path: Path) -> None:
    journal = make(tmp_path)
    with blockbuster_ctx():
        async with running(journal):
            turn = journal.open("cnv_c", "trn_a", AT)
            turn.write("request", message="x")
            assert await turn.close()
            assert await journal.ping() is None
    assert seqs(tmp_path) == [1]


# --- after a crash --------------------------------------------------------------------------------


async def append(directory: Path, *kinds: Any) -> None:
    journal = make(directory)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        for kind in kinds:
            turn.write(kind)
        assert await turn.close()


async def test_a_reopened_journal_goes_on_behind_its_last_line(tmp_path: Path) -> None:
    await append(tmp_path, "request", "error")
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


# --- at the bound ---------------------------------------------------------------------------------


async def test_at_the_bound_lines_are_dropped_counted_and_told_and_the_response_survives(
    tmp_path: Path,
) -> None:
    lost: list[int] = []
    journal = make(tmp_path, max_waiting=10, on_lost=lost.append)
    turn = journal.open("cnv_c", "trn_a", AT)
    for n in range(25):
        turn.write("message", n=n)
    turn.write("response", outcome="answered")
    assert turn.lost == sum(lost) == 15
    async with running(journal):
        assert not await turn.close()
    *kept, told, response = lines_of(tmp_path)
    assert [line["n"] for line in kept] == list(range(10))
    assert (told["kind"], told["code"], told["lost"]) == ("error", "journal_lines_lost", 15)
    assert (response["kind"], response["seq"]) == ("response", 12)


async def test_the_bound_counts_bytes_too(tmp_path: Path) -> None:
    journal = make(tmp_path, max_waiting_bytes=100_000)
    turn = journal.open("cnv_c", "trn_a", AT)
    for _ in range(10):
        turn.write("message", message=sdk.AssistantMessage([sdk.TextBlock("x" * 30_000)], "m"))
    turn.write("response", reply="y" * 5_000)
    assert turn.lost == 7
    async with running(journal):
        assert not await turn.close()
    assert lines_of(tmp_path)[-1]["kind"] == "response"


async def test_room_is_given_back_when_lines_are_written(tmp_path: Path) -> None:
    journal = make(tmp_path, max_waiting=10)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        for _ in range(20):
            for _ in range(10):
                turn.write("message")
            assert await turn.flush()
        assert await turn.close()
    assert seqs(tmp_path) == list(range(1, 201))


async def test_lines_with_the_writer_count_against_the_bound(tmp_path: Path) -> None:
    gate = Gate()
    journal = make(tmp_path, max_waiting=10, mask=gate)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        for _ in range(10):
            turn.write("message")
        await gate.wait_reached()
        turn.write("message")
        assert turn.lost == 1
        gate.opened.set()
        assert not await turn.close()
    assert seqs(tmp_path) == list(range(1, 11))


async def test_a_line_after_the_end_is_refused(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
        turn.write("response")
        assert await turn.close()
        turn.write("tool")
        assert turn.lost == 1
        assert not await turn.close()
    assert seqs(tmp_path) == [1]


# --- waiting and stopping -------------------------------------------------------------------------


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


async def test_after_its_end_every_line_counts_as_lost_and_nobody_waits(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
    turn.write("response")
    assert turn.lost == 1
    with anyio.fail_after(1):
        assert not await turn.close()


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


# --- ping -----------------------------------------------------------------------------------------


async def test_ping_says_nothing_of_a_writable_journal_and_leaves_nothing(tmp_path: Path) -> None:
    assert await make(tmp_path / "logs").ping() is None
    assert list((tmp_path / "logs").iterdir()) == []


def _file(path: Path) -> None:
    path.write_bytes(b"")


def _file_above(path: Path) -> None:
    path.parent.write_bytes(b"")


@pytest.mark.parametrize("spoil", [_file, _file_above])
async def test_ping_names_the_fault_and_no_path(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    directory = tmp_path / "a" / "logs"
    if spoil is _file:
        directory.parent.mkdir()
    spoil(directory)
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
        assert [await journal.ping() for _ in range(3)] == [probe.TOO_SLOW] * 3
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
