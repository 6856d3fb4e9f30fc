"""Everything that a user has, listed page by page and exported over HTTP."""

import json
from pathlib import Path

import anyio
import httpx

from tests.service.http.stage import Json, assert_error, staged

CASE: Json = {
    "symptom_summary": "Checkout answers 503",
    "diagnosis": "Its pool is exhausted.",
    "resolution": "Raise the pool.",
    "confidence": 0.1,
}


async def write(client: httpx.AsyncClient, title: str, day: int) -> None:
    written = await client.post(
        "/memory/episodes",
        json={
            "episode_type": "howto",
            "title": title,
            "tags": [title],
            "sections": {"recipe": f"Öl and 部署 for {title} number {day}."},
            "occurred_at": f"2026-11-{day:02}T10:00:00Z",
        },
    )
    assert written.json()["status"] == "stored"


async def titles(client: httpx.AsyncClient, **params: str | int) -> list[str]:
    """Return the titles of all pages."""
    found: list[str] = []
    while True:
        page = (await client.get("/memory/items", params=params)).json()
        found += [item["title"] for item in page["items"]]
        if page["next_cursor"] is None:
            return found
        params["cursor"] = page["next_cursor"]


async def test_what_a_user_has_is_listed_latest_first_and_found_by_its_words(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        for day, title in ((3, "Pump"), (5, "Valve"), (4, "Kiln"), (5, "Lathe")):
            await write(ada, title, day)
        await write(bob, "Anvil", 6)
        hidden = (await ada.post("/memory/cases", json={"case": CASE})).json()["case_id"]
        await ada.post(f"/memory/cases/{hidden}/feedback", json={"helpful": False})
        note = stage.settings.workspace / "memory" / "oil.md"
        await anyio.Path(note.parent).mkdir(parents=True)
        await anyio.Path(note).write_text("# Oil\nThe oil stands in the cellar.\n")
        await stage.memory.notes.scan()
        mine = ["Lathe", "Valve", "Kiln", "Pump"]
        assert await titles(ada, kind="episode") == mine
        assert await titles(ada, kind="episode", limit=1) == mine
        everything = await titles(ada, limit=2)
        assert sorted(everything) == sorted([*mine, "Oil", CASE["symptom_summary"]])
        assert await titles(ada, q="öL 部署 PUMP") == ["Pump"]
        assert await titles(bob) == ["Oil", "Anvil"]
        (shown,) = (await ada.get("/memory/items?kind=case")).json()["items"]
        assert (shown["id"], shown["why"]) == (hidden, "hidden: rejected")
        (found,) = (await ada.get("/memory/items?q=cellar")).json()["items"]
        assert found["why"] == "remembered, contains cellar"
        for params, field in (({"kind": "novel"}, "kind"), ({"cursor": "x"}, "cursor")):
            answer = await ada.get("/memory/items", params=params)
            assert assert_error(answer, 422, "invalid_request")["details"]["field"] == field


async def test_a_page_begins_where_the_last_one_ended_whatever_went_meanwhile(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for day in (1, 2, 3):
            await write(client, f"Day {day}", day)
        first = (await client.get("/memory/items?limit=1")).json()
        await client.delete(f"/memory/items/{first['items'][0]['id']}")
        await write(client, "Day 4", 4)
        assert await titles(client, cursor=first["next_cursor"]) == ["Day 2", "Day 1"]


async def test_an_export_has_everything_of_the_user_and_nothing_of_others(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        await write(ada, "Pump", 3)
        await write(bob, "Anvil", 4)
        shown = (await ada.post("/memory/cases", json={"case": CASE | {"confidence": 0.8}})).json()
        other = CASE | {"symptom_summary": "The kiln stays cold", "diagnosis": "No gas at all."}
        hidden = (await ada.post("/memory/cases", json={"case": other})).json()
        await ada.post(f"/memory/cases/{hidden['case_id']}/feedback", json={"helpful": False})
        await ada.post("/memory/facts", json={"text": "My locker is number 12."})
        await ada.put("/memory/profile", json={"text": "Prefers short answers."})
        await bob.put("/memory/profile", json={"text": "Prefers long ones."})
        exported = await ada.get("/memory/export")
        assert exported.headers["content-type"].startswith("application/x-ndjson")
        lines = [json.loads(line) for line in exported.text.splitlines()]
        assert [(line["format"], line["owner_id"]) for line in lines] == [
            ("candor-episode-1", "ada"),
            ("candor-case-1", "ada"),
            ("candor-item-1", "ada"),
            ("candor-case-1", "ada"),
            ("candor-profile-1", "ada"),
        ]
        assert lines[0]["sections"]["recipe"].startswith("Öl and 部署")
        cases = [line["case_id"] for line in lines if "case_id" in line]
        assert cases == [shown["case_id"], hidden["case_id"]]
        assert "locker" in lines[2]["body"]
        assert lines[-1]["text"] == "Prefers short answers."


async def test_an_export_is_imported_by_its_person_elsewhere_and_yields_to_what_is_newer(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        await write(ada, "backup", 2)
        for text in ("my locker is number 12", "the gate code changes on Mondays"):
            await ada.post("/memory/facts", json={"text": text})
        await ada.put("/memory/profile", json={"text": "I am Ada."})
        lines = (await ada.get("/memory/export")).text.splitlines()
        await bob.post("/memory/facts", json={"text": "my locker is number 31"})

        broken = await bob.post("/memory/import", json={"lines": [*lines, "{}"]})
        assert_error(broken, 422, "invalid_request")
        assert await titles(bob) == ["my locker is number 31"], "all is read before one is written"
        counts = [
            (await bob.post("/memory/import", json={"lines": lines})).json() for _ in range(2)
        ]

        first, again = ({name: n for name, n in answer.items() if n} for answer in counts)
        assert (first, again) == ({"stored": 3, "there": 1}, {"there": 4})
        assert set(await titles(bob)) == {
            "backup",
            "my locker is number 31",
            "the gate code changes on Mondays",
        }
        assert (await bob.get("/memory/profile")).json()["text"] == "I am Ada."
