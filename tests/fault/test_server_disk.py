"""The real server on disks that are full: logs lose lines and never a turn; without room for data it says so."""

import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.live_server import (
    LiveClient,
    LiveServer,
    bash,
    let_go,
    running_server,
    script,
)
from tests.support.program import one_sentence, run_app

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform != "linux", reason="mounts small disks in a namespace"),
]


_CUT = "Cancel 1 running task(s), timeout graceful shutdown exceeded"


def on_a_small_disk(directory: Path, size: str, *, is_full: bool = False) -> list[str]:
    """Return what runs a program in a little world of its own, where `directory` is a disk of `size`."""
    directory.mkdir(parents=True)
    mount = f"mount -t tmpfs -o size={size} none {shlex.quote(str(directory))}"
    if is_full:
        mount += f"; cat /dev/zero >{shlex.quote(str(directory / 'ballast'))} 2>/dev/null || true"
    prefix = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-ec",
        f'{mount}; exec "$@"',
        "sh",
    ]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this machine lets nobody mount a small disk in a namespace")
    return prefix


def seen_from_inside(server: LiveServer, path: Path) -> Path:
    """Return a path as the server's little world has it."""
    return Path(f"/proc/{server.process.pid}/root{path}")


def fill(disk: Path) -> Path:
    """Leave no byte free; returns the file to remove again."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 65536)
        except OSError:
            pass
        try:
            while True:
                file.write(b"x")
        except OSError:
            pass
    return ballast


async def metric(client: Any, name: str) -> float:
    text = (await client.http.get("/metrics")).text
    (row,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(row.split()[1])


async def test_a_full_disk_of_the_logs_is_a_notice_and_never_a_failed_turn(tmp_path: Path) -> None:
    prefix = on_a_small_disk(tmp_path / "logs", "512k")
    async with (
        running_server(tmp_path, prefix=prefix, prewarmed_clients=0) as server,
        server.client() as client,
    ):
        server.tolerated.append("journal_write_failed")
        first = await client.ask(script({"text": "Before."}))
        assert (first["outcome"], first["notices"]) == ("answered", [])
        ballast = fill(seen_from_inside(server, tmp_path / "logs"))
        full = await client.ask(
            script(bash("ls"), {"text": "Meanwhile."}), first["conversation_id"]
        )
        assert (full["outcome"], full["reply"]) == ("answered", "Meanwhile.")
        assert [entry["code"] for entry in full["notices"]] == ["journal_lost"]
        assert await metric(client, "candor_journal_lines_lost_total") > 0
        ready = await client.http.get("/readyz")
        assert (ready.status_code, ready.json()["parts"]["journal"]["ok"]) == (503, False)
        ballast.unlink()
        after = await client.ask(script({"text": "After."}), first["conversation_id"])
        assert (after["outcome"], after["notices"]) == ("answered", [])
        assert (await client.get("/readyz"))["ready"] is True


async def test_a_full_disk_of_the_data_is_told_got_over_and_holds_up_no_end(
    tmp_path: Path,
) -> None:
    """Between two turns, in the middle of one, and at the stop, which is cut short."""
    prefix = on_a_small_disk(tmp_path / "data", "64m")
    grace = {"shutdown_grace_s": 0.5, "interrupt_grace_s": 0.5, "prewarmed_clients": 0}
    async with (
        running_server(tmp_path, prefix=prefix, **grace) as server,
        server.client() as client,
    ):
        server.tolerated += ["storage_unavailable", "outbox_unavailable", "events_not_stored"]
        # memory that cannot take over a turn that may have been deleted is not searched
        server.tolerated += ["recall_failed"]
        disk = seen_from_inside(server, tmp_path / "data")
        conversation = (await client.ask("my codeword is dunlin"))["conversation_id"]
        await _is_refused_and_forgotten(client, disk)
        after = await client.ask("what is my codeword?", conversation)
        assert "dunlin" in after["reply"]
        await _is_told_once_there_is_room(server, client, disk, conversation)

        server.tolerated += ["shutdown_cut_short", "intents_not_recorded"]
        # the stream that waits for the event is cut by uvicorn in the end
        server.tolerated += [_CUT, "Exception in ASGI application\n"]
        server.make_pipe("last")
        message = script(bash("cat last"), {"text": "never said"})
        async with client.stream(message, conversation) as events:
            await events.until("tool.started")
            fill(disk)
            server.signal(signal.SIGTERM)
            assert await server.wait_ended(30) == 0
        assert not server.agents()
        assert "shutdown_cut_short" in server.err_file.read_text("utf-8")


async def _is_refused_and_forgotten(client: LiveClient, disk: Path) -> None:
    """A new message is refused as nothing that could be kept; afterwards all is as it was."""
    ballast = fill(disk)
    body = {"message": script({"text": "x" * 20_000})}
    for path in ("/chat", "/chat/stream"):
        answer = await client.http.post(path, json=body)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (503, "storage_unavailable")
        assert error["retryable"] is True
        assert "Traceback" not in answer.text
    ready = await client.http.get("/readyz")
    assert (ready.status_code, ready.json()["parts"]["database"]["ok"]) == (503, False)
    ballast.unlink()
    assert (await client.get("/readyz"))["ready"] is True


async def _is_told_once_there_is_room(
    server: LiveServer, client: LiveClient, disk: Path, conversation: str
) -> None:
    """What cannot be stored in mid-turn is not told, and not lost either."""
    pipe = server.make_pipe("pipe")
    message = script(bash("cat pipe"), {"text": "word " * 400})
    async with client.stream(message, conversation) as events:
        await events.until("tool.started")
        ballast = fill(disk)
        await let_go(pipe)
        with anyio.fail_after(30):
            while "events_not_stored" not in server.err_file.read_text("utf-8"):  # noqa: ASYNC110
                await anyio.sleep(0.02)
        ballast.unlink()
        result = (await events.until("turn.completed")).data
    assert result["reply"] == ("word " * 400).strip()
    numbers = [int(entry.id.split(":")[1]) for entry in events.seen]
    assert numbers == list(range(1, len(numbers) + 1))


def test_no_room_for_the_data_at_the_start(tmp_path: Path) -> None:
    prefix = on_a_small_disk(tmp_path / "data", "64k")
    done = run_app("demo", directory=tmp_path, prefix=prefix)
    assert (done.returncode, done.stdout) == (1, "")
    assert "CANDOR_DATA_DIR" in one_sentence(done.stderr)


def test_no_byte_for_the_data_at_the_start(tmp_path: Path) -> None:
    """Not even for the name of the process in the lock."""
    prefix = on_a_small_disk(tmp_path / "data", "64k", is_full=True)
    start, doctor = (
        run_app(command, directory=tmp_path, prefix=prefix) for command in ("demo", "doctor")
    )
    assert (start.returncode, start.stdout) == (1, "")
    sentence = one_sentence(start.stderr)
    assert "CANDOR_DATA_DIR" in sentence
    assert (doctor.returncode, doctor.stderr) == (1, "")
    assert f"fault  {sentence}" in doctor.stdout
