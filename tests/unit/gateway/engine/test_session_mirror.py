"""What of a session is stored and when, and from where it is resumed; with real files and a real store."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.conversations.sql.agent_transcripts import SqlTranscriptStore
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.leases import LeaseStore
from gateway.engine.protocol import EngineUnavailable
from gateway.engine.session_files import folder_of, read_session_blocking
from gateway.engine.session_mirror import FoundSession, SessionMirror, find_session, stored_name
from gateway.engine.session_sweep import sweep_sessions
from gateway.ids import ConversationId
from gateway.transcripts import MAIN
from memory.errors import StoreUnavailable
from tests.conformance.suites.conversation_values import conversation
from tests.conformance.suites.leases import HERE, LONG_MS, OVER_MS, THERE, A
from tests.support.stores import open_file

ID = "11111111-1111-4111-8111-111111111111"
NAME = stored_name(ID)
SUB = "subagents/agent-7"
Line = dict[str, Any]


def line(uuid: str | None, **more: Any) -> Line:
    return {"type": "user", **({"uuid": uuid} if uuid else {}), **more}


COST = line(None, totalCostUSD=0.5)


@dataclass
class Owner:
    """A turn under the first epoch of the conversation's lease."""

    conversation_id: ConversationId = A
    epoch: int = 1
    is_stored: bool = True

    async def wait_decided(self) -> bool:
        await anyio.lowlevel.checkpoint()
        return self.is_stored


@dataclass
class World:
    """A store, the directory of one server, and a conversation that this server holds."""

    store: SqlTranscriptStore
    leases: LeaseStore
    config_dir: Path
    workspace: Path
    folder: str
    lost: list[tuple[ConversationId, int]]
    owner: Owner = field(default_factory=Owner)

    @property
    def file(self) -> Path:
        return self.file_in(self.config_dir)

    def file_in(self, config_dir: Path) -> Path:
        return config_dir / "projects" / self.folder / f"{ID}.jsonl"

    def write(self, *lines: Line, of: str = MAIN) -> None:
        path = self.file if of == MAIN else (self.file.with_suffix("") / of).with_suffix(".jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in lines))

    def read(self) -> list[Line]:
        return [json.loads(text) for text in self.file.read_text().splitlines()]

    async def stored(self, of: str = MAIN) -> list[Line] | None:
        lines = await self.store.load(NAME, of)
        return None if lines is None else [json.loads(text) for text in lines]

    async def find(self, at: Path | None = None) -> FoundSession | None:
        return await find_session(self.store, at or self.config_dir, self.workspace, ID)

    async def resume(self) -> SessionMirror:
        """Return what stores for an agent that resumes the session, and has the turn's prompt."""
        mirror = SessionMirror(self.store, self.config_dir, await self.find())
        assert await mirror.begin(self.owner)
        return mirror

    async def append(self, mirror: SessionMirror, *lines: Line, of: str | None = None) -> None:
        key: Any = {"project_key": self.folder, "session_id": ID, **({"subpath": of} if of else {})}
        await mirror.append(key, list(lines))


@asynccontextmanager
async def world(root: Path) -> AsyncIterator[World]:
    lost: list[tuple[ConversationId, int]] = []
    config_dir, workspace = root / "sessions", root / "ws"
    config_dir.mkdir()
    async with open_file(root) as database:
        await ConversationStore(database).create(conversation())
        leases = LeaseStore(database)
        await leases.join(HERE, ttl_ms=LONG_MS)
        await leases.take(HERE, A)
        store = SqlTranscriptStore(database, lambda *told: lost.append(told))
        folder = await anyio.to_thread.run_sync(folder_of, workspace)
        yield World(store, leases, config_dir, workspace, folder, lost)


async def test_a_session_that_nobody_has_is_not_found(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        assert await here.find() is None


async def test_a_session_older_than_the_store_is_stored_whole_and_found_elsewhere(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        here.write(line("u1"), COST, line("u2"))
        here.write(line("s1"), of=SUB)
        meta = here.file.with_suffix("") / f"{SUB}.meta.json"
        meta.write_text('{"agentType": "general-purpose"}')
        with here.file.open("a") as opened:
            opened.write('{"type":"user","uuid":"cut o')
        await here.resume()
        assert await here.stored() == [line("u1"), COST, line("u2")]
        there = tmp_path / "elsewhere"
        found = await here.find(there)
        assert found == FoundSession(ID, here.folder, 3, is_ahead=False)
        file = here.file_in(there)
        read = await anyio.to_thread.run_sync(read_session_blocking, file)
        assert {of: len(lines) for of, lines in read.items()} == {MAIN: 3, SUB: 2}
        told = (file.with_suffix("") / f"{SUB}.meta.json").read_text()
        assert json.loads(told) == {"agentType": "general-purpose"}
        assert file.stat().st_mode & 0o077 == 0


async def test_the_list_of_tasks_follows_as_it_is_now(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        there = tmp_path / "elsewhere"
        mine, theirs = (directory / "tasks" / ID for directory in (here.config_dir, there))
        for folder, names in (
            (mine, (".lock", "1.json", "2.json")),
            (theirs, ("1.json", "3.json")),
        ):
            folder.mkdir(parents=True)
            for name in names:
                (folder / name).write_text(f"{name} of {folder.parents[1].name}")
        mirror = await here.resume()
        await mirror.begin(here.owner)
        await here.append(mirror, line("u1"))
        (mine / "2.json").write_text("done")
        await here.append(mirror, line("u2"))
        await here.append(mirror, line("u3"))
        assert len(await here.stored(of="tasks") or []) == 2
        await here.find(there)
        read = {path.name: path.read_text() for path in theirs.iterdir()}
        assert read == {"1.json": "1.json of sessions", "2.json": "done"}


async def test_a_file_that_has_all_that_is_stored_stays_as_it_is(tmp_path: Path) -> None:
    """It also has what the SDK does not hand over, such as what the session has cost."""
    async with world(tmp_path) as here:
        mirror = await here.resume()
        await here.append(mirror, line("u1"), line("u2"))
        here.write(line("u1"), line("u2"), COST)
        found = await here.find()
        assert found is not None
        assert not found.is_ahead
        assert here.read() == [line("u1"), line("u2"), COST]


@pytest.mark.parametrize("uuids", [("u1",), (), ("u1", "other")], ids=["behind", "none", "apart"])
async def test_a_file_without_what_another_server_stored_is_written_anew(
    tmp_path: Path, uuids: tuple[str, ...]
) -> None:
    async with world(tmp_path) as here:
        await here.append(await here.resume(), line("u1"), line("u2"))
        if uuids:
            here.write(*map(line, uuids))
        await here.resume()
        assert here.read() == await here.stored() == [line("u1"), line("u2")]


@pytest.mark.parametrize(
    "stored", [("u1", "u2"), ("u1", "u3"), (None,)], ids=["end", "middle", "all"]
)
async def test_what_was_written_and_not_stored_is_stored_before_the_next_prompt(
    tmp_path: Path, stored: tuple[str | None, ...]
) -> None:
    """The server was killed in between, or the store could not be written."""
    async with world(tmp_path) as here:
        await here.append(await here.resume(), *map(line, stored))
        here.write(line("u1"), line("u2"), line("u3"), COST)
        await here.resume()
        assert await here.stored() == here.read() == [line("u1"), line("u2"), line("u3"), COST]


async def test_entries_that_the_sdk_gives_up_come_with_the_next_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as here:
        mirror = await here.resume()
        await here.append(mirror, line("u1"))
        with monkeypatch.context() as broken:
            broken.setattr(here.store, "append", failing)
            key: Any = {"project_key": here.folder, "session_id": ID}
            batch = [line("u2")]
            for _ in range(3):
                with pytest.raises(StoreUnavailable):
                    await mirror.append(key, batch)
        here.write(line("u1"), line("u2"), line("u3"))
        await here.append(mirror, line("u3"))
        assert await here.stored() == [line("u1"), line("u2"), line("u3")]


async def test_what_a_sub_agent_writes_may_be_what_comes_next(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        mirror = await here.resume()
        await here.append(mirror, line("u1"))
        here.owner.is_stored = False
        await here.append(mirror, line("u2"))
        here.owner.is_stored = True
        here.write(line("u1"), line("u2"))
        here.write(line("s1"), of=SUB)
        await here.append(mirror, line("s1"), of=SUB)
        assert await here.stored() == [line("u1"), line("u2")]
        assert await here.stored(SUB) == [line("s1")]
        await here.leases.join(THERE, ttl_ms=LONG_MS)
        await here.leases.release(HERE, A)
        await here.leases.take(HERE, A)
        assert await mirror.begin(Owner(epoch=2)), "it knows all that is stored"


async def test_entries_that_the_sdk_gave_up_last_come_before_the_next_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as here:
        mirror = await here.resume()
        await here.append(mirror, line("u1"))
        with monkeypatch.context() as broken:
            broken.setattr(here.store, "append", failing)
            with pytest.raises(StoreUnavailable):
                await here.append(mirror, line("u2"))
        here.write(line("u1"), line("u2"))
        assert await mirror.begin(Owner())
        assert await here.stored() == [line("u1"), line("u2")]


async def failing(*_: object) -> None:
    await anyio.lowlevel.checkpoint()
    raise StoreUnavailable("The database cannot be written.")


async def test_a_server_that_lost_the_conversation_stores_nothing_more(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        mirror = await here.resume()
        await here.append(mirror, line("u1"))
        await here.leases.beat(HERE, ttl_ms=OVER_MS)
        await here.leases.join(THERE, ttl_ms=LONG_MS)
        await here.leases.take(THERE, A)
        await here.append(mirror, line("u2"))
        await here.append(mirror, line("u3"))
        assert here.lost == [(A, 1)]
        assert await here.stored() == [line("u1")]


async def test_an_agent_that_knows_less_than_is_stored_gets_no_prompt(tmp_path: Path) -> None:
    """It was woken before another server held the conversation for a while."""
    async with world(tmp_path) as here:
        here.write(line("u1"))
        await here.append(await here.resume(), line("u1"))
        woken = SessionMirror(here.store, here.config_dir, await here.find())
        await here.append(await here.resume(), line("u2"))
        assert not await woken.begin(Owner())


async def test_without_a_turn_nothing_is_stored_and_a_refused_one_comes_with_the_next(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as here:
        mirror = SessionMirror(here.store, here.config_dir)
        await here.append(mirror, line("warm-up"))
        assert await mirror.begin(Owner(is_stored=False))
        await here.append(mirror, line("u1"))
        assert await here.stored() is None
        here.write(line("u1"), line("u2"))
        assert await mirror.begin(Owner())
        await here.append(mirror, line("u2"))
        assert await here.stored() == [line("u1"), line("u2")]


async def test_the_files_of_a_session_that_another_server_deleted_go(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        here.write(line("u1"))
        here.write(line("s1"), of=SUB)
        kept = here.file.with_name(f"{'2' * 8}-1111-4111-8111-{'1' * 12}.jsonl")
        kept.write_text(here.file.read_text())
        await here.append(await here.resume(), line("u1"))
        await sweep_sessions(here.store, lambda: [here.config_dir])
        assert here.file.exists()
        await here.store.delete(NAME)
        await sweep_sessions(here.store, lambda: [here.config_dir])
        assert [path.name for path in here.file.parent.iterdir()] == [kept.name]


def link_folder(here: World, outside: Path) -> None:
    here.file.parent.parent.mkdir(exist_ok=True)
    here.file.parent.symlink_to(outside)


def link_file(here: World, outside: Path) -> None:
    here.file.parent.mkdir(parents=True)
    here.file.symlink_to(outside / here.file.name)


@pytest.mark.parametrize("link", [link_folder, link_file])
async def test_no_link_of_an_agents_leads_out(
    tmp_path: Path, link: Callable[[World, Path], None]
) -> None:
    """Agents write in the folder of their sessions, but the server may read and write more."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{ID}.jsonl").write_text(json.dumps(line("secret")))
    async with world(tmp_path) as here:
        link(here, outside)
        mirror = SessionMirror(here.store, here.config_dir, await here.find())
        assert not await mirror.begin(here.owner)
        assert await here.stored() is None
        await here.store.append(NAME, MAIN, [], (A, 1))
        await here.append(SessionMirror(here.store, here.config_dir), line("u1"))
        other = SessionMirror(here.store, here.config_dir)
        await other.begin(here.owner)
        await here.append(other, line("u1"))
        if link is link_folder:
            with pytest.raises(EngineUnavailable):
                await here.find()
        else:
            await here.find()
        assert (outside / f"{ID}.jsonl").read_text() == json.dumps(line("secret"))
