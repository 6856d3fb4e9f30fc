"""This server among those of its database: how it joins them, and how they learn of its end.

A process is named by the start of its system, its space of process ids (containers on one system
have different ones), its id and its start, so that none is taken for another that came later. Its
start is counted from that of the system: a time of day would change when the clock is set.
"""

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from secrets import token_urlsafe
from typing import Final

from anyio.to_thread import run_sync

from gateway.conversations.doorbell import Doorbell
from gateway.conversations.feed import EventFeed
from gateway.conversations.feed_follower import FeedFollower
from gateway.conversations.leases import Node
from gateway.conversations.sql.events import EventStore
from gateway.conversations.sql.leases import Clock, LeaseStore
from gateway.engine.processes import owner_of
from gateway.engine.watchdog import be_watched
from gateway.errors import StartError
from gateway.ids import NodeId, new_incarnation
from gateway.instance import node_of_blocking
from gateway.settings import PREFIX, Settings
from gateway.storage import SCHEMA, notifications
from gateway.turns.ownership import LONE, Ownership, heart_among_others
from gateway.turns.workspace_lock import LocksOfServers
from memory.stores.database import SqlDatabase

_log = logging.getLogger(__name__)

_OF_EACH: Final = frozenset(
    {
        "host",
        "port",
        "data_dir",
        "node_url",
        "database_url",
        "max_live_clients",
        "max_live_mb",
        "prewarmed_clients",
    }
)
"""Settings that each node has of its own."""
_ENDED: Final = frozenset("ZXx")
"""States of processes that have ended: zombies, and those that are about to go."""
_STARTED: Final = 22 - 3
"""The place of a process's start after its state, which is the third field of its line."""


async def join(
    settings: Settings,
    database: SqlDatabase,
    node_id: NodeId | None = None,
    clock: Clock | None = None,
) -> Ownership:
    """Join the servers of a database; what this one's last process held may be taken by any then.

    `clock` is asked for the database's time. `node_id` None: that of the data directory, which is
    locked. Raise `StartError` if the directory cannot be used, or another living server has the
    URL that others are to reach this one at.
    """
    if node_id is None:
        node_id = await run_sync(node_of_blocking, settings.data_dir, database.engine)
    leases = LeaseStore(database, clock)
    url = settings.node_url
    if url is not None:
        await _require_own_url(url, node_id, leases)
    node = Node(
        id=node_id,
        incarnation=new_incarnation(),
        url=url,
        secret=None if url is None else token_urlsafe(),
        process=None if url is None else await run_sync(own_process_blocking),
    )
    ownership = Ownership(
        leases,
        node,
        is_shared=database.engine != "sqlite",
        has_ended=has_ended,
        heart=LONE if url is None else heart_among_others(settings.node_ttl_s),
    )
    await ownership.begin()
    if url is not None:
        digests = await run_sync(digest_settings_blocking, settings)
        await leases.note_settings(node, json.dumps(digests))
        # after that, so that of two nodes that start together one finds the other
        if others := await find_different(settings, leases):
            _log.warning(
                "node_settings_differ",
                extra={"nodes": list(others.urls), "settings": list(others.variables)},
            )
    return ownership


async def _require_own_url(url: str, node_id: NodeId, leases: LeaseStore) -> None:
    for other in await leases.living():
        if other.url != url or other.id == node_id:
            continue
        if other.process is None or not await has_ended(other.process):
            raise StartError(
                f"CANDOR_NODE_URL is {url}, at which another server is reached: each needs its own."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentNodes:
    """Other nodes whose settings differ from this one's, though all must have the same."""

    urls: Sequence[str]
    variables: Sequence[str]
    """The settings in which any of them differs."""


def digest_settings_blocking(settings: Settings) -> Mapping[str, str]:
    """Return a digest of each setting that must be the same at all nodes, by its variable.

    That of a file is made of its content. That of a secret, and of the tokens file, which a running
    server reads again, says only whether it is set.
    """
    found = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        told = repr(value).encode()  # the same for all secrets
        if field.name == "tokens_file":
            told = repr(value is None).encode()
        elif isinstance(value, Path):
            with suppress(OSError):  # a folder, or missing: its path
                told = value.read_bytes()
        if field.name not in _OF_EACH:
            found[f"{PREFIX}{field.name.upper()}"] = hashlib.sha256(told).hexdigest()[:16]
    return found


async def find_different(settings: Settings, leases: LeaseStore) -> DifferentNodes | None:
    """Return the living nodes whose settings differ from these; None if there are none."""
    own = await run_sync(digest_settings_blocking, settings)
    urls, variables = [], set[str]()
    for url, noted in (await leases.settings()).items():
        theirs = json.loads(noted)  # a node of another version has other settings, too
        differ = {name for name in own.keys() & theirs.keys() if own[name] != theirs[name]}
        if url != settings.node_url and differ:
            urls.append(url)
            variables |= differ
    return DifferentNodes(urls=urls, variables=sorted(variables)) if urls else None


async def find_different_in(settings: Settings) -> DifferentNodes | None:
    """Look into the database as `find_different` does, and change nothing.

    Raise `StoreUnavailable` if it cannot be read, or no server of this version has opened it.
    """
    if settings.node_url is None or settings.database_url is None:
        return None
    from memory.stores.postgres.database import (  # noqa: PLC0415  psycopg is an extra
        PostgresDatabase,
    )

    database = PostgresDatabase(settings.database_url.value, SCHEMA)
    try:
        return await find_different(settings, LeaseStore(database))
    finally:
        await database.close()


def locks_of(settings: Settings, database: SqlDatabase, node: Node) -> LocksOfServers | None:
    """Return the locks of what all servers use; None if this one is alone."""
    is_alone = settings.node_url is None
    return None if is_alone else LocksOfServers(LeaseStore(database), node)


async def follow_others(
    settings: Settings, ownership: Ownership, feed: EventFeed, events: EventStore
) -> None:
    """Bring readers here what other servers store, and tell those of this one's, until cancelled.

    Return at once if this server has the database alone.
    """
    carrier = notifications(settings)
    if carrier is not None:
        doorbell = Doorbell(carrier, ownership.node.id, ownership.holds)
        await FeedFollower(feed, events, doorbell).run()


async def be_watched_by_a_program(settings: Settings, ownership: Ownership) -> None:
    """Kill the agents of this server when it falls silent, until cancelled; return at once
    if no other server would follow it.
    """
    if settings.node_url is not None:
        owner = await run_sync(owner_of, settings.data_dir)
        await be_watched(owner, ownership.left_s)


def own_process_blocking() -> str | None:
    """Return the name of this process; None where the system does not tell."""
    place = _place()
    known = None if place is None else _state_of(os.getpid())
    return None if known is None else f"{place} {os.getpid()} {known[1]}"


async def has_ended(name: str) -> bool:
    """Return whether a process of this machine, as `own_process_blocking` names it, has ended.

    False if it belongs to another machine or container, of which nothing is known.
    """
    return await run_sync(_has_ended_blocking, name)


def _has_ended_blocking(name: str) -> bool:
    place, pid, started = name.rsplit(" ", 2)
    if place != _place():
        return False
    try:
        known = _state_of(int(pid))
    except ProcessLookupError:
        return True
    return known is not None and (known[0] in _ENDED or known[1] != started)


def _state_of(pid: int) -> tuple[str, str] | None:
    """Return a process's state and its start, in ticks since that of the system (proc(5)).

    None if the system hides it. Raise `ProcessLookupError` if there is no such process.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        with suppress(PermissionError):
            os.kill(pid, 0)
        return None
    fields = stat.rpartition(")")[2].split()  # its name before may hold anything
    return fields[0], fields[_STARTED]


def _place() -> str | None:
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    return None
