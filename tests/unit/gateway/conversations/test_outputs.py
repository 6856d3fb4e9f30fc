"""Whole outputs as files: masked, private, bounded, and gone with their conversation."""

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.conversations import outputs
from gateway.conversations.outputs import CallId, OutputFiles
from gateway.ids import ConversationId, TurnId
from policies.secrets import mask_secrets

HERE, THERE = ConversationId("cnv_here"), ConversationId("cnv_there")
CALL = CallId(HERE, TurnId("trn_1"), 1)
KEY = "sk-ant-api03-" + "Ab3d" * 20


@asynccontextmanager
async def writing(files: OutputFiles) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(files.run)
        yield
        tasks.cancel_scope.cancel()


def found(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


async def test_an_output_is_kept_masked_and_for_this_user_alone(tmp_path: Path) -> None:
    files = OutputFiles(tmp_path / "o", mask_secrets)
    async with writing(files):
        files.put(CALL, f"key {KEY}\n", None)
        files.put(CallId(HERE, TurnId("trn_1"), 2), "short", 1_000)
        told = await files.read(CALL)
        assert await files.read(CallId(HERE, TurnId("trn_1"), 2)) == (
            "short\n… 995 characters left out here …"
        )
        assert await files.read(CallId(THERE, TurnId("trn_1"), 1)) is None
    assert told is not None
    assert told.startswith("key ")
    assert told.endswith("… the rest is left out here …")
    assert KEY not in told
    (path,) = (tmp_path / "o").rglob("trn_1-1.txt")
    assert KEY not in path.read_text("utf-8")
    assert [item.stat().st_mode & 0o777 for item in (path, path.parent)] == [0o600, 0o700]


async def test_line_ends_stay_as_a_command_wrote_them(tmp_path: Path) -> None:
    text = "10%\r100%\r\ndone\n"
    files = OutputFiles(tmp_path, str)
    async with writing(files):
        files.put(CALL, text, len(text))
        assert await files.read(CALL) == text


async def test_what_waits_is_written_when_the_server_ends(tmp_path: Path) -> None:
    files = OutputFiles(tmp_path, str)
    async with writing(files):
        files.put(CALL, "x", 1)
    assert found(tmp_path) == {"cnv_here/trn_1-1.txt"}


async def test_nothing_of_a_deleted_conversation_is_written_or_left(tmp_path: Path) -> None:
    """Also not what was just being masked, or waited for it."""
    begun, go_on = threading.Event(), threading.Event()

    def clean(text: str) -> str:
        begun.set()
        assert go_on.wait(30)
        return text

    files = OutputFiles(tmp_path, clean)
    async with writing(files):
        for call in (CALL, CallId(HERE, TurnId("trn_1"), 2), CallId(THERE, TurnId("trn_2"), 1)):
            files.put(call, "x", 1)
        await anyio.to_thread.run_sync(begun.wait)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(files.forget, HERE)
            await anyio.wait_all_tasks_blocked()
            go_on.set()
        assert await files.read(CALL) is None
        assert await files.read(CallId(THERE, TurnId("trn_2"), 1)) == "x"
    assert found(tmp_path) == {"cnv_there/trn_2-1.txt"}


async def test_a_start_removes_what_no_conversation_has_and_what_is_unfinished(
    tmp_path: Path,
) -> None:
    for name in ("cnv_here/trn_1-1.txt", "cnv_there/trn_2-1.txt", "cnv_here/.trn_1-2.txt.7.part"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")

    async def missing(ids: Sequence[ConversationId]) -> Sequence[ConversationId]:
        await anyio.lowlevel.checkpoint()
        return [one for one in ids if one != HERE]

    await OutputFiles(tmp_path, str).sweep(missing)
    assert found(tmp_path) == {"cnv_here/trn_1-1.txt"}
    assert not (tmp_path / "cnv_there").exists()


async def test_what_is_over_the_bounds_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "MAX_TURN_CHARS", 25)
    monkeypatch.setattr(outputs, "_MAX_WAITING_CHARS", 35)
    files = OutputFiles(tmp_path, str)
    for turn, index in (("1", 1), ("1", 2), ("1", 3), ("2", 1), ("3", 1)):
        files.put(CallId(HERE, TurnId(f"trn_{turn}"), index), "x" * 10, 10)
    async with writing(files):
        pass
    kept = {f"cnv_here/trn_{name}.txt" for name in ("1-1", "1-2", "2-1")}
    assert found(tmp_path) == kept
    files.end_turn(TurnId("trn_1"))
    files.put(CallId(HERE, TurnId("trn_1"), 3), "x" * 10, 10)
    async with writing(files):
        pass
    assert found(tmp_path) == {*kept, "cnv_here/trn_1-3.txt"}


async def test_an_output_that_cannot_be_written_stops_no_other(tmp_path: Path) -> None:
    (tmp_path / HERE).write_text("in the way", encoding="utf-8")
    files = OutputFiles(tmp_path, str)
    for call in (CALL, CallId(THERE, TurnId("trn_2"), 1), CallId(THERE, TurnId("../x"), 1)):
        files.put(call, "x", 1)
    async with writing(files):
        pass
    assert found(tmp_path) == {HERE, "cnv_there/trn_2-1.txt"}


async def test_what_another_server_is_writing_stays_where_a_server_starts(tmp_path: Path) -> None:
    part = tmp_path / HERE / ".trn_1-1.txt.7.part"
    part.parent.mkdir()
    part.write_text("half")

    async def missing(ids: Sequence[ConversationId]) -> Sequence[ConversationId]:  # noqa: RUF029
        return [id_ for id_ in ids if id_ != HERE]

    await OutputFiles(tmp_path, str, is_shared=True).sweep(missing)
    assert found(tmp_path) == {f"{HERE}/{part.name}"}
    await OutputFiles(tmp_path, str).sweep(missing)
    assert found(tmp_path) == set()
