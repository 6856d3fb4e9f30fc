"""What operators approved, where it is kept in PostgreSQL: it counts at all servers of a database.

    configuration   files of a workspace, each with the digest of what was approved
    mcp_tool        tools of an MCP server, each with the definition that was accepted

With SQLite it is in files of the data directory. Here these are copies, which are written anew when
the rows change. What can be read from neither is not approved.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio
import anyio.to_thread
from anyio import from_thread

from gateway.errors import StartError
from gateway.mcp_servers.accepted_tools import MCP_FOLDER, AcceptedTools, tools_of, value_of
from gateway.mcp_servers.definitions import Definitions
from gateway.settings import Settings
from gateway.storage import open_storage, where_to_look
from gateway.trust import (
    TrustReport,
    approvals_file,
    read_approvals_blocking,
    write_approvals_blocking,
)
from gateway.users.model import Act, Action, act_of_command
from gateway.users.sql.audit import record_blocking
from memory.clock import Now, utc_now
from memory.errors import StoreUnavailable
from memory.stores.database import Connection, SqlDatabase
from policies.configuration import digest_of

_log = logging.getLogger(__name__)

Kind = Literal["configuration", "mcp_tool"]
Approved: TypeAlias = Mapping[str, Mapping[str, str]]
"""Values by place and name: digests by workspace and path, definitions by server and tool."""

_LOOK_S: Final = 2.0
"""How often a server looks for what was approved at another one."""
_CANNOT: Final = "What was approved cannot be kept beside {file} ({reason})."
_KEPT_HERE: Final = ("", "", "here")
_ACTIONS: Final[Mapping[Kind, Action]] = {
    "configuration": "configuration.approved",
    "mcp_tool": "tool.accepted",
}


class SharedApprovals:
    """The rows, and the copies in one data directory."""

    def __init__(self, database: SqlDatabase, data_dir: Path, now: Now) -> None:
        self._database = database
        self._now = now
        self._file = approvals_file(data_dir)
        self._tools = AcceptedTools(data_dir / MCP_FOLDER)
        self._copied: dict[Kind, Approved] = {}
        self._copying = anyio.Lock(fast_acquire=True)

    async def begin(self) -> None:
        """Keep here from now on what the files have, unless that was done before; then copy.

        Raise `StartError` if the files cannot be read or written.
        """
        try:
            for kind in _ACTIONS:
                if not await self._database.row("SELECT 1 FROM approved WHERE kind = ?", (kind,)):
                    found = await anyio.to_thread.run_sync(self._read_blocking, kind)
                    await self._add_found(kind, found)
            await self.copy()
        except OSError as exc:
            raise StartError(_CANNOT.format(file=self._file, reason=exc.strerror)) from exc

    async def run(self) -> None:
        """Copy what changed until cancelled."""
        while True:
            await anyio.sleep(_LOOK_S)
            try:
                await self.copy()
            except (StoreUnavailable, StartError, OSError) as exc:
                _log.warning("approvals_not_copied", extra={"reason": str(exc)})

    async def copy(self) -> None:
        """Write the files anew if the rows changed. Raise `OSError` if they cannot be written."""
        async with self._copying:
            for kind in _ACTIONS:
                rows = await self._database.rows(
                    "SELECT place, name, value FROM approved WHERE kind = ? AND place <> ''"
                    " ORDER BY place, name",
                    (kind,),
                )
                approved: dict[str, dict[str, str]] = {}
                for row in rows:
                    approved.setdefault(row["place"], {})[row["name"]] = row["value"]
                if approved != self._copied.get(kind):
                    await anyio.to_thread.run_sync(self._write_blocking, kind, approved)
                    self._copied[kind] = approved

    async def approve(self, kind: Kind, place: str, values: Mapping[str, str], act: Act) -> None:
        """Approve exactly these values, and copy; what was approved by the same names before counts
        no more.
        """
        await self._database.write(lambda writer: _put_blocking(writer, kind, place, values, act))
        await self.copy()

    def accept_first_blocking(self, server: str, tools: Definitions) -> None:
        """Accept the tools of an MCP server that is seen for the first time, and copy; what another
        server of the database has accepted stays. Called in a worker thread.
        """
        from_thread.run(self._add_found, "mcp_tool", {server: _values_of(tools)})
        from_thread.run(self.copy)

    async def _add_found(self, kind: Kind, found: Approved) -> None:
        def work(writer: Connection) -> None:
            act = Act(by="", at=self._now())
            writer.execute(
                "INSERT INTO approved (place, name, value, kind) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (*_KEPT_HERE, kind),
            )
            for place, values in found.items():
                rows = writer.execute(
                    "SELECT name FROM approved WHERE kind = ? AND place = ?", (kind, place)
                ).fetchall()
                known = {row["name"] for row in rows}
                new = {name: value for name, value in values.items() if name not in known}
                _put_blocking(writer, kind, place, new, act)

        await self._database.write(work)

    def _read_blocking(self, kind: Kind) -> Approved:
        if kind == "configuration":
            return read_approvals_blocking(self._file)
        accepted = self._tools.accepted_blocking()
        return {server: _values_of(tools) for server, tools in accepted.items()}

    def _write_blocking(self, kind: Kind, approved: Approved) -> None:
        if kind == "configuration":
            write_approvals_blocking(self._file, approved)
        else:
            self._tools.replace_blocking(
                {server: tools_of(values) for server, values in approved.items()}
            )


async def open_shared_approvals(
    settings: Settings, database: SqlDatabase, now: Now
) -> SharedApprovals | None:
    """Return what is approved at all servers, of which there are copies then; None with SQLite."""
    if settings.database_url is None:
        return None
    shared = SharedApprovals(database, settings.data_dir, now)
    await shared.begin()
    return shared


def _put_blocking(
    writer: Connection, kind: Kind, place: str, values: Mapping[str, str], act: Act
) -> None:
    for name, value in values.items():
        writer.execute(
            "INSERT INTO approved (kind, place, name, value) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (kind, place, name) DO UPDATE SET value = excluded.value",
            (kind, place, name, value),
        )
        digest = value if kind == "configuration" else digest_of(value.encode())
        record_blocking(writer, act, _ACTIONS[kind], name, of=place, digest=digest)


def copy_approvals_blocking(settings: Settings) -> None:
    """Bring the copies of a data directory up to date; do nothing without PostgreSQL.

    Raise `StartError` if that fails, as all of these functions do.
    """
    if settings.database_url is not None:
        _run_blocking(settings, SharedApprovals.begin)


def approve_files_blocking(settings: Settings, report: TrustReport) -> None:
    """Approve exactly the contents that a report shows, at all servers."""
    _approve_blocking(settings, "configuration", str(report.workspace), report.wanted)


def accept_tools_blocking(settings: Settings, server: str, tools: Definitions) -> None:
    """Accept exactly these definitions, at all servers."""
    _approve_blocking(settings, "mcp_tool", server, _values_of(tools))


def _approve_blocking(
    settings: Settings, kind: Kind, place: str, values: Mapping[str, str]
) -> None:
    act = act_of_command(utc_now())
    _run_blocking(settings, lambda shared: shared.approve(kind, place, values, act))


def _run_blocking(settings: Settings, work: Callable[[SharedApprovals], Awaitable[None]]) -> None:
    async def run() -> None:
        database = await open_storage(settings)
        try:
            await work(SharedApprovals(database, settings.data_dir, utc_now))
        finally:
            await database.close()

    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        anyio.run(run)
    except (StoreUnavailable, OSError) as exc:
        raise StartError(f"{exc} {where_to_look(settings)}") from exc


def _values_of(tools: Definitions) -> Mapping[str, str]:
    return {name: value_of(tool) for name, tool in tools.items()}
