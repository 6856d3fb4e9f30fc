"""What `POST /memory/context` says of notes, where the question is about memory itself."""

from pathlib import Path

import anyio

from tests.service.http.stage import Json, Stage, staged

QUESTION = "what do you remember?"
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


async def context(stage: Stage, asked: Json) -> Json:
    answer = await stage.client().post("/memory/context", json=asked)
    assert answer.status_code == 200, answer.text
    pack: Json = answer.json()
    return pack


async def test_the_notes_that_go_in_are_items_and_those_held_back_are_named(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        chat = (await stage.client().post("/chat", json={"message": "hello"})).json()
        stage.tools.note(chat["conversation_id"], "mcp__ata__article-list-query")
        await write_notes(stage, NOTES)
        asked: Json = {"queries": [QUESTION]}
        open_pack = await context(stage, asked)
        pack = await context(stage, asked | {"conversation_id": chat["conversation_id"]})
        ids = {item["id"]: item["source"] for item in open_pack["items"]}
        for item_id, source in ids.items():
            item = (await stage.client().get(f"/memory/items/{item_id}")).json()
            assert item["source"] == source
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


async def test_a_query_with_a_label_is_given_no_notes_as_in_search(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        await write_notes(stage, NOTES)
        pack = await context(stage, {"queries": [QUESTION], "scope": {"project_id": "billing"}})
    assert (pack["items"], pack["text"]) == ([], "")
