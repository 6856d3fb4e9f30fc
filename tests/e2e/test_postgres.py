"""The real server with its conversations in PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import psycopg
import pytest

from tests.support.live_server import LiveClient, bash, running_server, script, started_server
from tests.support.postgres import (
    closed_database_blocking,
    new_database_blocking,
    plain_user_blocking,
)
from tests.support.program import one_sentence, run_app

pytestmark = pytest.mark.e2e

PASSWORD = "hunter2-of-the-database"
AT_SIGN = "p@ss-of-the-database"
IN_FILES = "Memory's vectors are in CANDOR_DATA_DIR, since only a superuser may add pgvector"
IN_POSTGRES = "Memory's vectors are in PostgreSQL."


@pytest.fixture
def url() -> Iterator[str]:
    with new_database_blocking(PASSWORD) as address:
        yield address


async def test_a_conversation_outlives_its_server(tmp_path: Path, url: str) -> None:
    """The server is killed in the middle of a turn; the data directory has no conversations."""
    async with running_server(tmp_path, database_url=url) as server, server.client() as client:
        told = await client.ask("Please remember the zebra.")
        conversation_id = told["conversation_id"]
        await client.wait_until("/memory/search?q=zebra", lambda found: found["items"])
        server.make_pipe("pipe")
        async with client.stream(script(bash("cat pipe")), conversation_id) as events:
            await events.until("tool.started")
            server.kill()
    assert not list((tmp_path / "data").glob("*.sqlite3*"))
    async with running_server(tmp_path, database_url=url) as server, server.client() as client:
        messages = (await client.get(f"/conversations/{conversation_id}/messages"))["messages"]
        assert messages[1]["result"]["reply"] == told["reply"]
        assert messages[-1]["result"]["cause"] == "crashed"
        found = await client.get("/conversations?q=ZEBRA")
        assert [one["id"] for one in found["conversations"]] == [conversation_id]
        assert (await client.get("/memory/search?q=zebra"))["items"]
        again = await client.ask("What did I say before?", conversation_id)
        assert again["outcome"] == "answered"
        assert not [notice for notice in again["notices"] if notice["code"] == "session_lost"]


async def test_what_is_near_in_meaning_is_found_in_the_database_after_a_restart(
    tmp_path: Path, url: str
) -> None:
    """The question shares no word with what was remembered."""
    options: dict[str, Any] = {"database_url": url, "embedder": "auto"}
    async with running_server(tmp_path, **options) as server, server.client() as client:
        await client.ask("Please remember that the cat sleeps on the sofa.")
        await client.wait_until("/memory/search?q=sofa", lambda found: found["items"])
    async with running_server(tmp_path, **options) as server, server.client() as client:
        found = await client.wait_until("/memory/search?q=猫在睡觉", lambda found: found["items"])
        assert "meaning" in found["items"][0]["why"]
        parts = (await client.http.get("/readyz")).json()["parts"]
        assert parts["memory"]["detail"] == IN_POSTGRES
        assert not (server.data_dir / "vectors").exists()
    doctor = run_app("doctor", directory=tmp_path, **options)
    assert IN_POSTGRES in doctor.stdout


async def test_a_server_whose_database_takes_no_vectors_starts_and_says_so(
    tmp_path: Path, url: str
) -> None:
    with plain_user_blocking(url) as theirs:
        options: dict[str, Any] = {"database_url": theirs, "embedder": "auto"}
        doctor = run_app("doctor", directory=tmp_path, **options)
        assert doctor.returncode == 0, doctor.stdout
        assert IN_FILES in doctor.stdout
        async with running_server(tmp_path, **options) as server, server.client() as client:
            parts = (await client.http.get("/readyz")).json()["parts"]
            assert parts["memory"]["detail"].startswith(IN_FILES)


async def test_without_its_database_a_server_says_so_and_goes_on_with_it(
    tmp_path: Path, url: str
) -> None:
    async with running_server(tmp_path, database_url=url) as server, server.client() as client:
        await client.ask("Hello.")
        server.tolerated += ["storage_unavailable", "database_lock_lost", "recall_failed"]
        with closed_database_blocking(url):
            parts = await ready(client, 503)
            assert parts["database"] != "ok"
            assert (await client.http.get("/healthz")).status_code == 200
            refused = await client.http.post("/chat", json={"message": "Are you there?"})
            assert refused.status_code == 503
            # seen later, when the database is back, it would hold up what is written then
            while "database_lock_lost" not in server.err_file.read_text("utf-8"):  # noqa: ASYNC110
                await anyio.sleep(0.05)
        await ready(client, 200)
        assert (await client.ask("Hello again."))["outcome"] == "answered"


async def ready(client: LiveClient, status: int) -> Any:
    """Wait until `/readyz` has this status; return the parts."""
    while (answer := await client.http.get("/readyz")).status_code != status:  # noqa: ASYNC110
        await anyio.sleep(0.05)
    return answer.json()["parts"]


def test_a_second_server_does_not_start(tmp_path: Path, url: str) -> None:
    with started_server(tmp_path / "one", database_url=url) as server:
        done = run_app("demo", directory=tmp_path / "other", database_url=url)
        assert done.returncode == 1
        assert one_sentence(done.stderr).startswith("Another Candor server uses the database")
        added = run_app("user", "add", "ann", directory=tmp_path / "one", database_url=url)
        assert (added.returncode, added.stderr) == (0, "")
        server.stop()
    with started_server(tmp_path / "other", database_url=url):
        pass
    listed = run_app("user", "list", directory=tmp_path / "other", database_url=url)
    assert listed.stdout.startswith("ann ")


def test_without_its_address_a_server_names_it(tmp_path: Path) -> None:
    sessions = tmp_path / "data" / "sessions" / "projects" / "ws"
    sessions.mkdir(parents=True)
    (sessions / "one.jsonl").touch()
    done = run_app("demo", directory=tmp_path)
    assert done.returncode == 1
    assert ", set CANDOR_DATABASE_URL again if the" in one_sentence(done.stderr)


def test_a_new_database_is_refused_where_there_are_conversations(tmp_path: Path, url: str) -> None:
    with started_server(tmp_path):
        pass
    done = run_app("demo", directory=tmp_path, database_url=url)
    assert done.returncode == 1
    assert "the data directory has conversations" in one_sentence(done.stderr)


@pytest.mark.parametrize(
    "address", ["postgresql://zoe:{}@127.0.0.1:9/candor", "postgresql://zoe:{}@[/candor"]
)
def test_an_address_that_leads_nowhere_is_one_sentence(tmp_path: Path, address: str) -> None:
    wrong: dict[str, Any] = {"database_url": address.format(PASSWORD)}
    done = run_app("demo", directory=tmp_path, **wrong)
    assert done.returncode == 1
    assert "CANDOR_DATABASE_URL" in one_sentence(done.stderr)
    assert PASSWORD not in done.stdout + done.stderr


MAY_CREATE = "GRANT CREATE ON DATABASE {database} TO {user}; "
REFUSED = {
    "without_rights": ("", "the user may not do that. It needs the right CREATE on the database"),
    "without_writing": (
        MAY_CREATE + "GRANT USAGE ON SCHEMA candor TO {user};"
        " GRANT SELECT ON ALL TABLES IN SCHEMA candor TO {user}",
        "the user may not do that",
    ),
    "newer": ("INSERT INTO candor.schema_version VALUES (999)", "a newer version"),
    "incomplete": ("DROP TABLE candor.nodes CASCADE", "a table is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_doctor_says_why_a_start_would_refuse_the_database(
    tmp_path: Path, url: str, case: str
) -> None:
    statements, why = REFUSED[case]
    with started_server(tmp_path, database_url=url):
        pass
    with new_user_blocking(url) as (user, theirs):
        database = urlsplit(url).path.removeprefix("/")
        on_database_blocking(url, statements.format(user=user, database=database))
        refused_alike(tmp_path, theirs if case.startswith("without") else url, why)


def test_doctor_refuses_another_encoding_and_makes_no_tables(tmp_path: Path, url: str) -> None:
    with new_database_blocking(PASSWORD, encoding="SQL_ASCII") as ascii_url:
        refused_alike(tmp_path, ascii_url, "its encoding is not UTF8")
    done = run_app("doctor", directory=tmp_path, database_url=url)
    assert done.returncode == 0, done.stdout
    made = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'candor%'"
    assert on_database_blocking(url, made) == []


def refused_alike(directory: Path, url: str, why: str) -> None:
    doctor = run_app("doctor", directory=directory, database_url=url)
    start = run_app("demo", directory=directory, database_url=url)
    assert (doctor.returncode, start.returncode) == (1, 1), doctor.stdout
    assert why in one_sentence(start.stderr)
    assert f"fault  {one_sentence(start.stderr)}" in doctor.stdout


def on_database_blocking(url: str, statements: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statements or "SELECT 1")
        return cursor.fetchall() if cursor.description else []


@contextmanager
def new_user_blocking(url: str) -> Iterator[tuple[str, str]]:
    """Lend a user without rights, and the database's address for it."""
    user = f"user_of_{urlsplit(url).path.removeprefix('/')}"
    on_database_blocking(url, f"CREATE ROLE {user} LOGIN")
    try:
        yield user, url.replace("//candor:", f"//{user}:").replace("&user=candor", "")
    finally:
        on_database_blocking(url, f"DROP OWNED BY {user}; DROP ROLE {user}")


async def test_the_password_reaches_no_agent_and_no_record(tmp_path: Path) -> None:
    with new_database_blocking(AT_SIGN) as url:
        assert quote(AT_SIGN, safe="") in url
        told = script({"text": f"It is {AT_SIGN}, isn't it?"})
        async with running_server(tmp_path, database_url=url) as server, server.client() as client:
            result = await client.ask(told)
            assert AT_SIGN not in result["reply"]
            for process in server.agents().values():
                assert not any("of-the-database" in value for value in process.environ().values())
            assert server.agents()
            assert "of-the-database" not in server.journal_text(result)
            assert "of-the-database" not in server.said()
        doctor = run_app("doctor", directory=tmp_path, database_url=url)
        assert doctor.returncode == 0, doctor.stdout
        assert "Conversations are in PostgreSQL 18" in doctor.stdout
        assert "of-the-database" not in doctor.stdout + doctor.stderr
