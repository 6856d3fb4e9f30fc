"""Long outputs of calls: their true length, the whole of them, and where it ends."""

from pathlib import Path
from typing import Any

import pytest

from gateway.errors import NotFound
from gateway.ids import LOCAL_USER as ME
from gateway.turns.requests import Accepted
from tests.support.services import RunningServices, of_kind, running_services, script

LONG = "".join(f"{n:05} otter\n" for n in range(2_000))
CAT = {"tool": "Bash", "input": {"command": "cat long.txt"}}
READ = script(CAT, {"tool": "Bash", "input": {"command": "cat a.txt"}}, {"text": "Done."})


async def call(services: RunningServices, accepted: Accepted, index: int = 1) -> dict[str, Any]:
    return await services.chat.reader.tool_call(
        ME,
        accepted.conversation_id,
        accepted.turn_id,
        index,
        log_dir=services.settings.log_dir,
    )


def write_long(services: RunningServices) -> None:
    (services.settings.workspace / "long.txt").write_text(LONG, encoding="utf-8")


def folders(root: Path) -> set[str]:
    return {path.name for path in (root / "data" / "outputs").iterdir()}


async def test_the_whole_output_outlives_the_log_and_a_restart_and_goes_with_its_conversation(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        write_long(services)
        accepted = await services.send(READ)
        result = await services.result_of(accepted)
        events = await services.events_of(accepted)
        (tmp_path / "logs" / result["log_file"]).unlink()
    (
        tmp_path / "data" / "outputs" / "cnv_gone"
    ).mkdir()  # as a deletion that a crash cut off leaves
    (tmp_path / "data" / "outputs" / "cnv_gone" / "trn_1-1.txt").write_text("x", "utf-8")
    async with running_services(tmp_path) as services:
        assert folders(tmp_path) == {accepted.conversation_id}
        long, short = await call(services, accepted), await call(services, accepted, 2)
        await services.delete(accepted.conversation_id)
        assert folders(tmp_path) == set()
        with pytest.raises(NotFound):
            await call(services, accepted)
    assert [fields["output_chars"] for fields in of_kind(events, "tool.finished")] == [24_000, 5]
    assert (long["output"], long["output_chars"], long["output_kept_chars"]) == (
        LONG,
        24_000,
        24_000,
    )
    assert (short["output"], short["output_chars"], short["output_kept_chars"]) == ("alpha", 5, 5)


async def test_a_call_of_a_running_turn_has_its_whole_output_already(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        write_long(services)
        accepted = await services.begin(script(CAT, {"text": "I read "}, {"hang": True}))
        told = await call(services, accepted)
        await services.stop(accepted)
    assert told["output"] == LONG


async def test_a_call_that_returned_nothing_has_no_length(tmp_path: Path) -> None:
    async with running_services(tmp_path, approvals="on") as services:
        accepted = await services.send(script({"tool": "Bash", "input": {"command": "rm a.txt"}}))
        await services.question_of(accepted)
        waiting = await call(services, accepted)
        await services.stop(accepted)
    assert (waiting["status"], waiting["output_chars"], waiting["output_kept_chars"]) == (
        None,
        None,
        0,
    )
