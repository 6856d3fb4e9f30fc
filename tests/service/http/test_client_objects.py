"""Agents and sessions of managed agents, changed by several requests at once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import httpx

from tests.service.http.stage import assert_error, one_client

V1 = "/anthropic/v1"
ENOUGH = 20


async def at_once(
    client: httpx.AsyncClient, requests: Sequence[tuple[str, Any]]
) -> list[httpx.Response]:
    """Send requests at once; return the answers in the order of the requests."""
    answers: dict[int, httpx.Response] = {}

    async def send(number: int, path: str, body: Any) -> None:
        answers[number] = await client.post(path, json=body)

    async with anyio.create_task_group() as tasks:
        for number, (path, body) in enumerate(requests):
            tasks.start_soon(send, number, path, body)
    return [answers[number] for number in range(len(requests))]


async def test_only_one_of_several_changes_of_a_version_of_an_agent_is_made(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        made = await client.post(f"{V1}/agents", json={"name": "代理", "model": "candor"})
        path = f"{V1}/agents/{made.json()['id']}"
        changes = [(path, {"version": 1, "system": f"{n}"}) for n in range(ENOUGH)]
        answers = await at_once(client, changes)
        (changed,) = [answer for answer in answers if answer.status_code == 200]
        for answer in answers:
            if answer is not changed:
                error = assert_error(answer, 400, "invalid_request")
                assert "its version is 2" in error["message"]
        assert (await client.read(path)) == changed.json()


async def test_every_change_of_an_agent_without_a_version_counts(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        made = await client.post(f"{V1}/agents", json={"name": "a", "model": "candor"})
        path = f"{V1}/agents/{made.json()['id']}"
        answers = await at_once(client, [(path, {"system": f"{n}"}) for n in range(ENOUGH)])
        versions = sorted(answer.json()["version"] for answer in answers)
        assert versions == list(range(2, ENOUGH + 2))
        assert (await client.read(path))["version"] == ENOUGH + 1


async def test_an_archived_session_stays_archived_whatever_else_is_changed(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for _ in range(5):
            path = f"{V1}/sessions/{await client.new_conversation()}"
            changes: list[tuple[str, Any]] = [
                (path, {"metadata": {"n": f"{n}"}}) for n in range(ENOUGH)
            ]
            changes.insert(ENOUGH // 2, (f"{path}/archive", None))
            await at_once(client, changes)
            assert (await client.read(path))["archived_at"] is not None


async def test_the_name_of_an_agent_cannot_be_taken_away(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        made = (await client.post(f"{V1}/agents", json={"name": "代理", "model": "candor"})).json()
        path = f"{V1}/agents/{made['id']}"
        error = assert_error(await client.post(path, json={"name": None}), 400, "invalid_request")
        assert error["details"] == {"field": "name"}
        assert await client.read(path) == made
