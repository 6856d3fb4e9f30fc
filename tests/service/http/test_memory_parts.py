"""Facts, notes, deliveries, lists and exports of memory over HTTP."""

import json
from functools import partial
from pathlib import Path

import anyio

from memory.clock import utc_now
from memory.facts.evidence import Message, said_in
from memory.facts.told import NewFact, ToldTurn
from memory.items.scope import Scope
from tests.service.http.client import Client
from tests.service.http.stage import Json, Stage, assert_error, one_client, staged, two_clients


async def context(client: Client, query: str, **more: object) -> Json:
    answer = await client.post("/memory/context", json={"queries": [query], **more})
    assert answer.status_code == 200, answer.text
    pack: Json = answer.json()
    return pack


async def context_of(client: Client, query: str) -> str:
    return str((await context(client, query))["text"])


async def keep(client: Client, text: str, **more: object) -> Json:
    answer = await client.post("/memory/facts", json={"text": text, **more})
    assert answer.status_code == 201, answer.text
    fact: Json = answer.json()
    return fact


async def test_a_fact_is_kept_changed_found_and_forgotten(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        fact = await keep(client, "my locker is number 12", project_id="gym")
        assert (fact["kind"], fact["origin"]) == ("fact", "person")
        assert fact["scope"] == {"project_id": "gym"}
        same = await keep(client, "My locker is number 12.", project_id="gym")
        assert same["id"] == fact["id"]
        path = f"/memory/items/{fact['id']}"
        changed = await client.patch(path, json={"text": "my locker is number 13"})
        assert (changed.status_code, changed.json()["revision"]) == (200, 2)
        assert (await client.read(path))["body"] == "my locker is number 13"
        earlier = [changed.json()["body"]]
        await client.delete(path)
        newer = await keep(client, "my locker is number 14", project_id="gym", earlier=earlier)
        path = f"/memory/items/{newer['id']}"
        (old_id,) = (await client.read(path))["replaces"]
        older = await client.read(f"/memory/items/{old_id}")
        assert (older["superseded_by"], older["valid_until"]) == (newer["id"], newer["valid_from"])
        text = await context_of(client, "which number has my locker?")
        assert "number 14" in text
        assert "number 13" not in text
        assert (await client.delete(f"/memory/items/{newer['id']}")).status_code == 204
        assert "number 13" in await context_of(client, "which number has my locker?")


async def test_a_fact_without_a_searchable_word_is_kept(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        first, other = "a" * 65, "b" * 65
        fact = await keep(client, first)
        assert fact["body"] == first
        assert (await keep(client, first))["id"] == fact["id"]
        assert (await keep(client, other))["id"] != fact["id"]


async def test_an_import_line_that_is_nested_too_deeply_is_no_exported_line(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for line in ("[" * 2_000, "[" * 2_000 + "]" * 2_000, '{"a":' * 2_000):
            answer = await client.post("/memory/import", json={"lines": [line]})
            assert_error(answer, 422, "invalid_request")


async def test_only_facts_can_be_changed(tmp_path: Path) -> None:
    episode = {"episode_type": "howto", "title": "t", "sections": {"recipe": "run make twice"}}
    async with one_client(tmp_path) as client:
        written = (await client.post("/memory/episodes", json=episode)).json()
        path = f"/memory/items/{written['episode_id']}"
        assert_error(await client.patch(path, json={"text": "x"}), 409, "conflict")
        assert (await client.patch(path, json={})).status_code == 422
        assert (await client.post("/memory/facts", json={"text": "…"})).status_code == 422


async def test_a_profile_comes_first_in_every_context_of_its_person_alone(tmp_path: Path) -> None:
    async with two_clients(tmp_path, on_port=True) as (ada, bob):
        assert await ada.read("/memory/profile") == {"text": "", "updated_at": None}
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
        profile = (await ada.read("/memory/profile"))["text"]
        assert ("short" in profile, "- I like long answers" in profile) == (False, True)
        await ada.delete(f"/memory/items/{fact['id']}")
        assert "answers" not in (await ada.read("/memory/profile"))["text"]
        too_long = await ada.put("/memory/profile", json={"text": "x" * 2001})
        assert_error(too_long, 422, "invalid_request")


async def test_what_a_fact_superseded_together_is_kept_and_is_not_endless(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        earlier = [[["my desk is upstairs", "my desk is by the window"], ["my locker is 12"]]]
        fact = await keep(client, "my desk and locker are in the hall", earlier=earlier)
        assert len(fact["replaces"]) == 2
        for wrong in ([[["x"] * 101]], [[[["x"]]]], [[["…"]]]):
            body = {"text": "my desk is gone", "earlier": wrong}
            assert_error(await client.post("/memory/facts", json=body), 422, "invalid_request")


async def test_what_a_fact_superseded_passes_the_gate_like_the_fact_itself(tmp_path: Path) -> None:
    failed = "mcp__ata__find failed: InputValidationError missing required parameter `topic`"
    guessed = "ata 工具的调用格式是 {topic: string}，调用失败并报类型错误"
    async with one_client(tmp_path) as client:
        earlier = [
            failed,
            [[guessed], [guessed, f"值班是周五\n{guessed}", "值班是周六"]],
            [[failed]],
        ]
        fact = await keep(client, f"值班是周日\n{failed}", earlier=earlier)
        assert fact["body"] == "值班是周日"
        listed = (await client.read("/memory/items?kind=fact"))["items"]
        assert {item["title"] for item in listed} == {"值班是周日", "值班是周六", "值班是周五"}


async def test_a_secret_on_the_line_after_its_name_is_kept_in_no_fact(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        text = "the cellar's password is\nhunter2pass9X\nand it is cold"
        fact = await keep(client, text, earlier=["保险箱密码：\nhunter2pass8X"])
        path = f"/memory/items/{fact['id']}"
        changed = await client.patch(path, json={"text": f"{text} there"})
        (old_id,) = (await client.read(path))["replaces"]
        old = await client.read(f"/memory/items/{old_id}")
        assert fact["body"].endswith("[masked] and it is cold")
        assert "hunter2pass" not in f"{fact} {changed.json()} {old}"


async def test_a_fact_is_not_changed_to_what_another_one_says(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        known = await keep(client, "the tram is line 4")
        other = await keep(client, "the tram is line 5", project_id="gym")
        path = f"/memory/items/{other['id']}"
        error = assert_error(
            await client.patch(path, json={"text": "The tram is line 4."}), 409, "conflict"
        )
        assert error["message"].startswith(f"The fact {known['id']} says the same already")
        assert (await client.read(path))["body"] == "the tram is line 5"
        assert (await client.patch(path, json={"text": "The tram is line 5."})).status_code == 200


async def test_what_was_told_again_holds_once_when_its_correction_is_undone(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        newer = await keep(client, "the bus is line 13", earlier=["the bus is line 12"])
        again = await keep(client, "the bus is line 12")
        await client.delete(f"/memory/items/{newer['id']}")
        everything = (await client.read("/memory/items"))["items"]
        items = [await client.read(f"/memory/items/{item['id']}") for item in everything]
        assert [item["id"] for item in items if item["valid_until"] is None] == [again["id"]]


async def test_what_is_kept_in_the_place_of_facts_that_hold_replaces_them(tmp_path: Path) -> None:
    """As an undo does, whose forgetting let them hold again; ids of others say nothing."""
    async with one_client(tmp_path) as client:
        newer = await keep(client, "公交是 13 路", earlier=["公交是 12 路"], lasting=True)
        replaces = (await client.read(f"/memory/items/{newer['id']}"))["replaces"]
        assert (await client.delete(f"/memory/items/{newer['id']}")).status_code == 204
        assert (await client.read(f"/memory/items/{replaces[0]}"))["valid_until"] is None

        given = [*replaces, newer["id"], "fac_nobody"]
        back = await keep(client, "公交是 13 路", lasting=True, replaces=given)

        assert back["replaces"] == replaces
        older = await client.read(f"/memory/items/{replaces[0]}")
        assert older["superseded_by"] == back["id"]
        assert (await client.read("/memory/profile"))["text"] == "- 公交是 13 路"
        wrong = {"text": "the bus is late", "replaces": ["fac_1"] * 101}
        assert_error(await client.post("/memory/facts", json=wrong), 422, "invalid_request")


async def test_a_fact_that_was_replaced_cannot_be_changed(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        newer = await keep(client, "the ring is gold", earlier=["the ring is silver"])
        path = f"/memory/items/{newer['replaces'][0]}"
        for change in ({"lasting": True}, {"text": "the ring is tin"}):
            error = assert_error(await client.patch(path, json=change), 409, "conflict")
            assert "holds no longer: another fact has replaced it" in error["message"]
        assert (await client.read(path))["body"] == "the ring is silver"


async def test_a_lasting_fact_that_is_saved_unchanged_keeps_its_line(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        fact = await keep(client, "I like tea", lasting=True)
        for change in ({"lasting": True}, {"text": "I like tea"}):
            await client.patch(f"/memory/items/{fact['id']}", json=change)
            assert (await client.read("/memory/profile"))["text"] == "- I like tea"


FULL = "x" * 1995


async def test_a_lasting_fact_for_which_the_profile_has_no_room_is_refused(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        fact = await keep(client, "I am Ana")
        await client.put("/memory/profile", json={"text": FULL})
        for answer in (
            await client.post("/memory/facts", json={"text": "I like tea", "lasting": True}),
            await client.patch(f"/memory/items/{fact['id']}", json={"lasting": True}),
        ):
            error = assert_error(answer, 409, "conflict")
            assert error["message"].startswith("The profile is full (2,000 characters)")
        assert await titles(client) == ["I am Ana"]
        assert (await client.read(f"/memory/items/{fact['id']}"))["lasting"] is False


async def test_a_lasting_fact_that_comes_back_to_a_full_profile_does_not_last(
    tmp_path: Path,
) -> None:
    async with one_client(tmp_path) as client:
        fact = await keep(client, "I like tea", lasting=True)
        exported = (await client.get("/memory/export")).text.splitlines()[:1]
        await client.put("/memory/profile", json={"text": ""})
        newer = await keep(client, "I like beer", lasting=True, earlier=["I like lemonade"])
        await client.put("/memory/profile", json={"text": FULL})
        for item in (fact, newer):
            await client.delete(f"/memory/items/{item['id']}")
        await client.post("/memory/import", json={"lines": exported})
        items = (await client.read("/memory/items"))["items"]
        assert {item["title"] for item in items} == {"I like tea", "I like lemonade"}
        for item in items:
            assert (await client.read(f"/memory/items/{item['id']}"))["lasting"] is False


SCHEMA = (
    "I guessed the call format {topic: string} for the ata tool and it failed with a type error"
)
OWNER = "also the on-call owner is the platform team in #ata-ops"
QUESTION = "what is in your memory?"
NOTES = {
    "tea.md": "# Tea\n\nAnn likes green tea. 绿茶。\n",
    "schema.md": "# article-list-query\n\nParameter schema: topic, SENTINEL.\n",
    "格式.md": "# article-list-query\n\n参数格式：topic，SENTINEL。\n",
}


async def write_notes(stage: Stage, notes: dict[str, str]) -> None:
    folder = anyio.Path(stage.settings.workspace) / "memory"
    await folder.mkdir(parents=True, exist_ok=True)
    for name, text in notes.items():
        await (folder / name).write_text(text, encoding="utf-8")
    await stage.memory.notes.scan()


async def test_the_notes_that_go_in_are_items_and_those_held_back_are_named(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        conversation_id = (await client.say("hello"))["conversation_id"]
        stage.tools.note(conversation_id, "mcp__ata__article-list-query")
        await write_notes(stage, NOTES)
        open_pack = await context(client, QUESTION)
        pack = await context(client, QUESTION, conversation_id=conversation_id)
        labelled = await context(client, QUESTION, scope={"project_id": "billing"})
        ids = {item["id"]: item["source"] for item in open_pack["items"]}
        for item_id, source in ids.items():
            assert (await client.read(f"/memory/items/{item_id}"))["source"] == source
    assert set(ids.values()) == {f"memory/{name}" for name in NOTES}
    assert "SENTINEL" in open_pack["text"]
    assert [(item["title"], item["kind"]) for item in pack["items"]] == [("Tea", "note")]
    assert pack["items"][0]["why"] == "asked about memory"
    assert pack["items"][0]["line"] in pack["text"].splitlines()
    assert {item["id"] for item in pack["held_back"]} == {
        one for one, source in ids.items() if source != "memory/tea.md"
    }
    assert {item["reason"] for item in pack["held_back"]} == {"stale_tool_schema"}
    assert "SENTINEL" not in pack["text"]
    assert (labelled["items"], labelled["text"]) == ([], ""), "labels give no notes, as in search"


async def test_a_notes_delivery_that_was_given_up_is_listed_and_retried(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        await write_notes(stage, {"tea.md": "# Tea\n\ngreen\n"})
        now = utc_now()
        (taken,) = await stage.memory.outbox.due("vectors", now, limit=9, until=now)
        await stage.memory.outbox.failed(taken, "It is full.", now, due_at=None)
        for user in ("ada", "bob"):
            client = stage.client(user)
            (dead,) = (await client.read("/memory/outbox?status=dead"))["deliveries"]
            assert (dead["item_id"], dead["last_error"]) == (taken.item_id, "It is full.")
            again = await client.post(f"/memory/outbox/{dead['id']}/retry")
            assert (again.status_code, again.json()["status"]) == (200, "pending")
            await stage.memory.outbox.failed(taken, "It is full.", now, due_at=None)


CASE: Json = {
    "symptom_summary": "Checkout answers 503",
    "diagnosis": "Its pool is exhausted.",
    "resolution": "Raise the pool.",
    "confidence": 0.1,
}


async def write(client: Client, title: str, day: int) -> None:
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


async def titles(client: Client, **params: str | int) -> list[str]:
    """Return the titles of all pages."""
    return [item["title"] for item in await client.pages("/memory/items", "items", **params)]


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
        await write_notes(stage, {"oil.md": "# Oil\nThe oil stands in the cellar.\n"})
        mine = ["Lathe", "Valve", "Kiln", "Pump"]
        assert await titles(ada, kind="episode") == mine
        assert await titles(ada, kind="episode", limit=1) == mine
        everything = await titles(ada, limit=2)
        assert sorted(everything) == sorted([*mine, "Oil", CASE["symptom_summary"]])
        assert await titles(ada, q="öL 部署 PUMP") == ["Pump"]
        assert await titles(bob) == ["Oil", "Anvil"]
        (shown,) = (await ada.read("/memory/items?kind=case"))["items"]
        assert (shown["id"], shown["why"]) == (hidden, "hidden: rejected")
        (found,) = (await ada.read("/memory/items?q=cellar"))["items"]
        assert found["why"] == "remembered, contains cellar"
        for params, field in (({"kind": "novel"}, "kind"), ({"cursor": "x"}, "cursor")):
            answer = await ada.get("/memory/items", params=params)
            assert assert_error(answer, 422, "invalid_request")["details"]["field"] == field


async def test_a_page_begins_where_the_last_one_ended_whatever_went_meanwhile(
    tmp_path: Path,
) -> None:
    async with one_client(tmp_path) as client:
        for day in (1, 2, 3):
            await write(client, f"Day {day}", day)
        first = await client.read("/memory/items?limit=1")
        await client.delete(f"/memory/items/{first['items'][0]['id']}")
        await write(client, "Day 4", 4)
        assert await titles(client, cursor=first["next_cursor"]) == ["Day 2", "Day 1"]


async def test_an_export_has_everything_of_the_user_and_nothing_of_others(tmp_path: Path) -> None:
    async with two_clients(tmp_path) as (ada, bob):
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


async def test_an_export_is_imported_by_its_person_elsewhere_once(
    tmp_path: Path,
) -> None:
    async with two_clients(tmp_path) as (ada, bob):
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
        assert (first, again) == ({"stored": 4}, {"there": 4})
        taken = {"backup", "the gate code changes on Mondays", "my locker is number 12"}
        assert set(await titles(bob)) == {"my locker is number 31", *taken}
        assert (await bob.read("/memory/profile"))["text"] == "I am Ada."


async def test_imported_facts_keep_ids_that_are_free_so_that_they_export_as_they_were(
    tmp_path: Path,
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with staged(tmp_path / "one", users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        words = "remember that the gate code changes on Mondays"
        told = ToldTurn(
            message=words,
            scope=Scope(owner_id="ada"),
            conversation_id="cnv_1",
            turn_id="trn_1",
            occurred_at=utc_now(),
        )
        prove = partial(said_in, messages=[Message("trn_1", words)])
        said = NewFact(text="Mondays.", origin="request", lasting=True, evidence=words)
        await stage.memory.facts.remember(said, told, prove)
        await write(ada, "backup", 2)
        kept = await keep(ada, "my locker is number 12")
        await ada.patch(f"/memory/items/{kept['id']}", json={"text": "my locker is number 13"})
        exported = (await ada.get("/memory/export")).text.splitlines()
        await bob.post("/memory/import", json={"lines": exported})
        taken = (await bob.get("/memory/export")).text
        assert "number 13" in taken
        assert kept["id"] not in taken
    async with staged(tmp_path / "two", users=("ada",)) as stage:
        ada = stage.client("ada")
        await ada.post("/memory/import", json={"lines": exported})
        again = (await ada.get("/memory/export")).text.splitlines()
        assert again[:-1] == exported[:-1]
        assert [json.loads(lines[-1])["text"] for lines in (again, exported)] == ["- Mondays."] * 2


async def test_an_imported_fact_passes_the_gate_as_a_written_one_does(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        await keep(client, "my locker is number 12")
        exported = json.loads((await client.get("/memory/export")).text)

        def fact(**fields: object) -> str:
            return json.dumps(exported | fields)

        told = "the password: hunterEvidence99x is new, and my bike\u202e is blue"
        lines = [
            fact(id="fac_1", body="My bike\u202e is\u200b blue.", evidence=told),
            fact(id="fac_2", body="The tool mcp__x__find takes query: string and limit: number."),
            fact(id="fac_3", body=f"{SCHEMA}; {OWNER}", evidence=SCHEMA),
            fact(id="fac_4", body="hello"),
        ]
        counts = (await client.post("/memory/import", json={"lines": lines})).json()
        assert (counts["stored"], counts["refused"]) == (2, 2)
        bike, ops = [await client.read(f"/memory/items/fac_{number}") for number in (1, 3)]
        assert bike["body"] == "My bike is blue."
        assert "hunterEvidence99x" not in repr(bike)
        assert bike["evidence"].endswith("is new, and my bike is blue")
        assert (ops["body"], ops["evidence"]) == (OWNER, None)


async def test_a_profile_that_is_too_long_is_not_imported(tmp_path: Path) -> None:
    line: Json = {"format": "candor-profile-1", "owner_id": "x", "updated_at": None, "scope": {}}
    async with one_client(tmp_path) as client:
        for text, status in (("茶" * 2_001, "refused"), ("茶" * 2_000, "stored")):
            lines = [json.dumps(line | {"text": text})]
            counts = (await client.post("/memory/import", json={"lines": lines})).json()
            assert counts[status] == 1
            profile = (await client.read("/memory/profile"))["text"]
            assert profile == (text if status == "stored" else "")
