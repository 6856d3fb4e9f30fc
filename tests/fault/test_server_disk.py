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
    LiveServer,
    bash,
    let_go,
    one_sentence,
    run_app,
    running_server,
    script,
)

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform != "linux", reason="mounts small disks in a namespace"),
]


_CUT = "Cancel 1 running task(s), timeout graceful shutdown exceeded"


def on_a_small_disk(directory: Path, size: str) -> list[str]:
    """Return what runs a program in a little world of its own, where `directory` is a disk of `size`."""
    directory.mkdir(parents=True)
    mount = f"mount -t tmpfs -o size={size} none {shlex.quote(str(directory))}"
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


async def test_a_full_disk_of_the_data_is_told_and_got_over(tmp_path: Path) -> None:
    """A new message is refused as nothing that could be kept; afterwards all is as it was."""
    prefix = on_a_small_disk(tmp_path / "data", "64m")
    async with (
        running_server(tmp_path, prefix=prefix, prewarmed_clients=0) as server,
        server.client() as client,
    ):
        server.tolerated += ["storage_unavailable", "outbox_unavailable"]
        first = await client.ask("my codeword is dunlin")
        ballast = fill(seen_from_inside(server, tmp_path / "data"))
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
        after = await client.ask("what is my codeword?", first["conversation_id"])
        assert "dunlin" in after["reply"]
        assert (await client.get("/readyz"))["ready"] is True


async def test_a_disk_of_the_data_that_fills_in_mid_turn(tmp_path: Path) -> None:
    """What cannot be stored is not told, and not lost either: it comes when there is room again."""
    prefix = on_a_small_disk(tmp_path / "data", "64m")
    async with (
        running_server(tmp_path, prefix=prefix, prewarmed_clients=0) as server,
        server.client() as client,
    ):
        server.tolerated += ["events_not_stored", "storage_unavailable", "outbox_unavailable"]
        pipe = server.make_pipe("pipe")
        async with client.stream(script(bash("cat pipe"), {"text": "word " * 400})) as events:
            started = await events.until("tool.started")
            ballast = fill(seen_from_inside(server, tmp_path / "data"))
            await let_go(pipe)
            with anyio.fail_after(20):
                while "events_not_stored" not in server.err_file.read_text("utf-8"):  # noqa: ASYNC110
                    await anyio.sleep(0.02)
            ballast.unlink()
            result = (await events.until("turn.completed")).data
        assert result["reply"] == ("word " * 400).strip()
        numbers = [int(entry.id.split(":")[1]) for entry in events.seen]
        assert numbers == list(range(1, len(numbers) + 1))
        again = await client.ask(script({"text": "After."}), started.data["conversation_id"])
        assert (again["outcome"], again["reply"]) == ("answered", "After.")


async def test_a_server_on_a_full_disk_stops_in_time(tmp_path: Path) -> None:
    """Its turn cannot be stored: the stop is cut short, and told so, well before an hour's grace."""
    prefix = on_a_small_disk(tmp_path / "data", "64m")
    grace = {"shutdown_grace_s": 0.5, "interrupt_grace_s": 0.5, "prewarmed_clients": 0}
    async with (
        running_server(tmp_path, prefix=prefix, **grace) as server,
        server.client() as client,
    ):
        server.tolerated += ["events_not_stored", "storage_unavailable", "shutdown_cut_short"]
        server.tolerated += ["intents_not_recorded", "outbox_unavailable"]
        # the stream that waits for the event is cut by uvicorn in the end
        server.tolerated += [_CUT, "Exception in ASGI application\n"]
        server.make_pipe("pipe")
        async with client.stream(script(bash("cat pipe"), {"text": "never said"})) as events:
            await events.until("tool.started")
            fill(seen_from_inside(server, tmp_path / "data"))
            server.signal(signal.SIGTERM)
            assert await server.wait_ended(30) == 0
        assert not server.agents()
        assert "shutdown_cut_short" in server.err_file.read_text("utf-8")


def test_no_room_for_the_data_at_the_start(tmp_path: Path) -> None:
    prefix = on_a_small_disk(tmp_path / "data", "64k")
    done = run_app("demo", directory=tmp_path, prefix=prefix)
    assert (done.returncode, done.stdout) == (1, "")
    assert "CANDOR_DATA_DIR" in one_sentence(done.stderr)
