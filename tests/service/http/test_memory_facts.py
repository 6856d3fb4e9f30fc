"""Facts and the profile over HTTP, and that they are their owner's alone."""

from pathlib import Path

import httpx

from tests.service.http.stage import Json, assert_error, staged


async def context_of(client: httpx.AsyncClient, query: str) -> str:
    answer = await client.post("/memory/context", json={"queries": [query]})
    return str(answer.json()["text"])


async def keep(client: httpx.AsyncClient, text: str, **more: object) -> Json:
    answer = await client.post("/memory/facts", json={"text": text, **more})
    assert answer.status_code == 201, answer.text
    fact: Json = answer.json()
    return fact


async def test_a_fact_is_kept_changed_found_and_forgotten(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        fact = await keep(client, "my locker is number 12", project_id="gym")
        assert (fact["kind"], fact["origin"], fact["scope"]) == (
            "fact",
            "person",
            {"project_id": "gym"},
        )
        same = await keep(client, "My locker is number 12.", project_id="gym")
        assert same["id"] == fact["id"]
        path = f"/memory/items/{fact['id']}"
        changed = await client.patch(path, json={"text": "my locker is number 13"})
        assert (changed.status_code, changed.json()["revision"]) == (200, 2)
        assert (await client.get(path)).json()["body"] == "my locker is number 13"
        newer = await keep(client, "my locker is number 14", project_id="gym")
        older = (await client.get(path)).json()
        assert (older["superseded_by"], older["valid_until"]) == (newer["id"], newer["valid_from"])
        text = await context_of(client, "which number has my locker?")
        assert "number 14" in text
        assert "number 13" not in text
        assert (await client.delete(f"/memory/items/{newer['id']}")).status_code == 204
        assert "number 13" in await context_of(client, "which number has my locker?")


async def test_only_facts_can_be_changed(tmp_path: Path) -> None:
    episode = {"episode_type": "howto", "title": "t", "sections": {"recipe": "run make twice"}}
    async with staged(tmp_path) as stage:
        client = stage.client()
        written = (await client.post("/memory/episodes", json=episode)).json()
        path = f"/memory/items/{written['episode_id']}"
        assert_error(await client.patch(path, json={"text": "x"}), 409, "conflict")
        assert (await client.patch(path, json={})).status_code == 422
        assert (await client.post("/memory/facts", json={"text": "…"})).status_code == 422


async def test_a_profile_comes_first_in_every_context_of_its_person_alone(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        assert (await ada.get("/memory/profile")).json() == {"text": "", "updated_at": None}
        put = await ada.put(
            "/memory/profile", json={"text": "I am Ada; the key is sk-ant-api03-" + "x" * 90}
        )
        assert put.status_code == 200
        assert "sk-ant" not in put.json()["text"]
        fact = await keep(ada, "I like short answers", lasting=True)
        text = await context_of(ada, "anything at all")
        assert text.index("I am Ada") < text.index("> - I like short answers")
        assert await context_of(bob, "anything at all") == ""
        await ada.patch(f"/memory/items/{fact['id']}", json={"text": "I like long answers"})
        profile = (await ada.get("/memory/profile")).json()["text"]
        assert ("short" in profile, "- I like long answers" in profile) == (False, True)
        await ada.delete(f"/memory/items/{fact['id']}")
        assert "answers" not in (await ada.get("/memory/profile")).json()["text"]
        too_long = await ada.put("/memory/profile", json={"text": "x" * 2001})
        assert_error(too_long, 422, "invalid_request")


async def test_what_was_tidied_is_listed_and_undone_by_its_owner_alone(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        words = "the summary of a long report stands always at the very top of the page"
        first = await keep(ada, words)
        await keep(ada, words.replace("stands always", "really stands always"))
        await stage.memory.fact_tidier.tidy()
        (step,) = (await ada.get("/memory/tidied")).json()["tidied"]
        assert (step["action"], step["fact_id"]) == ("merged", first["id"])
        undo = f"/memory/tidied/{step['id']}/undo"
        assert_error(await bob.post(undo), 404, "not_found")
        assert (await ada.post(undo)).json()["undone_at"] is not None
        assert (await ada.get(f"/memory/items/{first['id']}")).json()["valid_until"] is None
