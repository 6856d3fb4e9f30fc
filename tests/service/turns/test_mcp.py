"""The tools of an MCP server in a turn: the gate, persons, what is shown, what memory holds back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.ids import LOCAL_USER
from policies.content.tool_usage import ActiveTools
from tests.support.mcp_servers import own_server, plan, settings_with, write_tools
from tests.support.services import RunningServices, of_kind, running_services, script


def call(do: str, text: str = "", tool: str = "act") -> dict[str, Any]:
    return {"tool": f"mcp__own__{tool}", "input": {"do": do, "text": text}}


@asynccontextmanager
async def services_with(root: Path, **table: Any) -> AsyncIterator[RunningServices]:
    approvals = table.pop("approvals", "off")
    write_tools(root, act="Acts.", look="Looks.")
    settings = settings_with(root, {"own": own_server(root, **table)})
    plans = await plan(settings)
    async with running_services(root, mcp_servers=plans, approvals=approvals) as services:
        yield services


async def test_a_call_is_gated_answered_clipped_and_masked(tmp_path: Path) -> None:
    async with services_with(tmp_path, tools=["act"]) as services:
        steps = [
            call("say", "password: hunter2-hunter2"),
            call("many", "x"),
            call("say", tool="look"),
        ]
        result, events, journal = await services.play(script(*steps, {"text": "Done."}))
        assert [tool["status"] for tool in result["tools"]] == ["ok", "ok", "denied"]
        secret, long, _ = of_kind(events, "tool.finished")
        assert "hunter2" not in str(events)
        assert "[masked]" in secret["output"]
        assert len(long["output"]) < 10_000
        verdicts = [line["rule"] for line in journal if line["kind"] == "permission"]
        assert verdicts == ["own_tool", "own_tool", "unknown_tool"]


@pytest.mark.parametrize(
    ("table", "asked"),
    [
        ({}, True),
        ({"reading": ["act"]}, False),
        ({"reading": ["act"], "ask": "always"}, True),
        ({"ask": "never"}, False),
    ],
)
async def test_a_person_is_asked_as_the_file_says(
    tmp_path: Path, table: dict[str, Any], *, asked: bool
) -> None:
    async with services_with(tmp_path, approvals="on", **table) as services:
        accepted = await services.send(script(call("say", "hi"), {"text": "Done."}))
        if asked:
            await services.answer(await services.question_of(accepted), "deny")
        result = await services.result_of(accepted)
        assert [tool["status"] for tool in result["tools"]] == ["denied" if asked else "ok"]
        assert bool(of_kind(await services.events_of(accepted), "approval.requested")) == asked


async def test_a_tool_that_always_asks_is_denied_where_nobody_can_be_asked(tmp_path: Path) -> None:
    async with services_with(tmp_path, ask="always") as services:
        result = await services.ask(script(call("say", "hi"), {"text": "Done."}))
        assert result["tools"][0]["status"] == "denied"
        assert "Nobody can be asked." in result["tools"][0]["error"]


async def test_what_memory_says_of_its_schema_is_stale_under_each_of_its_names(
    tmp_path: Path,
) -> None:
    async with services_with(tmp_path) as services:
        conversation = await services.create()
        recent = await services.chat.conversations.recent_tools(LOCAL_USER, conversation)
        assert "mcp__own__act(do, text)" in recent
        tools = ActiveTools.of(recent)
        for name in ("mcp__own__act", "own::act"):
            assert tools.is_stale("", f"The tool {name} takes {{do: string, text: string}}."), name


async def test_a_turn_with_a_changing_call_does_not_claim_to_know_all_that_changed(
    tmp_path: Path,
) -> None:
    async with services_with(tmp_path, workspace="write") as services:
        target = services.settings.workspace / "new.txt"
        result = await services.ask(script(call("write", str(target)), {"text": "Done."}))
        assert target.read_text("utf-8") == "written"
        assert result["changes"]["complete"] is False
