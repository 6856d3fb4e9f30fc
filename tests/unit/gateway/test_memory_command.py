"""What `python app.py memory` does where the server has a backend, and beside that server."""

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.http.memory_bodies import read_episode
from gateway.memory import memory_command
from gateway.settings import Embedder, Memu, Settings
from tests.support.episodes import open_memory, recorder_on, turn_intents

EPISODE = {"episode_type": "howto", "title": "Keys", "sections": {"recipe": "Turn it left twice."}}


def settings_in(
    directory: Path, memu: Memu = "off", embedder: Embedder = "multilingual"
) -> Settings:
    return Settings(
        workspace=directory / "workspace",
        data_dir=directory / "data",
        memu=memu,
        memu_url="http://127.0.0.1:9",
        embedder=embedder,
    )


def run(settings: Settings, *args: str, given: Any = "") -> tuple[int, str]:
    out = io.StringIO()
    text = given if isinstance(given, str) else json.dumps(given)
    source = io.BytesIO(text.encode())
    code = memory_command(settings, (), read_episode).run(args, source=source, out=out)
    return code, out.getvalue()


def rows(settings: Settings, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(settings.data_dir / "memory.sqlite3")) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize(
    ("memu", "embedder", "names"),
    [
        ("cli", "multilingual", ["memu", "vectors"]),
        ("server", "multilingual", ["memu_server", "vectors"]),
        ("cli", "none", ["memu"]),
    ],
)
def test_what_it_writes_is_for_the_servers_backends_too(
    tmp_path: Path, memu: Memu, embedder: Embedder, names: list[str]
) -> None:
    settings = settings_in(tmp_path, memu, embedder)
    assert run(settings, "write", given=EPISODE)[0] == 0
    assert rows(settings, "SELECT backend FROM outbox ORDER BY 1") == [(name,) for name in names]


def test_it_leaves_the_servers_turns_and_the_notes_to_the_server(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "cli")
    (settings.workspace / "memory").mkdir(parents=True)
    (settings.workspace / "memory" / "tea.md").write_text("# Tea\n", encoding="utf-8")
    settings.data_dir.mkdir()

    async def end_a_turn() -> None:
        async with open_memory(settings.data_dir) as database:
            await recorder_on(database).record_intents(turn_intents("trn_1", command="ls"))

    anyio.run(end_a_turn)
    for _ in range(3):
        assert run(settings, "search", "tea")[0] == 0
        assert run(settings, "write", given=EPISODE)[0] == 0
    assert rows(settings, "SELECT turn_id, remembered_at FROM ended_turns") == [("trn_1", None)]
    assert rows(settings, "SELECT name FROM note_files") == []


@pytest.mark.parametrize("name", ["vectors", "memu"])
def test_everything_is_delivered_to_a_backend_once_more(tmp_path: Path, name: str) -> None:
    settings = settings_in(tmp_path, "cli")
    run(settings, "write", given=EPISODE)
    with closing(sqlite3.connect(settings.data_dir / "memory.sqlite3")) as connection, connection:
        connection.execute("UPDATE outbox SET status = 'delivered', attempts = 1")
    waiting = "SELECT backend, operation, attempts FROM outbox WHERE status = 'pending'"
    assert rows(settings, waiting) == []
    code, out = run(settings, "redeliver", name)
    assert (code, out) == (0, f"1 item is delivered to {name} again by the server.\n")
    assert rows(settings, waiting) == [(name, "put", 0)]


def test_only_a_backend_that_is_set_can_be_named(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "cli")
    code, out = run(settings, "redeliver", "memu_server")
    assert (code, out) == (2, "There is no backend memu_server; there are vectors, memu.\n")
