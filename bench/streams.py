"""60 conversations streaming at once on the scripted engine, 50 pieces of text a second each.

The whole gateway (store, event log, HTTP) in one process, one reader a conversation in another;
from the moment the engine gives a piece (its text is the clock's reading) to the moment it is read.
"""

import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import psutil

from bench.report import percentile, save, show
from bench.stand_in import ROOT, clean_environ
from gateway import serve
from gateway.engine.events import MessageBegun, RunFinished, SessionReady, TextDelta, TextDone
from gateway.model_access import MakeEngine, ModelAccess
from gateway.settings import Settings
from tests.support import scripted_engine
from tests.support.scripted_engine import ScriptedEngine, ScriptedRun

STREAMS = 60
PER_SECOND = 50
SECONDS = 10


async def run(rounds: int) -> dict[str, float]:
    """Measure, print and save; return the figures."""
    del rounds
    with tempfile.TemporaryDirectory() as name:
        process = await anyio.open_process(
            [sys.executable, "-m", "bench.streams", name],
            cwd=ROOT,
            env=clean_environ(),
            stderr=None,
        )
        try:
            assert process.stdout is not None
            port = int((await process.stdout.receive()).decode())
            server = psutil.Process(process.pid)
            started = sum(server.cpu_times()[:2])
            delays, counts = await _read_all(port)
            used_s = sum(server.cpu_times()[:2]) - started
        finally:
            process.terminate()
            await process.wait()
    expected = STREAMS * PER_SECOND * SECONDS
    figures = {
        "streams": STREAMS,
        "pieces_a_second_each": PER_SECOND,
        "pieces_expected": expected,
        "pieces_read": sum(counts),
        "server_cpu_us_a_piece": used_s * 1e6 / expected,
        "server_cpu_us_a_piece_with_start": (used_s + started) * 1e6 / expected,
        "p50_ms": percentile(delays, 0.5),
        "p99_ms": percentile(delays, 0.99),
        "max_ms": max(delays),
    }
    show(
        "Streaming side by side", ["figure", "value"], [[k, f"{v:.1f}"] for k, v in figures.items()]
    )
    save("streams", figures)
    return figures


async def _read_all(port: int) -> tuple[list[float], list[int]]:
    delays: list[float] = []
    counts: list[int] = []

    async def reader(number: int) -> None:
        await anyio.sleep(number / STREAMS / PER_SECOND)
        body = json.dumps({"message": f"go {number}"}).encode()
        head = (
            f"POST /chat/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(head.encode() + body)
            rest, count, text = b"", 0, ""
            while True:
                rest += await stream.receive()
                now = time.monotonic_ns()
                *events, rest = rest.split(b"\n\n")
                for event in events:
                    if b"event: text.delta" in event:
                        text += json.loads(event.split(b"data: ", 1)[1].splitlines()[0])["text"]
                *readings, text = text.split("\n")  # masking may cut the text elsewhere
                delays.extend((now - int(reading)) / 1e6 for reading in readings)
                count += len(readings)
                if any(b"event: turn.completed" in event for event in events):
                    break
            counts.append(count + bool(text))

    async with anyio.create_task_group() as tasks:
        for number in range(STREAMS):
            tasks.start_soon(reader, number)
    return delays, counts


class _ClockRun(ScriptedRun):
    """A run that says what time it is, at an even pace."""

    async def _play(self) -> RunFinished:
        self._emit(SessionReady(session_id=self._ready.session_id, model="clock"))
        self._emit(MessageBegun())
        begin = anyio.current_time()
        said = []
        for number in range(PER_SECOND * SECONDS):
            await anyio.sleep_until(begin + number / PER_SECOND)
            # a line: masking holds back the last word of a piece, and the blank behind it
            said.append(f"{time.monotonic_ns()}\n")
            self._emit(TextDelta(text=said[-1]))
        self._emit(TextDone(text="".join(said)))
        return self._finished("completed", result="", stop_reason="end_turn")


async def _serve(directory: Path) -> None:
    """Serve as `python app.py` does (connections, threads, garbage collection), but for the agents."""
    scripted_engine.ScriptedRun = _ClockRun  # type: ignore[misc]
    settings = Settings(
        workspace=directory / "workspace",
        data_dir=directory / "data",
        log_dir=directory / "logs",
        max_live_clients=STREAMS + 1,
        port=0,
        demo="on",
    )

    @asynccontextmanager
    async def scripted_agents(*_: object) -> AsyncIterator[tuple[MakeEngine, ModelAccess]]:
        yield (
            lambda _tasks, _transcripts=None: ScriptedEngine(settings.workspace),
            ModelAccess(demo=True, model="clock"),
        )

    serve.open_agents = scripted_agents  # type: ignore[attr-defined, assignment]
    await serve.serve(
        settings, {}, announce=lambda address, _: print(address.rsplit(":", 1)[1], flush=True)
    )


if __name__ == "__main__":
    anyio.run(_serve, Path(sys.argv[1]))
