"""Servers on one PostgreSQL through one fault after another; the judge of histories finds nothing wrong."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.responses import Response

from tests.support.fault_clients import new_http
from tests.support.fault_cluster import open_cluster
from tests.support.fault_rounds import FaultRounds, Round, schedule
from tests.support.faults import Faults
from tests.support.live_server import script
from tests.support.seeds import drawn_seed
from tests.support.webhook_receivers import receiving

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX"),
]

ALONE = (
    *("killed", "drained", "paused_briefly", "cut", "closed", "held_briefly", "answers_lost"),
    *("delayed", "database_restarted", "database_crashed", "migrated"),
)
REST = (
    *("paused", "held", "silent", "unreachable", "paused_briefly", "migrated", "nothing"),
    *("upgraded", "upgraded"),
)
SHORT = (
    *("killed", "paused", "drained", "cut", "closed", "held_briefly", "answers_lost", "delayed"),
    *("database_restarted", "database_crashed"),
)
UPGRADES = (("upgraded", 1), ("killed", 0), ("upgraded", 0), ("drained", 1))
TWO, THREE, HOURS = (0, 2), (0, 2, -2), (0, 3600)
"""By how many seconds the servers' clocks are wrong."""
IN_ORDINARY_RUN = 10
IN_SOAK = 200
SETTINGS = {
    "approvals": "on",
    "schedules": "on",
    "webhooks": "on",
    "webhook_hosts": "127.0.0.1",
    "shutdown_grace_s": 1,
    "prewarmed_clients": 0,
}
EACH_MINUTE = {
    "name": "Each minute",
    "cron": "* * * * *",
    "time_zone": "UTC",
    "message": script({"text": "Due."}),
}


@asynccontextmanager
async def open_rounds(root: Path, clocks: Sequence[int]) -> AsyncIterator[FaultRounds]:
    """Open servers with such clocks; they have a webhook and a schedule."""

    async def accept(_: str) -> Response:  # noqa: RUF029
        rounds.note_delivery(204)
        return Response(status_code=204)

    async with (
        receiving(accept) as receiver,
        open_cluster(root, clocks, **SETTINGS) as cluster,
        new_http(f"http://127.0.0.1:{cluster.front.port}") as http,
    ):
        rounds = FaultRounds(
            faults=Faults(cluster=cluster),
            receiver=receiver,
            histories=root,
            http=http,
        )
        hook = {"url": receiver.url(), "events": ["turn.completed"]}
        assert (await http.post("/webhooks", json=hook)).status_code == 201
        assert (await http.post("/schedules", json=EACH_MINUTE)).status_code == 201
        yield rounds


async def play(rounds: FaultRounds, planned: Sequence[Round]) -> None:
    """Play rounds; fail with all that was wrong in any of them."""
    wrong: list[str] = []
    for round_ in planned:
        for found in await rounds.play(round_):
            lines = ", ".join(str(record.line) for record in found.records)
            wrong.append(f"{found.code}: {found.message} Lines {lines} of {round_}")
    assert not wrong, f"{rounds.histories}\n" + "\n".join(wrong)


async def test_two_servers_keep_their_word_through_one_fault_after_another(tmp_path: Path) -> None:
    async with open_rounds(tmp_path, TWO) as rounds:
        await play(rounds, schedule(6, SHORT, IN_ORDINARY_RUN, 2))


async def test_servers_of_several_versions_keep_their_word_on_one_database(tmp_path: Path) -> None:
    """Each upgrade migrates it under the others, which begin again with a schema newer than theirs."""
    planned = [
        replace(round_, fault=fault, node=node, hits_holder=False)
        for round_, (fault, node) in zip(schedule(3, SHORT, 4, 2), UPGRADES, strict=True)
    ]
    async with open_rounds(tmp_path, TWO) as rounds:
        await play(rounds, planned)
        nodes = rounds.faults.cluster.nodes
        assert [len(node.later_versions) for node in nodes] == [2, 1]
        for node in nodes:
            starts = [*node.ended, node.server]
            logs = [row["event"] for server in starts if server is not None for row in server.log()]
            assert logs.count("database_is_newer") == 2  # of the conversations, and of memory


@pytest.mark.soak
async def test_one_server_keeps_its_word_through_many_faults(tmp_path: Path) -> None:
    async with open_rounds(tmp_path, [0]) as rounds:
        await play(rounds, schedule(drawn_seed("one server"), ALONE, IN_SOAK // 4, 1))


@pytest.mark.soak
async def test_three_servers_keep_their_word_through_many_faults(tmp_path: Path) -> None:
    faults = [*SHORT, *REST]
    async with open_rounds(tmp_path, THREE) as rounds:
        await play(rounds, schedule(drawn_seed("three servers"), faults, IN_SOAK, 3))


@pytest.mark.soak
async def test_clocks_that_differ_by_hours_change_nothing_about_who_runs_what(
    tmp_path: Path,
) -> None:
    async with open_rounds(tmp_path, HOURS) as rounds:
        await play(rounds, schedule(drawn_seed("clocks"), REST, IN_SOAK // 10, 2))
