"""How long a session takes to be resumed on another server, against the same on its own: until the first text.

An engine for each side, on one demo model, in turns in one process. `files`: a server of SQLite. `stored`: a server
whose session is in PostgreSQL too, and in its own file. `elsewhere`: a server whose directory is empty, so
that the session is read from PostgreSQL and written to its file first. Sessions of two sizes.
"""

import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel

from bench.report import median, save, show
from gateway.conversations.sqlite.agent_transcripts import SqliteTranscriptStore
from gateway.conversations.sqlite.conversations import SqliteConversationStore
from gateway.engine.events import TextDelta
from gateway.engine.protocol import SessionOrigin
from gateway.engine.sdk import SdkEngine
from gateway.ids import ConversationId
from tests.conformance.suites.conversation_values import conversation
from tests.support.engine_talk import Gate, prompt, script
from tests.support.engine_world import MODEL, RealWorld, real_world
from tests.support.postgres import empty_schema_blocking, open_schema
from tests.support.stores import POSTGRES_MIGRATIONS

FILES, STORED, ELSEWHERE = "files", "stored", "elsewhere"
_SIZES_KB = (100, 800)
_TURN_CHARS = 200_000


class _Owner:
    """A turn of a conversation that no server has ever held."""

    conversation_id = ConversationId("cnv_a")
    epoch = 0

    async def wait_decided(self) -> bool:
        await anyio.lowlevel.checkpoint()
        return True


async def run(rounds: int) -> None:
    """Measure, print and save."""
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for size_kb in _SIZES_KB:
            root = Path(name) / str(size_kb)
            await anyio.Path(root).mkdir()
            async with real_world(root) as world, _store() as store:
                figures[f"{size_kb} KB"] = await _measure(world, store, size_kb, rounds)
    rows = [
        [size, *(f"{of[side]:.0f}" for side in of), f"{of[ELSEWHERE] / of[FILES]:.2f}"]
        for size, of in figures.items()
    ]
    header = ["session", FILES, STORED, ELSEWHERE, "elsewhere / files"]
    show(f"Resume to the first text, ms, medians of {rounds}", header, rows)
    save("session_resume", {"rounds": rounds, "first_text_ms": figures})


@asynccontextmanager
async def _store() -> AsyncIterator[SqliteTranscriptStore]:
    with empty_schema_blocking("bench") as schema:
        async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
            await SqliteConversationStore(database).create(conversation())
            yield SqliteTranscriptStore(database)


async def _measure(
    world: RealWorld, store: SqliteTranscriptStore, size_kb: int, rounds: int
) -> dict[str, float]:
    plain, stored = world.engine, SdkEngine(world.setup, world.tasks, transcripts=store)

    def elsewhere() -> SdkEngine:
        config_dir = Path(tempfile.mkdtemp(dir=world.setup.workspace.parent))
        return SdkEngine(
            replace(world.setup, config_dir=config_dir), world.tasks, transcripts=store
        )

    sessions = {FILES: plain, STORED: stored, ELSEWHERE: stored}
    asks: dict[str, Callable[[], Awaitable[float]]] = {}
    for side, engine in sessions.items():
        session_id = await _grow(engine, size_kb)

        async def resume(
            side: str = side, engine: SdkEngine = engine, session_id: str = session_id
        ) -> float:
            return await _first_text_s(elsewhere() if side == ELSEWHERE else engine, session_id)

        asks[side] = resume
    seconds: dict[str, list[float]] = {side: [] for side in asks}
    for number in range(rounds + 1):
        for side in list(asks)[:: -1 if number % 2 else 1]:
            seconds[side].append(await asks[side]())
    return {side: 1000 * median(of[1:]) for side, of in seconds.items()}


async def _grow(engine: SdkEngine, size_kb: int) -> str:
    """Make a session of a size, half of it said by the person and half by the model."""
    client = await engine.connect(MODEL, SessionOrigin())
    chars = min(_TURN_CHARS, size_kb * 500)
    for _ in range(size_kb * 500 // chars):
        run = await client.start_run(
            replace(prompt(script({"text": "word " * (chars // 5)}), Gate()), owner=_Owner())
        )
        async for _event in run.events():
            pass
    await client.close()
    assert client.session_id is not None
    return client.session_id


async def _first_text_s(engine: SdkEngine, session_id: str) -> float:
    began_s = time.perf_counter()
    client = await engine.connect(MODEL, SessionOrigin(resume=session_id))
    run = await client.start_run(replace(prompt(script({"text": "Here."}), Gate()), owner=_Owner()))
    first_s: float | None = None
    async for event in run.events():
        if first_s is None and isinstance(event, TextDelta):
            first_s = time.perf_counter() - began_s
    await client.close()
    assert first_s is not None
    return first_s
