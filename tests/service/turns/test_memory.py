"""What turns leave in memory and get out of it, with the real memory and the scripted engine."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import anyio
import pytest

from gateway.ids import LOCAL_USER as ME
from gateway.ids import UserId
from gateway.turns.context import TurnContext
from gateway.turns.requests import ChatRequest
from memory.errors import StoreUnavailable
from memory.intents.chronicle import IntentRecord
from memory.items.scope import Scope
from memory.recall.query import ContextPack, QueryPack
from tests.support.builders import codes
from tests.support.fact_turns import forget, held, remember, saying
from tests.support.services import RunningServices, of_kind, running_services, script

WROTE = script(
    {"tool": "Bash", "input": {"command": "mkdir otters"}},
    {"text": "We decided to keep the otter list in a.txt."},
)


async def intents_of(services: RunningServices, **which: Any) -> list[IntentRecord]:
    """Return the chronicle, oldest first."""
    page = await services.open_memory.chronicle.page(ME, limit=200, **which)
    return list(reversed(page.records))


async def episodes_of(services: RunningServices, owner_id: str = ME) -> list[str]:
    """Return the titles of all episodes after the worker has caught up."""
    memory = services.open_memory
    await memory.episode_worker.drain()
    found = await memory.items.newest(Scope(owner_id=owner_id), kinds=["episode"], limit=50)
    return [found_item.title for found_item in found]


async def test_a_turn_is_in_the_chronicle_in_the_order_of_what_happened(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        result = await services.ask(WROTE)
        records = await intents_of(services, conversation_id=result["conversation_id"])
        lines = await services.journal_of(result)
    told = [record.key for record in records if record.turn_id == result["turn_id"]]
    expected = "turn.received permission.allowed tool.Bash.ok llm.response turn.completed"
    assert told == expected.split()
    by_kind = {line["kind"]: line for line in lines}
    assert (by_kind["request"]["intent"], by_kind["tool"]["intent"]) == (told[0], told[2])
    assert "mkdir otters" in by_kind["tool"]["text"]


async def test_a_secret_in_a_turn_is_nowhere_in_the_database(tmp_path: Path) -> None:
    secret = "known-secret-4711"
    async with running_services(tmp_path) as services:
        message = script(
            {"tool": "Bash", "input": {"command": f"cat {secret}.txt"}}, {"text": secret}
        )
        await services.ask(message)
        await episodes_of(services)
        directory = services.settings.data_dir
    stored = b"".join(path.read_bytes() for path in directory.glob("memory.sqlite3*"))
    assert b"turn.completed" in stored
    assert secret.encode() not in stored


@pytest.mark.parametrize(("message", "woken"), [(WROTE, {"episodes", "notes"}), ("Hi", set())])
async def test_only_a_turn_that_called_a_tool_can_have_left_an_episode_or_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, woken: set[str]
) -> None:
    seen: set[str] = set()
    async with running_services(tmp_path) as services:
        memory = services.open_memory
        monkeypatch.setattr(memory.episode_worker, "wake", lambda: seen.add("episodes"))
        monkeypatch.setattr(memory.notes, "wake", lambda: seen.add("notes"))
        await services.ask(message)
    assert seen == woken


async def test_what_was_done_is_shown_to_the_next_conversation(tmp_path: Path) -> None:
    async with running_services(tmp_path, record="off") as services:
        first = await services.ask(WROTE)
        await episodes_of(services)
        second = await services.ask(f"Where is the otter list?\n{script({'echo': 'context'})}")
    (shown,) = second["memory"]["injected"]
    assert (shown["kind"], shown["id"][:4]) == ("episode", "epi_")
    assert first["conversation_id"] in shown["source"]
    assert "otter list in a.txt" in second["reply"]


async def test_the_next_prompt_is_told_once_of_a_turn_that_was_cut_off(tmp_path: Path) -> None:
    echo = script({"echo": "context"})
    async with running_services(tmp_path, record="off") as services:
        running = await services.begin()
        cut = await services.stop(running)
        told = await services.ask(echo, running.conversation_id)
        again = await services.ask(echo, running.conversation_id)
        elsewhere = await services.ask(echo)
    assert cut["stop_reason"] == "user_interrupt"
    assert "(interrupted, user_interrupt). The person stopped it." in told["reply"]
    assert "cut off" not in again["reply"]
    assert "cut off" not in elsewhere["reply"]


@dataclass
class NotingReader:
    """Remembers nothing, and notes what it is asked."""

    asked: list[QueryPack] = field(default_factory=list)

    async def recall(self, query: QueryPack) -> ContextPack:
        self.asked.append(query)
        return ContextPack()


@pytest.mark.parametrize(("recall", "mode"), [("ranking", "rag"), ("model", "llm")])
async def test_the_setting_says_who_chooses_from_memory(
    tmp_path: Path, recall: str, mode: str
) -> None:
    reader = NotingReader()
    async with running_services(tmp_path, memory=reader, recall=recall) as services:
        await services.ask("hello")
    (query,) = reader.asked
    assert (query.mode, query.selecting_s > 0) == (mode, mode == "llm")


async def test_a_conversation_without_memory_leaves_nothing(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        conversation_id = await services.create()
        await services.change(conversation_id, memory_enabled=False)
        result = await services.ask(WROTE, conversation_id)
        assert await episodes_of(services) == []
        records = await intents_of(services, conversation_id=conversation_id)
        lines = await services.journal_of(result)
    assert [record.turn_id for record in records if record.turn_id] == []
    assert not any("intent" in line for line in lines)


@pytest.mark.parametrize("said", ["remember that my locker is number 12", "记住：我的柜子是12号"])
async def test_memory_that_is_switched_off_during_a_turn_keeps_nothing_of_it(
    tmp_path: Path, said: str
) -> None:
    mkdir = {"tool": "Bash", "input": {"command": "mkdir otters"}}
    message = saying(said, mkdir, remember(said))
    async with running_services(tmp_path, approvals="on") as services:
        accepted = await services.send(message)
        question = await services.question_of(accepted)
        await services.change(accepted.conversation_id, memory_enabled=False)
        await services.answer(question, "allow")
        result = await services.result_of(accepted)
        records = await intents_of(services, conversation_id=accepted.conversation_id)
        assert await episodes_of(services) == []
        assert await held(services) == []
    assert [record.turn_id for record in records if record.turn_id] == []
    assert result["memory"]["saved"] == []
    assert [tool["status"] for tool in result["tools"]] == ["ok", "failed"]
    assert not {"kept_verbatim", "memory_not_written"} & set(codes(result["notices"]))


async def test_what_a_call_kept_before_memory_was_switched_off_is_told(tmp_path: Path) -> None:
    said = "remember that my locker is number 12"
    mkdir = {"tool": "Bash", "input": {"command": "mkdir otters"}}
    async with running_services(tmp_path, approvals="on") as services:
        accepted = await services.send(saying(said, remember(said), mkdir))
        question = await services.question_of(accepted)
        await services.change(accepted.conversation_id, memory_enabled=False)
        await services.answer(question, "allow")
        result = await services.result_of(accepted)
        assert len(await held(services)) == 1
    assert ["12" in item["title"] for item in result["memory"]["saved"]] == [True]


@pytest.mark.parametrize("fact", ["my locker is number 12", "我的柜子是12号"])
async def test_memory_that_is_switched_off_before_a_turn_forgets_says_that_nothing_was_forgotten(
    tmp_path: Path, fact: str
) -> None:
    said = f"forget that {fact}"
    mkdir = {"tool": "Bash", "input": {"command": "mkdir otters"}}
    async with running_services(tmp_path, approvals="on") as services:
        known = await services.open_memory.facts.write(fact, Scope(owner_id=ME))
        accepted = await services.send(saying(said, mkdir, forget(said, known.id)))
        question = await services.question_of(accepted)
        await services.change(accepted.conversation_id, memory_enabled=False)
        await services.answer(question, "allow")
        result = await services.result_of(accepted)
        assert await held(services) == [fact]
    assert "nothing_forgotten" in codes(result["notices"])


async def test_a_turn_that_began_without_memory_leaves_nothing_though_it_is_on_when_it_ends(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path, approvals="on") as services:
        conversation_id = await services.create()
        await services.change(conversation_id, memory_enabled=False)
        accepted = await services.send(WROTE, conversation_id)
        question = await services.question_of(accepted)
        await services.change(conversation_id, memory_enabled=True)
        await services.answer(question, "allow")
        await services.result_of(accepted)
        records = await intents_of(services, conversation_id=conversation_id)
        assert await episodes_of(services) == []
    assert [record.turn_id for record in records if record.turn_id] == []


async def test_a_switch_that_cannot_be_read_is_reported_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable = AsyncMock(side_effect=StoreUnavailable)
    monkeypatch.setattr(TurnContext, "has_memory_on", unreadable)
    async with running_services(tmp_path) as services:
        said = "remember that my locker is number 12"
        search = {"tool": "mcp__memory__memory_search", "input": {"query": "locker"}}
        result = await services.ask(saying(said, remember(said), search))
        records = await intents_of(services, conversation_id=result["conversation_id"])
        assert await held(services) == []
    assert [record.turn_id for record in records if record.turn_id] == []
    assert "memory_not_written" in codes(result["notices"])
    errors = [tool["error"] for tool in result["tools"]]
    assert errors == ["Memory cannot be used at present: nothing was changed. Tell the person."] * 2


STALE = "# Bash\n\nParameter schema: command, timeout. A guessed call format.\n"
DURABLE = "# Bash known issue\n\nKnown issue: no parameter of the Bash tool, and nothing in its schema, keeps a cd; the workaround is full paths.\n"


async def write_notes(services: RunningServices, **notes: str) -> None:
    folder = anyio.Path(services.settings.workspace) / "memory"
    await folder.mkdir(exist_ok=True)
    for name, text in notes.items():
        await (folder / f"{name}.md").write_text(text, encoding="utf-8")
    await services.open_memory.notes.scan()


async def test_old_knowledge_of_the_agents_tools_is_held_back_from_the_first_turn_on(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path, recall_deadline_ms=5000, record="off") as services:
        await write_notes(services, stale=STALE, durable=DURABLE)
        question = f"what is the Bash parameter schema?\n{script({'echo': 'context'})}"
        result = await services.ask(question)
    assert [held["reason"] for held in result["memory"]["suppressed"]] == ["stale_tool_schema"]
    counted = services.metrics.registry.get_sample_value
    for name, labels, least in (
        ("recall_held_back_total", {"reason": "stale_tool_schema"}, 1),
        ("recall_items_total", {"result": "scanned"}, 1),
        ("recall_seconds_count", {"stage": "fulltext"}, 1),
        ("recall_seconds_count", {"stage": "items"}, 1),
        ("recall_seconds_count", {"stage": "whole"}, 1),
    ):
        assert (counted(f"candor_{name}", labels) or 0) >= least, name
    assert "memory/stale.md" not in {entry["source"] for entry in result["memory"]["injected"]}
    assert "guessed" not in result["reply"]
    assert "known issue" in result["reply"].lower()


SECTIONS = (
    "# Tea\n\nAnn likes green tea.\n\n# 部署\n\n九点开始部署。\n" + "\nThe rest of it. 其余。" * 100
)
ABOUT_MEMORY = "what do you remember? 你的记忆里有什么？"


async def test_notes_that_were_asked_for_are_told_as_injected_everywhere(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        await write_notes(services, durable=DURABLE, sections=SECTIONS)
        message = f"{ABOUT_MEMORY}\n{script({'echo': 'context'})}"
        result, events, lines = await services.play(message)
        records = await intents_of(services, conversation_id=result["conversation_id"])
        items = services.open_memory.items
        found = await items.newest(Scope(owner_id=ME), kinds=["note"], limit=50)
    told = result["memory"]["injected"]
    assert {one["id"]: one["source"] for one in told} == {note.id: note.source for note in found}
    assert len(told) == len(found), "each once"
    assert all(each_report["why"].startswith("asked about memory") for each_report in told)
    assert {item["kind"] for item in told} == {"note"}
    (event,) = of_kind(events, "memory.injected")
    (line,) = [each_line for each_line in lines if each_line["kind"] == "context"]
    assert event["injected"] == line["injected"] == told
    (record,) = [each_record for each_record in records if each_record.key == "memory.injected"]
    assert record.payload["ids"] == [entry["id"] for entry in told]
    assert "Ann likes green tea" in result["reply"]


async def test_what_is_one_users_is_not_shown_to_another(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        await services.ask(WROTE)
        assert len(await episodes_of(services)) == 1
        other = UserId("bob")
        question = ChatRequest(message=f"Where is the otter list?\n{script({'echo': 'context'})}")
        accepted = await services.chat.intake.accept(other, question)
        with anyio.fail_after(30):
            asked = await services.chat.reader.result(other, accepted.turn_id)
        assert asked["memory"]["injected"] == []
        assert "otter" not in asked["reply"]
        assert await episodes_of(services, "bob") == []


async def test_conversations_are_told_as_they_begin_are_left_and_branch_off(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        first = await services.ask("hello")
        old = first["conversation_id"]
        fork = await services.fork(old, first["turn_id"])
        fresh = await services.create(leaving=old)
        with anyio.fail_after(30):
            while len(await intents_of(services, key="conversation.")) < 3:
                await anyio.lowlevel.checkpoint()
        told = await intents_of(services, key="conversation.")
    assert [
        (one.key, one.conversation_id, one.payload.get("from_conversation_id")) for one in told
    ] == [
        ("conversation.started", old, None),
        ("conversation.forked", fork, old),
        ("conversation.reset", fresh, old),
    ]


async def test_a_turn_that_cannot_be_recorded_says_so_and_is_answered(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        write = services.open_memory.database.write
        await write(lambda writer: writer.execute("DROP TABLE intents"))
        result = await services.ask(WROTE)
    assert result["outcome"] == "answered"
    assert codes(result["notices"]) == ["memory_not_written"]


async def test_an_episode_that_a_crash_prevented_is_made_at_the_next_start(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    async with running_services(before) as services:
        write = services.open_memory.database.write
        await write(lambda writer: writer.execute("ALTER TABLE episodes RENAME TO hidden"))
        result = await services.ask(WROTE)
        assert result["outcome"] == "answered"
        await write(lambda writer: writer.execute("ALTER TABLE hidden RENAME TO episodes"))
        await services.copy_as_after_a_crash(after)
    async with running_services(after) as services:
        assert len(await episodes_of(services)) == 1


async def test_what_the_guards_did_is_in_the_chronicle(tmp_path: Path) -> None:
    ls = {"tool": "Bash", "input": {"command": "ls"}}
    async with running_services(tmp_path, doom_loop_threshold=3) as services:
        looped = await services.ask(script({"repeat": ls, "times": 9}))
        assert looped["stop_reason"] == "doom_loop"
        followup = {"on_followup": [{"text": "Two files."}]}
        silent = await services.ask(script(ls, {"empty": True}, followup))
        assert "forced_summary" in codes(silent["notices"])
        noted = {intent.key: intent.turn_id for intent in await intents_of(services, key="guard.")}
    turns = {"guard.doom_loop": looped["turn_id"], "guard.forced_summary": silent["turn_id"]}
    assert noted == turns
