"""How long a session takes to be resumed on another server, against the same on its own: until the first text.

An engine for each side, on one demo model, in turns in one process. `files`: a server of SQLite. `stored`: a server
whose session is in PostgreSQL too, and in its own file. `elsewhere`: a server whose directory is empty, so
that the session is read from PostgreSQL and written to its file first. Sessions of two sizes. Beside it, what of that
is the look at the store and the file, before the agent is started.
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
from gateway.conversations.sql.agent_transcripts import SqlTranscriptStore
from gateway.conversations.sql.conversations import ConversationStore
from gateway.engine.events import TextDelta
from gateway.engine.protocol import SessionOrigin
from gateway.engine.sdk import SdkEngine
from gateway.engine.session_mirror import find_session
from gateway.ids import ConversationId
from tests.conformance.suites.conversation_values import conversation
from tests.support.engine_talk import Gate, prompt, script
from tests.support.engine_world import MODEL, RealWorld, real_world
from tests.support.postgres import empty_schema_blocking, open_schema
from tests.support.stores import POSTGRES_MIGRATIONS

FILES, STORED, ELSEWHERE = "files", "stored", "elsewhere"
_SIZES_KB = (100, 800)
_TURN_CHARS = 200_000
_LOOKS = 50
_AT_STORE = (STORED, ELSEWHERE)


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
    looks: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for size_kb in _SIZES_KB:
            root = Path(name) / str(size_kb)
            await anyio.Path(root).mkdir()
            async with real_world(root) as world, _store() as store:
                figures[f"{size_kb} KB"], looks[f"{size_kb} KB"] = await _measure(
                    world, store, size_kb, rounds
                )
    rows = [
        [size, *(f"{of[side]:.0f}" for side in of), f"{of[ELSEWHERE] / of[FILES]:.2f}"]
        for size, of in figures.items()
    ]
    header = ["session", FILES, STORED, ELSEWHERE, "elsewhere / files"]
    show(f"Resume to the first text, ms, medians of {rounds}", header, rows)
    looked = [[size, *(f"{of[side]:.1f}" for side in of)] for size, of in looks.items()]
    show(f"Bringing the file up to date, ms, medians of {_LOOKS}", ["session", *_AT_STORE], looked)
    save("session_resume", {"rounds": rounds, "first_text_ms": figures, "file_ms": looks})


@asynccontextmanager
async def _store() -> AsyncIterator[SqlTranscriptStore]:
    with empty_schema_blocking("bench") as schema:
        async with open_schema(schema, POSTGRES_MIGRATIONS) as database:
            await ConversationStore(database).create(conversation())
            yield SqlTranscriptStore(database)


async def _measure(
    world: RealWorld, store: SqlTranscriptStore, size_kb: int, rounds: int
) -> tuple[dict[str, float], dict[str, float]]:
    plain, stored = world.engine, SdkEngine(world.setup, world.tasks, transcripts=store)

    def elsewhere() -> SdkEngine:
        config_dir = Path(tempfile.mkdtemp(dir=world.setup.workspace.parent))
        return SdkEngine(
            replace(world.setup, config_dir=config_dir), world.tasks, transcripts=store
        )

    engines = {FILES: plain, STORED: stored, ELSEWHERE: stored}
    sessions = {side: await _grow(engine, size_kb) for side, engine in engines.items()}
    asks: dict[str, Callable[[], Awaitable[float]]] = {}
    for side, engine in engines.items():

        async def resume(side: str = side, engine: SdkEngine = engine) -> float:
            return await _first_text_s(elsewhere() if side == ELSEWHERE else engine, sessions[side])

        asks[side] = resume
    seconds: dict[str, list[float]] = {side: [] for side in asks}
    for number in range(rounds + 1):
        for side in list(asks)[:: -1 if number % 2 else 1]:
            seconds[side].append(await asks[side]())
    first_ms = {side: 1000 * median(of[1:]) for side, of in seconds.items()}
    return first_ms, {
        side: await _file_ms(world, store, sessions[side], is_there=side == STORED)
        for side in _AT_STORE
    }


async def _file_ms(
    world: RealWorld, store: SqlTranscriptStore, session_id: str, *, is_there: bool
) -> float:
    seconds = []
    for _ in range(_LOOKS):
        with tempfile.TemporaryDirectory(dir=world.setup.workspace.parent) as name:
            config_dir = world.setup.config_dir if is_there else Path(name)
            assert config_dir is not None
            began_s = time.perf_counter()
            found = await find_session(store, config_dir, world.setup.workspace, session_id)
            seconds.append(time.perf_counter() - began_s)
            assert found is not None
    return 1000 * median(seconds)


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
