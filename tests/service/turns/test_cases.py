"""Case memory, recalled memory and a person's own rules in a turn."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from gateway.errors import StartError
from gateway.ids import LOCAL_USER as ME
from gateway.ids import ConversationId
from gateway.trust import OWN_SKILLS
from gateway.turns.case_tools import CASE_SERVER
from gateway.turns.memory_tools import MEMORY_SERVER
from gateway.workspace import prepare_workspace_blocking
from memory.items.scope import Scope, SearchScope
from memory.recall.query import RECALLED_KINDS, QueryPack
from tests.support.builders import REMEMBERED, Memory
from tests.support.services import RunningServices, of_kind, running_services, script

SEARCH, UPSERT, FEEDBACK, RENDER = (
    f"mcp__memory_case__memory_case_{does}" for does in ("search", "upsert", "feedback", "render")
)
CASE = {
    "symptom_summary": "发布后结账接口返回 503 (checkout 503 after deploy)",
    "diagnosis": "Readiness passes before the pool is filled; the first requests time out.",
    "root_cause": "The readiness probe does not look at the connection pool.",
    "resolution": "Added the pool to the readiness check.",
    "confidence": 0.7,
}


async def with_cases(services: RunningServices, **scope: Any) -> ConversationId:
    conversation_id = await services.create()
    await services.change(conversation_id, case_memory=True, **scope)
    return conversation_id


async def call(
    services: RunningServices, conversation_id: str, name: str, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Call a tool as the agent; return how the call ended, with its whole output as JSON if any."""
    message = script({"tool": name, "input": dict(arguments)}, {"text": "called"})
    accepted = await services.send(message, conversation_id)
    await services.result_of(accepted)
    (finished,) = of_kind(await services.events_of(accepted), "tool.finished")
    try:
        told = json.loads(finished["output"] or finished["error"] or "")
    except ValueError:
        told = {}
    return {**finished, "told": told}


@pytest.mark.parametrize("off", [{"memory_enabled": False}, {"case_memory": False}])
async def test_cases_that_are_switched_off_during_a_turn_are_neither_written_nor_read(
    tmp_path: Path, off: dict[str, bool]
) -> None:
    async with running_services(tmp_path, approvals="on") as services:
        conversation_id = await with_cases(services)
        mkdir = {"tool": "Bash", "input": {"command": "mkdir otters"}}
        search = {"tool": SEARCH, "input": {"query": "503"}}
        message = script(mkdir, {"tool": UPSERT, "input": {"case": CASE}}, search)
        accepted = await services.send(message, conversation_id)
        question = await services.question_of(accepted)
        await services.change(conversation_id, **off)
        await services.answer(question, "allow")
        result = await services.result_of(accepted)
        assert [tool["status"] for tool in result["tools"]] == ["ok", "failed", "failed"]
        said = "The memory of cases is switched off for this conversation now."
        assert [tool["error"] for tool in result["tools"][1:]] == [said, said]


async def test_a_case_goes_from_one_conversation_to_another(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        first = await with_cases(services, app_code="shop", environment="production")
        recorded = await call(services, first, UPSERT, {"case": CASE})
        assert recorded["status"] == "ok"
        case_id = recorded["told"]["case_id"]
        labels = {"app_code": "shop", "environment": "production"}
        assert recorded["told"] == recorded["told"] | labels
        second = await with_cases(services, app_code="shop", environment="default")
        found = await call(services, second, SEARCH, {"query": "503"})
        assert [case["case_id"] for case in found["told"]["cases"]] == [case_id]
        rendered = await call(services, second, RENDER, {"case_ids": [case_id]})
        assert "Readiness passes before" in rendered["output"]
        judged = await call(services, second, FEEDBACK, {"case_id": case_id, "helpful": True})
        assert judged["told"]["confidence"] == 0.8
        other = await with_cases(services, app_code="bank")
        assert (await call(services, other, SEARCH, {"query": "503"}))["told"]["cases"] == []


async def test_only_a_conversation_that_has_it_switched_on_has_the_tools(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        plain = await services.create()
        await services.ask("hello", plain)
        on = await with_cases(services)
        await services.ask("hello", on)
        off = await with_cases(services)
        await services.change(off, memory_enabled=False)
        await services.ask("hello", off)
        specs = [client._spec.servers for client in services.scripted.clients]  # noqa: SLF001
        assert specs == [(MEMORY_SERVER,), (MEMORY_SERVER, CASE_SERVER), ()]
        # switched off, the next turn has another client
        await services.change(on, case_memory=False)
        assert (await call(services, on, SEARCH, {"query": "x"}))["status"] == "failed"


async def test_no_prompt_has_a_case_in_it_and_no_episode_repeats_one(tmp_path: Path) -> None:
    async with running_services(tmp_path, record="off") as services:
        first = await with_cases(services)
        await call(services, first, UPSERT, {"case": CASE})
        result = await services.ask(script({"echo": "context"}), first)
        assert "Readiness" not in result["reply"]
        asked = await services.ask("checkout 503 after deploy?", first)
        assert asked["memory"]["injected"] == []
        memory = services.open_memory
        await memory.episode_worker.drain()
        items = (await memory.search.search("503 deploy", scope=Scope(owner_id=ME))).hits
        assert [item.item.kind for item in items] == ["case"]


async def test_the_servers_switch_takes_case_memory_from_every_agent(tmp_path: Path) -> None:
    async with running_services(tmp_path, case_memory="off") as services:
        refused = await call(services, await with_cases(services), SEARCH, {"query": "x"})
        assert refused["status"] == "failed"
        (client,) = services.scripted.clients
        assert client._spec.servers == (MEMORY_SERVER,)  # noqa: SLF001


@pytest.mark.parametrize(("switch", "problem"), [("off", "off"), ("on", None)])
async def test_the_skill_of_case_memory_is_told_as_off_with_it(
    tmp_path: Path, switch: Literal["on", "off"], problem: str | None
) -> None:
    async with running_services(tmp_path, case_memory=switch) as services:
        workspace = await services.workspaces.open(ME)
        lay = partial(prepare_workspace_blocking, workspace.root, skills_source=OWN_SKILLS)
        await anyio.to_thread.run_sync(lay)
        listed = await anyio.to_thread.run_sync(workspace.skills.list_blocking)
        names = await anyio.to_thread.run_sync(workspace.skills.names_blocking)
    assert {item.name: item.problem for item in listed.items}["memory-case"] == problem
    assert {"memory-case", "memory-organize"} & set(names) == (
        {"memory-organize"} if problem else {"memory-case", "memory-organize"}
    )


async def test_what_memory_gives_reaches_the_model_the_client_and_the_journal(
    tmp_path: Path,
) -> None:
    memory = Memory(REMEMBERED)
    async with running_services(tmp_path, memory=memory, recall_deadline_ms=10_000) as services:
        result, events, lines = await services.play(script({"echo": "context"}))
    assert result["reply"] == "Ann likes tea."
    assert result["memory"]["injected"][0]["id"] == "epi_1"
    told = of_kind(events, "memory.injected")[0]
    assert {key: told[key] for key in result["memory"]} == result["memory"]
    assert (lines[1]["kind"], lines[1]["text"]) == ("context", "Ann likes tea.")
    (asked,) = memory.asked
    assert asked.deadline_s is not None
    assert 0 < asked.deadline_s <= 10
    assert asked == QueryPack(
        queries=(script({"echo": "context"}),),
        scope=SearchScope(owner_id=ME, or_without=("project_id",)),
        kinds=RECALLED_KINDS,
        conversation_id=result["conversation_id"],
        active_tools=asked.active_tools,
        deadline_s=asked.deadline_s,
    )


READ = {"tool": "Read", "input": {"file_path": "a.txt"}}
DONE = {"text": "done"}


def _rules(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "rules.toml"
    file.write_text(text, encoding="utf-8")
    return file


async def test_a_rule_asks_a_person_also_about_a_call_that_changes_nothing(tmp_path: Path) -> None:
    file = _rules(tmp_path, '[[ask]]\ntools = ["Read"]\n')
    async with running_services(tmp_path, approvals="on", policy_file=file) as services:
        accepted = await services.send(script(READ, DONE))
        question = await services.question_of(accepted)
        await services.answer(question, "allow")
        assert (await services.result_of(accepted))["outcome"] == "answered"
    assert question["name"] == "Read"


async def test_what_a_file_takes_away_or_adds_holds_for_the_turns(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "s.txt").write_text("s", encoding="utf-8")
    file = _rules(
        tmp_path, f'[commands]\nforbid = ["ls"]\n[directories]\nread_only = ["{tmp_path}/shared"]\n'
    )
    calls = [
        {"tool": "Bash", "input": {"command": "ls"}},
        {"tool": "Bash", "input": {"command": f"cp a.txt {tmp_path}/shared/a.txt"}},
        {"tool": "Read", "input": {"file_path": f"{tmp_path}/shared/s.txt"}},
    ]
    statuses = []
    for given in (file, None):
        async with running_services(tmp_path, policy_file=given) as services:
            result = await services.ask(script(*calls, DONE))
        statuses.append([tool["status"] for tool in result["tools"]])
    assert statuses == [["denied", "denied", "ok"], ["ok", "denied", "denied"]]
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["s.txt"]


async def test_nothing_is_opened_on_a_file_with_a_mistake(tmp_path: Path) -> None:
    file = _rules(tmp_path, '[commands]\nallow = ["gerp"]\n')
    with pytest.raises(StartError, match=r"rules\.toml, line 2: .*did you mean grep\.$"):
        async with running_services(tmp_path, policy_file=file):
            pass
    assert not list((tmp_path / "data").iterdir())
