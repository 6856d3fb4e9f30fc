"""The commands `candor db`, on files and on a real PostgreSQL."""

import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest

from gateway.database.ends import Files, source_files
from gateway.database.parts import PARTS
from tests.support.live_server import running_server, started_server
from tests.support.postgres import new_database_blocking
from tests.support.program import environment, one_sentence, run_app, run_program

pytestmark = pytest.mark.e2e

PASSWORD = "hunter2-of-the-database"
TEXTS = ("Plover 与 grebe 😀", "before\0after", "\U0010ffff\U0010fffe and \U0010ffff\U0010ffff", "")
NOW = "2026-11-28T00:00:00.000Z"


@pytest.fixture
def url() -> Iterator[str]:
    with new_database_blocking(PASSWORD) as address:
        yield address


def fill_blocking(directory: Path) -> None:
    """Add rows to the tables that the conversations of the test leave empty."""
    with closing(sqlite3.connect(directory / "data" / "candor.sqlite3")) as connection:
        connection.create_function("grams", 2, lambda text, _owner: text)
        conversation, turn = connection.execute(
            "SELECT conversation_id, id FROM turns WHERE state = 'completed'"
        ).fetchone()
        for number, text in enumerate(TEXTS):
            connection.execute(
                "INSERT INTO idempotency VALUES ('local', ?, ?, ?, NULL)", (text, text, turn)
            )
            connection.execute(
                "INSERT INTO client_turns (user_id, thread, history, turn_id, conversation_id)"
                " VALUES ('local', ?, ?, ?, ?)",
                (text, text, turn, conversation),
            )
            connection.execute(
                "INSERT INTO user_quotas VALUES (?, 'daily_usd', ?)", (text, number / 3)
            )
            connection.execute("INSERT INTO users VALUES (?, 'user', ?, NULL)", (text, NOW))
            connection.execute(
                "INSERT INTO audit (at, actor, action, subject, details)"
                " VALUES (?, 'local', 'x', ?, '{}')",
                (NOW, text),
            )
            session, raw = (f"candor/{number}", ""), text.encode() + b"\0\xff"
            connection.execute(
                "INSERT INTO agent_transcripts VALUES (?, ?, 1, 1, ?)", (*session, text)
            )
            connection.execute(
                "INSERT INTO agent_entries VALUES (?, ?, 0, ?, ?)", (*session, text, raw)
            )
        connection.execute("INSERT INTO record_changes (seq, turn_id) VALUES (900, ?)", (turn,))
        connection.execute("DELETE FROM record_changes WHERE seq = 900")
        connection.commit()
    with closing(sqlite3.connect(directory / "data" / "memory.sqlite3")) as connection:
        for number, text in enumerate(TEXTS):
            connection.execute("INSERT INTO profiles VALUES (?, ?, ?)", (text, text, NOW))
            connection.execute(
                "INSERT INTO episodes VALUES (?, ?, 'local', 'r', 't', NULL, ?, 1, ?)",
                (7 * number + 1, f"epi_{number}", NOW, text),
            )
            connection.execute(
                "INSERT INTO episode_forms VALUES (?, ?)", (bytes([0, 255, number]), 7 * number + 1)
            )
            connection.execute(
                "INSERT INTO cases (rowid, case_id, owner_id, fingerprint, is_findable, lifecycle,"
                " revision, value) VALUES (?, ?, 'local', ?, 1, 'draft', 1, ?)",
                (number * 5 + 2, f"cas_{number}", bytes([number, 0]), text),
            )
            connection.execute(
                "INSERT INTO case_relations VALUES ('cas_0', ?, 'alike', ?)",
                (f"cas_{number}", number / 7),
            ) if number else None
        connection.commit()


def tables_of(directory: Path) -> dict[str, set[tuple[Any, ...]]]:
    """Return the rows of all tables that are copied."""
    found = {}
    with source_files(directory) as files:
        assert isinstance(files, Files)
        for part in PARTS:
            files.use(part)
            for table in part.tables:
                rows = list(files.rows(table, files.columns(table)))
                found[f"{part.name}.{table}"] = set(rows)
                assert len(rows) == len(found[f"{part.name}.{table}"])
            numbers = files.numbers().items()
            found[f"{part.name} numbers"] = {one for one in numbers if one[1]}
    return found


def test_a_data_directory_goes_to_postgresql_and_back(tmp_path: Path, url: str) -> None:
    conversation_id = anyio.run(begin, tmp_path)
    fill_blocking(tmp_path)
    before = tables_of(tmp_path / "data")
    bytes_before = [(tmp_path / "data" / part.file).read_bytes() for part in PARTS]
    done = run_app("db", "copy", "--to", "postgresql", directory=tmp_path, database_url=url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "candor.sqlite3 conversations: 1 rows" in done.stdout
    assert PASSWORD not in done.stdout
    assert [(tmp_path / "data" / part.file).read_bytes() for part in PARTS] == bytes_before
    assert tables_of(tmp_path / "data") == before
    again = run_app("db", "copy", "--to", "postgresql", directory=tmp_path, database_url=url)
    assert again.returncode == 1
    assert "is not empty: the table conversations" in one_sentence(again.stderr)

    for part in PARTS:
        (tmp_path / "data" / part.file).rename(tmp_path / part.file)
    back = run_app("db", "copy", "--to", "files", directory=tmp_path, database_url=url)
    assert (back.returncode, back.stderr) == (0, "")
    again = run_app("db", "copy", "--to", "files", directory=tmp_path, database_url=url)
    assert "The directory of CANDOR_DATA_DIR is not empty: " in one_sentence(again.stderr)
    assert tables_of(tmp_path / "data") == before
    for part in PARTS:
        (tmp_path / "data" / part.file).rename(tmp_path / f"back-{part.file}")

    anyio.run(partial(go_on, database_url=url), tmp_path, conversation_id)
    for part in PARTS:
        (tmp_path / f"back-{part.file}").rename(tmp_path / "data" / part.file)
    anyio.run(go_on, tmp_path, conversation_id)
    checked = run_app("db", "check", directory=tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")


async def begin(directory: Path) -> str:
    """Send a message and remember a fact; return the conversation."""
    async with running_server(directory) as server, server.client() as client:
        told = await client.ask("Please remember the zebra. 斑马 😀")
        await client.wait_until("/memory/search?q=zebra", lambda found: found["items"])
        return str(told["conversation_id"])


async def go_on(directory: Path, conversation_id: str, **settings: Any) -> None:
    """Start a server, find what was said and remembered, and continue the conversation."""
    async with running_server(directory, **settings) as server, server.client() as client:
        found = await client.get("/conversations?q=ZEBRA")
        assert [one["id"] for one in found["conversations"]] == [conversation_id]
        assert (await client.get("/conversations?q=斑马"))["conversations"]
        assert (await client.get("/memory/search?q=zebra"))["items"]
        answer = await client.ask("What did I say before?", conversation_id)
        assert answer["outcome"] == "answered"
        assert not [notice for notice in answer["notices"] if notice["code"] == "session_lost"]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("db", "{check,migrate,copy}"),
        ("user", "{add,list,role,disable,enable}"),
        ("quota", "{show,set,reset}"),
    ],
)
def test_a_command_without_its_subcommand_names_them(
    tmp_path: Path, command: str, named: str
) -> None:
    done = run_app(command, directory=tmp_path)
    assert done.returncode == 2
    *_, last = done.stderr.splitlines()
    assert last.endswith(f"the following arguments are required: {named}")


def test_every_table_is_copied_or_named_with_a_reason(tmp_path: Path) -> None:
    assert run_app("db", "migrate", directory=tmp_path).returncode == 0
    for part in PARTS:
        with closing(sqlite3.connect(tmp_path / "data" / part.file)) as connection:
            made = {
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
                if not name.startswith(("sqlite_", "search_words_", "item_words_"))
            }
        assert made <= {*part.tables, *part.left}
        assert set(part.tables) <= made
        assert not set(part.tables) & set(part.left)


@pytest.mark.parametrize("target", ["postgresql", "files"])
def test_a_row_that_differs_commits_nothing(tmp_path: Path, url: str, target: str) -> None:
    assert run_app("user", "add", "007", directory=tmp_path).returncode == 0
    assert run_app("db", "migrate", directory=tmp_path).returncode == 0
    other = tmp_path / "other"
    where: dict[str, Any]
    if target == "postgresql":
        where = {"directory": tmp_path, "database_url": url}
        assert run_app("db", "migrate", directory=other, database_url=url).returncode == 0
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "CREATE RULE broken AS ON INSERT TO candor.users"
                " DO ALSO UPDATE candor.users SET role = 'admin'"
            )
    else:
        where = {"directory": other, "database_url": url}
        done = run_app("db", "copy", "--to", "postgresql", directory=tmp_path, database_url=url)
        assert done.returncode == 0
        assert run_app("db", "migrate", directory=other).returncode == 0
        with closing(sqlite3.connect(other / "data" / "candor.sqlite3")) as file:
            file.execute("DROP TABLE users")
            file.execute(
                "CREATE TABLE users (id NUMERIC PRIMARY KEY, role, created_at, disabled_at)"
            )
    copied = run_app("db", "copy", "--to", target, **where)
    assert copied.returncode == 1, copied.stdout
    assert "The table users differs" in one_sentence(copied.stderr)
    if target == "postgresql":
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT count(*) FROM candor.users").fetchone()
            assert rows == (0,)
    else:
        with closing(sqlite3.connect(other / "data" / "candor.sqlite3")) as file:
            assert file.execute("SELECT count(*) FROM users").fetchone() == (0,)


KILLED = """
import os, signal, sys
from pathlib import Path
from gateway.database.transfer import copy_blocking
from gateway.settings import Settings

def say(line):
    if line.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

copy_blocking(sys.argv[1], Settings.from_environ(os.environ), say)
"""


@pytest.mark.parametrize("target", ["postgresql", "files"])
@pytest.mark.parametrize("where", ["candor.sqlite3 audit", "memory.sqlite3 memory_links"])
def test_a_copy_that_is_killed_leaves_an_empty_target(
    tmp_path: Path, url: str, target: str, where: str
) -> None:
    first = "files" if target == "postgresql" else "postgresql"
    source: dict[str, Any] = {} if first == "files" else {"database_url": url}
    assert run_app("user", "add", "ann", directory=tmp_path, **source).returncode == 0
    assert run_app("db", "migrate", directory=tmp_path, **source).returncode == 0
    program = tmp_path / "killed.py"
    program.write_text(KILLED, encoding="utf-8")
    env = environment(tmp_path, {"database_url": url}, {})
    killed = run_program([target, where], env, program=program)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    settings: dict[str, Any] = {"database_url": url} if target == "postgresql" else {}
    checked = run_app("db", "check", directory=tmp_path, **settings)
    assert checked.stdout.count("there is none yet") == 2
    again = run_app("db", "copy", "--to", target, directory=tmp_path, database_url=url)
    assert (again.returncode, again.stderr) == (0, "")
    assert "candor.sqlite3 users: 1 rows" in again.stdout


def test_a_running_server_is_not_copied(tmp_path: Path, url: str) -> None:
    with started_server(tmp_path):
        done = run_app("db", "copy", "--to", "postgresql", directory=tmp_path, database_url=url)
        assert done.returncode == 1
        assert "uses this data directory" in one_sentence(done.stderr)
    other = tmp_path / "other"
    with started_server(other, database_url=url):
        done = run_app("db", "copy", "--to", "postgresql", directory=tmp_path, database_url=url)
        assert done.returncode == 1
        assert "server uses the database" in one_sentence(done.stderr)
        target = tmp_path / "third"
        done = run_app("db", "copy", "--to", "files", directory=target, database_url=url)
        assert "server uses the database" in one_sentence(done.stderr)
        assert not list((target / "data").glob("*.sqlite3*"))


@pytest.mark.parametrize("is_file", [True, False])
def test_migrate_says_what_it_did_and_check_what_is_there(
    tmp_path: Path, url: str, *, is_file: bool
) -> None:
    where: dict[str, Any] = {"directory": tmp_path} | ({} if is_file else {"database_url": url})
    missing = run_app("db", "check", **where)
    assert (missing.returncode, missing.stdout.count("there is none yet")) == (1, 2)
    made = run_app("db", "migrate", **where)
    assert (made.returncode, made.stdout.count("made, version")) == (0, 2)
    assert run_app("db", "migrate", **where).stdout.count("already") == 2
    assert run_app("user", "add", "ann", **where).returncode == 0
    checked = run_app("db", "check", **where)
    assert checked.returncode == 0
    assert "  users: 1 rows" in checked.stdout.splitlines()
    if is_file:
        path = tmp_path / "data" / "candor.sqlite3"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version=900")
    else:
        with psycopg.connect(url) as postgres:
            postgres.execute("INSERT INTO candor.schema_version (version) VALUES (900)")
    newer = run_app("db", "check", **where)
    assert newer.returncode == 1
    assert "newer than this program's" in newer.stdout
    refused = run_app("db", "migrate", **where)
    assert refused.returncode == 1
    assert "newer version" in refused.stderr


@pytest.mark.parametrize("table", ["events", "nodes"])
def test_check_names_a_table_that_is_missing(tmp_path: Path, table: str) -> None:
    """`nodes` is of those whose rows are not counted."""
    assert run_app("db", "migrate", directory=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "data" / "candor.sqlite3")) as connection:
        connection.execute(f"DROP TABLE {table}")
    checked = run_app("db", "check", directory=tmp_path)
    assert checked.returncode == 1
    told = f"candor.sqlite3: The database is damaged: it lacks the table {table}."
    assert told in checked.stdout.splitlines()
    assert "memory.sqlite3: version" in checked.stdout
