"""Schedules over HTTP. `tests/service/turns/test_schedules.py` runs them."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.http.stage import HOLD, Json, assert_error, one_client, staged, two_clients

MORNINGS: Json = {
    "name": "Mornings",
    "cron": "0 8 * * 1-5",
    "time_zone": "Europe/Berlin",
    "message": "What is new?",
}


async def test_a_schedule_is_added_shown_changed_and_deleted(tmp_path: Path) -> None:
    async with one_client(tmp_path, schedules="on") as client:
        added = await client.post("/schedules", json=MORNINGS)
        assert added.status_code == 201
        schedule = added.json()
        path = f"/schedules/{schedule['id']}"
        assert schedule["id"].startswith("sch_")
        assert len(schedule["next_runs"]) == 3
        plain = {"conversation_id": None, "project_id": None, "enabled": True}
        plain |= {"last_run": None, "problem": None}
        assert schedule | MORNINGS | plain == schedule
        assert await client.read(path) == schedule
        listed = {"schedules": [schedule], "runs": True, "max_schedules": 20}
        assert await client.read("/schedules") == listed
        change = {"cron": "30 9 * * *", "project_id": "garden", "enabled": False}
        changed = await client.patch(path, json=change)
        off: Json = {"next_runs": []}
        assert changed.json() == {**schedule, **change, **off} == await client.read(path)
        bare = (await client.patch(path, json={"project_id": None, "enabled": True})).json()
        assert (bare["project_id"], len(bare["next_runs"])) == (None, 3)
        assert (await client.delete(path)).status_code == 204
        assert_error(await client.get(path), 404, "not_found")
        assert_error(await client.delete(path), 404, "not_found")


WRONG: list[tuple[Json, str]] = [
    ({"cron": "0 8 * *"}, "cron"),
    ({"cron": "x" * 201}, "cron"),
    ({"cron": "61 8 * * *"}, "cron"),
    ({"time_zone": "Berlin"}, "time_zone"),
    ({"message": " "}, "message"),
    ({"name": ""}, "name"),
    ({"enabled": "yes"}, "enabled"),
]


@pytest.mark.parametrize(("field", "name"), WRONG)
async def test_a_field_that_is_wrong_is_named(tmp_path: Path, field: Json, name: str) -> None:
    async with one_client(tmp_path, schedules="on") as client:
        schedule = (await client.post("/schedules", json=MORNINGS)).json()
        for answer in (
            await client.post("/schedules", json={**MORNINGS, **field}),
            await client.patch(f"/schedules/{schedule['id']}", json=field),
        ):
            assert assert_error(answer, 422, "invalid_request")["details"] == {"field": name}
        assert (await client.read("/schedules"))["schedules"] == [schedule]


async def test_a_conversation_has_its_own_project(tmp_path: Path) -> None:
    async with one_client(tmp_path, schedules="on") as client:
        both = {"conversation_id": await client.new_conversation(), "project_id": "garden"}
        answer = await client.post("/schedules", json={**MORNINGS, **both})
        error = assert_error(answer, 422, "invalid_request")
        assert error["details"] == {"field": "project_id"}


async def test_a_schedule_names_a_conversation_of_its_user_also_while_it_is_off(
    tmp_path: Path,
) -> None:
    async with two_clients(tmp_path, schedules="on") as (ada, bob):
        own, others = await ada.new_conversation(), await bob.new_conversation()
        body = {**MORNINGS, "enabled": False, "conversation_id": own}
        schedule = (await ada.post("/schedules", json=body)).json()
        path = f"/schedules/{schedule['id']}"
        for unknown in (others, "cnv_unknown"):
            named = {"conversation_id": unknown}
            assert_error(await ada.post("/schedules", json={**body, **named}), 404, "not_found")
            assert_error(await ada.patch(path, json=named), 404, "not_found")
        assert (await ada.read("/schedules"))["schedules"] == [schedule]
        await ada.delete(f"/conversations/{own}")
        renamed = await ada.patch(path, json={"name": "Evenings"})
        assert renamed.status_code == 200, "what it does not name is not looked for"


async def test_a_user_may_have_so_many_and_each_their_own(tmp_path: Path) -> None:
    async with two_clients(tmp_path, schedules="on", max_schedules=1) as (ada, bob):
        for client in (ada, bob):
            assert (await client.post("/schedules", json=MORNINGS)).status_code == 201
            refused = await client.post("/schedules", json=MORNINGS)
            error = assert_error(refused, 409, "too_many_schedules")
            assert error["details"] == {"max_schedules": 1}
        (own,) = (await ada.read("/schedules"))["schedules"]
        assert_error(await bob.get(f"/schedules/{own['id']}"), 404, "not_found")


async def test_a_message_is_sent_now_once_for_a_key(tmp_path: Path) -> None:
    async with staged(tmp_path, schedules="on") as stage:
        client = stage.client()
        place = await client.new_conversation()
        body = {**MORNINGS, "message": HOLD, "conversation_id": place, "enabled": False}
        path = f"/schedules/{(await client.post('/schedules', json=body)).json()['id']}"
        sent = await client.post(f"{path}/run", json={"idempotency_key": "once"})
        again = await client.post(f"{path}/run", json={"idempotency_key": "once"})
        assert sent.status_code == 202
        assert sent.json() == again.json()
        assert sent.json()["conversation_id"] == place
        runs = (await client.read(path))["last_run"]
        stage.release()
        other = await client.post(f"{path}/run")
        assert other.json()["turn_id"] != sent.json()["turn_id"]
        asked, *_ = await client.messages(place)
        await client.delete(f"/conversations/{place}")
        gone = (await client.read(path))["last_run"]
    assert asked["schedule"]["name"] == "Mornings"
    assert asked["schedule"]["due_at"] is None
    unchanged = {"turn_id": sent.json()["turn_id"], "conversation_id": place, "missed": 0}
    running = {**unchanged, "due_at": None, "outcome": None}
    assert runs | running == runs
    assert runs["state"] in {"queued", "running"}
    assert (gone["state"], gone["conversation_id"], gone["outcome"]) == (None, None, None)


@pytest.mark.parametrize("message", ["What is new?", "有什么新消息？"])
async def test_a_run_that_another_server_took_and_did_not_answer_is_not_sent_again(
    tmp_path: Path, message: str
) -> None:
    """Servers pass a message without a key on with one of their own: see `Forwarder`."""
    async with staged(tmp_path, schedules="on") as stage:

        async def forwarded(scope: Any, receive: Any, send: Any) -> None:
            state = {"forward_key": "forward:1", "is_forwarded": True}
            await stage.app({**scope, "state": state}, receive, send)

        client = stage.client()
        body = {**MORNINGS, "message": message, "enabled": False}
        path = f"/schedules/{(await client.post('/schedules', json=body)).json()['id']}"
        transport = httpx.ASGITransport(forwarded)
        async with httpx.AsyncClient(transport=transport, base_url=stage.base_url) as other:
            sent = await other.post(f"{path}/run")
            again = await other.post(f"{path}/run", json={})
            own = await other.post(f"{path}/run", json={"idempotency_key": "own"})
        assert sent.status_code == 202
        assert sent.json() == again.json()
        assert own.json()["turn_id"] != sent.json()["turn_id"]


async def test_a_server_that_runs_no_schedules_says_so_and_lets_them_go(tmp_path: Path) -> None:
    async with one_client(tmp_path, schedules="on") as client:
        path = f"/schedules/{(await client.post('/schedules', json=MORNINGS)).json()['id']}"
    async with one_client(tmp_path) as client:
        for answer in (
            await client.post("/schedules", json=MORNINGS),
            await client.patch(path, json={"enabled": False}),
            await client.post(f"{path}/run"),
        ):
            assert_error(answer, 409, "schedules_off")
        listed = await client.read("/schedules")
        assert (listed["runs"], listed["schedules"][0]["next_runs"]) == (False, [])
        assert (await client.delete(path)).status_code == 204
