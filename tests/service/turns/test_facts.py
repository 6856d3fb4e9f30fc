"""What persons tell in plain words is kept after the turn and known in the next conversation."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.ids import LOCAL_USER as ME
from memory.facts.fact import Fact
from memory.scope import Scope
from tests.service.turns.test_memory import WROTE, episodes_of, intents_of
from tests.support.services import RunningServices, running_services, script

MINE = Scope(owner_id=ME)


async def held(services: RunningServices) -> list[str]:
    """Return the texts of the facts that hold, oldest first."""
    items = await services.open_memory.items.newest(MINE, kinds=["fact"], limit=50)
    return [item.body for item in reversed(items)]


async def context_of(services: RunningServices, result: dict[str, Any]) -> str:
    (line,) = [one for one in await services.journal_of(result) if one["kind"] == "context"]
    return str(line["text"])


async def test_what_a_person_tells_is_known_in_the_next_conversation(tmp_path: Path) -> None:
    told = [
        "remember that my locker is number 12",
        "记住我的车牌是沪A12345",
        "I am Ana and I like short answers",
        "remember that the demo is on Thursday",
    ]
    async with running_services(tmp_path) as services:
        await services.ask("the demo is on Thursday")
        for message in told:
            result = await services.ask(message)
            (saved,) = result["memory"]["saved"]
            assert saved["kind"] == "fact"
            assert saved["title"] in message
        result = await services.ask("no, the demo is on Friday now")
        (saved,) = result["memory"]["saved"]
        assert saved["title"] == "the demo is on Friday now"
        asked = await services.ask("What is the number of my locker?")
        text = await context_of(services, asked)
        assert "my locker is number 12" in text
        assert "> - I am Ana and I like short answers" in text
        assert asked["memory"]["profile"] is True
        assert "沪A12345" in await context_of(services, await services.ask("我的车牌号是多少？"))
        demo = await services.ask("When is the demo?")
        text = await context_of(services, demo)
        assert "Friday" in text
        assert "Thursday" not in text
        assert "superseded" in {entry["reason"] for entry in demo["memory"]["suppressed"]}


async def test_the_profile_and_the_newest_episode_are_shown_though_a_search_never_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def search(*_: object, **__: object) -> None:
        await anyio.sleep_forever()

    async with running_services(tmp_path, recall_deadline_ms=1) as services:
        await services.ask("I am Ana and I like short answers")
        await services.ask(WROTE)
        await episodes_of(services)
        monkeypatch.setattr("memory.recall.search.MemorySearch.search", search)
        result = await services.ask("Where is it?")
        text = await context_of(services, result)
    assert "> - I am Ana and I like short answers" in text
    assert "Memory backend degraded: memory_timeout" in text
    assert (result["memory"]["profile"], result["memory"]["degraded"]) == (True, ["memory_timeout"])
    assert [shown["kind"] for shown in result["memory"]["injected"]] == ["episode"]


async def test_a_fact_is_recorded_as_an_intent_with_its_turn_and_masked(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        result = await services.ask("remember that the token is known-secret-4711")
        again = await services.ask("Remember: the token is known-secret-4711")
        assert again["memory"]["saved"] == []
        (fact_id,) = [entry["id"] for entry in result["memory"]["saved"]]
        (intent,) = [one for one in await intents_of(services) if one.key == "memory.saved"]
        assert (intent.payload["ids"], intent.turn_id) == ([fact_id], result["turn_id"])
        assert "4711" not in intent.text
        fact = await services.open_memory.facts.store.get(fact_id, MINE)
        assert fact is not None
        assert fact.turn_id == result["turn_id"]
        assert "4711" not in fact.text


async def test_a_correction_supersedes_and_its_undo_restores(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        first = (await services.ask("remember that the demo is on Thursday"))["memory"]["saved"][0]
        second = (await services.ask("不是 Thursday，而是 Friday"))["memory"]["saved"][0]
        memory = services.open_memory
        old, new = [await memory.facts.store.get(one["id"], MINE) for one in (first, second)]
        assert isinstance(old, Fact)
        assert isinstance(new, Fact)
        assert (old.superseded_by, old.valid_until) == (new.id, new.valid_from)
        (holds,) = await held(services)
        assert holds == "不是 Thursday，而是 Friday [earlier: the demo is on Thursday]"
        assert await memory.forget(new.id, MINE)
        assert await held(services) == ["the demo is on Thursday"]


async def test_a_change_of_what_a_fact_is_about_supersedes_it(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        await services.ask("请牢记：蜂箱放在磨坊后面")
        await services.ask("remember that the rehearsal is on Monday")
        for ordinary in ("The rehearsal is fun.", "Translate this:\nThe rehearsal moved to May."):
            await services.ask(ordinary)
        assert await held(services) == ["蜂箱放在磨坊后面", "the rehearsal is on Monday"]
        await services.ask("蜂箱改成放在磨坊前面了")
        await services.ask("The rehearsal moved to Tuesday.")
        assert await held(services) == ["蜂箱改成放在磨坊前面了", "The rehearsal moved to Tuesday"]


async def test_a_question_about_all_of_memory_lists_facts_before_other_items(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        await services.ask("remember that my locker is number 12")
        for number in range(12):
            await services.ask(f"Please compare draft {number} with the one before.")
        asked = await services.ask("What do you remember about me?")
        assert asked["memory"]["injected"][0]["title"] == "my locker is number 12"
        assert len(asked["memory"]["injected"]) > 1


async def test_a_request_that_names_nothing_forgets_the_turn_before(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        chat = (await services.ask("rename config.ini to config.toml"))["conversation_id"]
        for about_files in ("undo that", "delete that"):
            result = await services.ask(about_files, conversation_id=chat)
            assert result["memory"].get("forgotten", []) == []
        first = await services.ask("remember that my locker is number 12")
        chat = first["conversation_id"]
        await services.ask("记住我的车牌是沪A12345", conversation_id=chat)
        result = await services.ask("把刚才记的那条删掉", conversation_id=chat)
        assert [one["text"] for one in result["memory"]["forgotten"]] == ["我的车牌是沪A12345"]
        assert await held(services) == ["my locker is number 12"]
        result = await services.ask("Don't remember that.", conversation_id=chat)
        (forgotten,) = result["memory"]["forgotten"]
        assert (forgotten["kind"], forgotten["text"]) == ("turn", None)
        assert await held(services) == ["my locker is number 12"], "it means the turn before alone"
        result = await services.ask("Remember that my shoe size is 43. No, don't save that.")
        assert result["memory"]["saved"] == []
        found = await services.open_memory.items.newest(MINE, kinds=["turn"], limit=50)
        assert not [item for item in found if "沪A12345" in item.body]


async def test_forgetting_in_words_forgets_what_was_superseded_too(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        await services.ask("remember that my locker is number 12")
        await services.ask("no, my locker is number 14 now")
        await services.ask("记住我喜欢绿色")
        result = await services.ask("please forget my locker number")
        (forgotten,) = result["memory"]["forgotten"]
        assert (forgotten["kind"], forgotten["text"]) == ("fact", "my locker is number 14 now")
        assert forgotten["earlier"] == ["my locker is number 12"]
        assert await held(services) == ["我喜欢绿色"]
        told = [intent.text for intent in await intents_of(services)]
        kept = [text for text in told if text.startswith(("The person", "Saved"))]
        assert not [text for text in kept if "number 1" in text]
        asked = await services.ask("What is the number of my locker?")
        assert "number 1" not in await context_of(services, asked), "nor is the turn shown"
        facts = services.open_memory.facts
        for _ in range(2):  # the page's undo, twice
            back = await facts.write(forgotten["text"], MINE, earlier=forgotten["earlier"])
            assert await held(services) == ["我喜欢绿色", "my locker is number 14 now"]
            assert [old.text for old in await facts.store.older(back.id)] == forgotten["earlier"]


async def test_a_correction_of_what_was_said_before_in_the_conversation_is_kept(
    tmp_path: Path,
) -> None:
    said = {
        "prepare the slides for the demo on Thursday": "Demo got pushed to Friday",
        "周四的演示帮我准备一下材料": "演示改到周五了",
    }
    async with running_services(tmp_path) as services:
        for before, change in said.items():
            assert (await services.ask(change))["memory"]["saved"] == [], "it corrects nothing"
            first = await services.ask(before)
            await services.ask("Thanks, that will do.", first["conversation_id"])
            result = await services.ask(change, first["conversation_id"])
            assert [fact["title"] for fact in result["memory"]["saved"]] == [
                f"{change} [earlier: {before}]"
            ]
        asked = await services.ask("When is the demo, on which day?")
        assert "on Thursday\n" not in await context_of(services, asked)


async def test_what_a_request_to_forget_does_not_reach_is_told(tmp_path: Path) -> None:
    facts = ["my locker is number 12", "the gym's locker number is 7", "我的柜子是12号"]
    facts.append("the gate code is 4417")
    remove = {"command": "rm memory/team.md"}
    told = {
        "forget the locker number": ("forget_unclear", f"“{facts[1]}”; “{facts[0]}”"),
        "请忘掉我牙医的名字": ("forget_found_nothing", "“请忘掉我牙医的名字”"),
        "forget the gate code": ("still_remembered", "“The gate code is 4417.”"),
        "forget the pantry key": ("forget_found_nothing", "forget the pantry key"),
        "忘掉我的柜子号码": ("still_remembered", "team.md: “柜子：我的柜子是12号”"),
        "please forget that Ben is on leave": ("still_remembered", "team.md: “Ben is on leave”"),
        f"please forget that Ben is on leave\n{script({'tool': 'Bash', 'input': remove}, {'text': 'Done.'})}": (
            "forget_found_nothing",  # for the agent has removed it
            "Ben is on leave",
        ),
    }
    async with running_services(tmp_path) as services:
        folder = services.settings.workspace / "memory"
        await anyio.Path(folder).mkdir()
        (folder / "team.md").write_text("# Team\n- 柜子：我的柜子是12号\n- Ben is on leave\n")
        await services.ask(f"Make up a gate code.\n{script({'text': 'The gate code is 4417.'})}")
        for fact in facts:
            await services.ask(f"remember that {fact}")
        for message, (code, what) in told.items():
            (notice,) = (await services.ask(message))["notices"]
            assert (notice["code"], what in notice["message"]) == (code, True), notice
        assert await held(services) == facts[:2], "a guess may forget the wrong one"


async def test_a_request_forgets_facts_of_its_project_and_of_none(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        gym, pool = [await services.create(project_id=name) for name in ("gym", "pool")]
        await services.ask("remember that the locker code is 4417", gym)
        await services.ask("记住我喜欢绿色")
        result = await services.ask("forget the locker code", pool)
        assert result["memory"]["forgotten"] == []
        await services.ask("忘掉我喜欢的颜色", pool)
        assert await held(services) == ["the locker code is 4417"]


async def test_nothing_is_kept_twice_or_where_memory_or_learning_is_off(tmp_path: Path) -> None:
    note = {"file_path": "memory/notes.md", "content": "- my locker is number 12\n"}
    async with running_services(tmp_path) as services:
        await anyio.Path(services.settings.workspace / "memory").mkdir()
        noted = await services.ask(
            f"remember that my locker is number 12\n{script({'tool': 'Write', 'input': note})}"
        )
        assert noted["tools"][0]["status"] == "ok", noted["tools"]
        assert noted["memory"]["saved"] == []
        quiet = await services.create()
        await services.change(quiet, memory_enabled=False)
        result = await services.ask("remember the code is 4417", quiet)
        assert result["memory"]["saved"] == []
        assert await held(services) == []
    async with running_services(tmp_path / "off", learn="off") as services:
        assert (await services.ask("remember my code is 4417"))["memory"]["saved"] == []
        assert await held(services) == []


async def test_a_correction_of_what_a_note_says_is_kept_and_comes_before_it(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        folder = services.settings.workspace / "memory"
        await anyio.Path(folder).mkdir()
        (folder / "choir.md").write_text("# Choir\n- The rehearsal is on Monday at 7 pm\n")
        (folder / "team.md").write_text("# Team\n- 例会在周三\n")
        os.utime(folder / "choir.md", (1_700_000_000, 1_700_000_000))
        await services.open_memory.notes.scan()
        for told in ("No, it rains on Tuesdays.", "The weather moved to Denmark."):
            assert (await services.ask(told))["memory"]["saved"] == []
        await services.ask("No, the rehearsal is at 8 pm now")
        await services.ask("例会改到周四了")
        assert await held(services) == [
            "the rehearsal is at 8 pm now [earlier: The rehearsal is on Monday at 7 pm]",
            "例会改到周四了 [earlier: 例会在周三]",
        ]
        asked = await services.ask("When is the rehearsal?")
        assert "8 pm" in asked["memory"]["injected"][0]["title"]
        assert "superseded" in {one["reason"] for one in asked["memory"]["suppressed"]}
