"""The journal's lines, losses, ends, and files that are opened again."""

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import claude_agent_sdk as sdk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.journal import writer
from gateway.journal.line import Line, LineFormat
from tests.unit.gateway.open_journal import AT, DAY, Gate, lines_of, make, open_turn, running, seqs

SECRET = "sk-test-0123456789"
ENVELOPE = {"conversation_id": "cnv_c", "turn_id": "trn_a"}


def encode(fields: dict[str, Any], *, max_bytes: int = 4_000_000) -> bytes:
    line = Line(at=datetime(2026, 11, 20, tzinfo=UTC), kind="tool", fields=fields)
    line_format = LineFormat(mask=lambda text: text.replace(SECRET, "***"), max_bytes=max_bytes)
    return line_format.encode(line, 1, ENVELOPE)


def test_only_the_largest_strings_of_a_long_line_are_shortened_and_they_say_so() -> None:
    encoded = encode(
        {"small": "s" * 100, "large": ["l" * 50_000, {"x": "m" * 900}]}, max_bytes=10_000
    )
    assert len(encoded) <= 10_000
    line = json.loads(encoded)
    assert line["small"] == "s" * 100
    assert line["large"][1]["x"] == "m" * 900
    assert line["large"][0].startswith("l" * 5000)
    assert line["large"][0].endswith("…[45000 characters left out]")
    assert line["clipped"] is True


def test_a_line_of_countless_small_things_keeps_its_own_fields() -> None:
    encoded = encode({"items": list(range(50_000)), "outcome": "answered"}, max_bytes=5_000)
    assert len(encoded) <= 5_000
    line = json.loads(encoded)
    assert (line["kind"], line["outcome"]) == ("tool", "answered")
    assert "items" not in line


def test_the_cut_of_an_enormous_string_shows_no_half_of_a_secret() -> None:
    for shift in range(len(SECRET)):
        text = "a" * (2_000 - shift) + SECRET + "b" * 60_000
        assert SECRET[:6] not in encode({"text": text}, max_bytes=2_000).decode()


@given(
    st.recursive(
        st.text(max_size=30) | st.just(SECRET) | st.integers() | st.binary(max_size=20) | st.none(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.text(max_size=5) | st.just(SECRET), inner)
            | st.builds(sdk.TextBlock, inner)
        ),
        max_leaves=30,
    ),
    st.integers(300, 2_000),
)
def test_any_line_is_valid_within_its_bound_and_without_secrets(value: Any, most: int) -> None:
    encoded = encode({"value": value, "tail": f"x{SECRET}"}, max_bytes=most)
    assert len(encoded) <= most
    assert encoded.endswith(b"\n")
    assert encoded.count(b"\n") == 1
    assert SECRET not in encoded.decode()
    assert json.loads(encoded)["turn_id"] == "trn_a"


async def test_at_the_bound_lines_are_dropped_counted_and_told_and_the_response_survives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_WAITING_LINES", 10)
    lost: list[int] = []
    journal = make(tmp_path, on_lost=lost.append)
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


async def test_the_bound_counts_bytes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_WAITING_BYTES", 100_000)
    journal = make(tmp_path)
    turn = journal.open("cnv_c", "trn_a", AT)
    for _ in range(10):
        turn.write("message", message=sdk.AssistantMessage([sdk.TextBlock("x" * 30_000)], "m"))
    turn.write("response", reply="y" * 5_000)
    assert turn.lost == 7
    async with running(journal):
        assert not await turn.close()
    assert lines_of(tmp_path)[-1]["kind"] == "response"


async def test_lines_with_the_writer_count_against_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_WAITING_LINES", 10)
    gate = Gate()
    async with open_turn(tmp_path, mask=gate) as turn:
        for _ in range(10):
            turn.write("message")
        await gate.wait_reached()
        turn.write("message")
        assert turn.lost == 1
        gate.opened.set()
        assert not await turn.close()
    assert seqs(tmp_path) == list(range(1, 11))


async def test_a_line_after_the_end_is_refused(tmp_path: Path) -> None:
    async with open_turn(tmp_path) as turn:
        turn.write("response")
        assert await turn.close()
        turn.write("tool")
        assert turn.lost == 1
        assert not await turn.close()
    assert seqs(tmp_path) == [1]


async def test_after_its_end_every_line_counts_as_lost_and_nobody_waits(tmp_path: Path) -> None:
    async with open_turn(tmp_path) as turn:
        turn.write("request")
    turn.write("response")
    assert turn.lost == 1
    with anyio.fail_after(30):
        assert not await turn.close()


async def test_closing_does_not_wait_for_more_lines_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LINGER_S", 3600)
    async with open_turn(tmp_path) as turn:
        for _ in range(3):
            turn.write("message")
            assert await turn.flush()
    assert seqs(tmp_path) == [1, 2, 3]


async def test_the_names_of_fields_are_read_once_for_all_turns_of_a_workspace(
    tmp_path: Path,
) -> None:
    """Two workspaces show texts in two ways, so what is clean in one may not be in the other."""
    read: list[str] = []

    def mask(text: str) -> str:
        read.append(text)
        return text

    journal = make(tmp_path, mask=mask)
    async with running(journal):
        for turn_id, shown in (("trn_a", str), ("trn_b", str), ("trn_c", str.strip)):
            turn = journal.open("cnv_c", turn_id, AT, shown=shown)
            turn.write("message", name_of_a_field=1)
            assert await turn.close()
    assert read.count("name_of_a_field") == 2


async def test_what_waits_is_written_when_the_writer_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LINGER_S", 3600)
    async with open_turn(tmp_path) as turn:
        for _ in range(2500):
            turn.write("message")
        await anyio.lowlevel.checkpoint()
    assert seqs(tmp_path) == list(range(1, 2501))
    assert turn.lost == 0


async def test_a_batch_in_the_thread_is_finished_and_counted_when_the_writer_is_cancelled(
    tmp_path: Path,
) -> None:
    gate = Gate()
    async with open_turn(tmp_path, mask=gate) as turn:
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


async def append(directory: Path, *kinds: Any, **fields: Any) -> None:
    async with open_turn(directory) as turn:
        for kind in kinds:
            turn.write(kind, **fields)
        assert await turn.close()


@pytest.mark.parametrize("end", [b"\n", b""], ids=["whole", "without its newline"])
@pytest.mark.parametrize("length", [1, 3_000_000])
async def test_a_reopened_journal_goes_on_behind_its_last_line_and_has_one_response(
    tmp_path: Path, length: int, end: bytes
) -> None:
    await append(tmp_path, "request", "error", text="x" * length)
    path = tmp_path / DAY / "trn_a.jsonl"
    path.write_bytes(path.read_bytes().removesuffix(b"\n") + end)
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


async def test_two_journals_of_one_turn_share_its_numbering(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        one, two = (journal.open("cnv_c", "trn_a", AT) for _ in range(2))
        for turn in (one, two, one, two):
            turn.write("message")
            assert await turn.flush()
    assert seqs(tmp_path) == [1, 2, 3, 4]


async def test_a_file_deleted_in_mid_turn_begins_anew(tmp_path: Path) -> None:
    async with open_turn(tmp_path) as turn:
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
    async with open_turn(tmp_path / "logs") as turn:
        turn.write("request")
        assert not await turn.close()
        assert turn.lost == 1
    assert target.read_text(encoding="utf-8") == "mine"
