"""Servers whose clocks are hours apart: what is due by the clock is due by that of the database."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest

from memory.clock import from_rfc3339, utc_now
from tests.support.fault_clients import new_http
from tests.support.fault_cluster import open_cluster
from tests.support.live_server import DEADLINE_S, script
from tests.support.webhook_receivers import answering, receiving

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX"),
]

AHEAD_AND_BEHIND = (3 * 3600, -3 * 3600)
SETTINGS = {
    "schedules": "on",
    "webhooks": "on",
    "webhook_hosts": "127.0.0.1",
    "prewarmed_clients": 0,
}
DAILY = {"name": "Daily", "cron": "0 0 * * *", "time_zone": "UTC", "message": script({"text": "!"})}
SOON = """
UPDATE candor.schedules SET due_at =
  to_char(clock_timestamp() AT TIME ZONE 'UTC' + '3 s', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
"""
ON_TIME_S = 60
"""How much a busy machine may be late; the clocks are wrong by hours."""
WAIT_S = 90


async def test_a_schedule_and_a_webhook_outlive_their_server_and_are_on_time_once(
    tmp_path: Path,
) -> None:
    """The server that is ahead fails to deliver and dies; the other one is six hours behind it."""
    async with (
        receiving(answering(500, 204)) as receiver,
        open_cluster(tmp_path, AHEAD_AND_BEHIND, **SETTINGS) as cluster,
    ):
        ahead, behind = cluster.nodes
        hook = {"url": receiver.url(), "events": ["turn.completed"]}
        async with new_http(ahead.url) as http:
            http.timeout = DEADLINE_S
            secret = (await http.post("/webhooks", json=hook)).json()["secret"]
            assert (await http.post("/schedules", json=DAILY)).status_code == 201
            told = (await http.post("/chat", json={"message": script({"text": "Hi."})})).json()
            assert told["outcome"] == "answered"
            assert seconds_off(told["finished_at"]) < ON_TIME_S
            (failed,) = await receiver.wait(1)
            failed.read(secret)  # its time is signed, and within five minutes of this machine's
        assert ahead.server is not None
        await anyio.to_thread.run_sync(ahead.server.kill)
        await anyio.to_thread.run_sync(cluster.execute, SOON)
        async with new_http(behind.url) as http:
            http.timeout = DEADLINE_S
            run = await last_run(http)
            assert seconds_off(run["at"]) < ON_TIME_S
            assert (from_rfc3339(run["at"]) - from_rfc3339(run["due_at"])).total_seconds() >= 0
            assert run["missed"] == 0
            with anyio.fail_after(WAIT_S):
                while len(receiver.came) < 3:  # noqa: ASYNC110
                    await anyio.sleep(0.1)
            for message in receiver.came:
                message.read(secret)
            counted = Counter(message.id for message in receiver.came)
            assert counted.pop(failed.id) == 2
            assert list(counted.values()) == [1]
            (schedule,) = (await http.get("/schedules")).json()["schedules"]
            assert schedule["last_run"]["turn_id"] == run["turn_id"]
            assert seconds_off(schedule["next_runs"][0]) < 24 * 3600 + ON_TIME_S
            turns = "SELECT count(*) FROM candor.turns WHERE schedule IS NOT NULL"
            assert cluster.rows(turns) == [(1,)]
        await cluster.start(ahead)


async def last_run(http: httpx.AsyncClient) -> dict[str, Any]:
    """Wait until the schedule's run has ended; return it."""
    with anyio.fail_after(WAIT_S):
        while True:
            (schedule,) = (await http.get("/schedules")).json()["schedules"]
            run: dict[str, Any] = schedule["last_run"] or {}
            if run.get("state") == "completed":
                return run
            await anyio.sleep(0.1)


def seconds_off(at: str) -> float:
    """Return how far a time is from the present, in seconds."""
    return abs((from_rfc3339(at) - utc_now()).total_seconds())
