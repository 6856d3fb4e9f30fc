"""What the journal cannot take is counted and told: at its bound, and after its end."""

from pathlib import Path

import anyio
import claude_agent_sdk as sdk

from tests.unit.gateway.open_journal import AT, Gate, lines_of, make, running, seqs


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


async def test_after_its_end_every_line_counts_as_lost_and_nobody_waits(tmp_path: Path) -> None:
    journal = make(tmp_path)
    async with running(journal):
        turn = journal.open("cnv_c", "trn_a", AT)
    turn.write("response")
    assert turn.lost == 1
    with anyio.fail_after(30):
        assert not await turn.close()
