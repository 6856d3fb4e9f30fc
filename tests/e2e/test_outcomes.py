"""Every outcome and stop reason of the contract, reached by the real agent process through HTTP.

What a turn result must never be is held for each of them by `assert_honest`: a reply that is the
agent program's error text, a text that is there twice, a journal or an event that says otherwise.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import codes
from tests.support.live_server import (
    LiveClient,
    LiveServer,
    bash,
    running_server,
    script,
)

pytestmark = pytest.mark.e2e

FIELDS = {
    *("conversation_id", "turn_id", "reply", "outcome", "stop_reason", "notices", "tools", "steps"),
    *("changes", "memory", "model", "session_id", "usage", "cost_usd", "log_file"),
    *("started_at", "finished_at", "duration_ms", "cause", "schedule", "tasks"),
}
STATUSES = {"ok", "failed", "denied", "interrupted", "unknown"}
NOT_FOR_PEOPLE = ("API Error", '{"', "Request interrupted", "tool_use_error", "Traceback")

KEPT = "kept from running"
"""The call that makes a loop is denied where it is asked for in time, else interrupted."""
READ_SKILL = {"tool": "Read", "input": {"file_path": ".claude/skills/memory-capture/SKILL.md"}}
SILENCE = {"empty": True, "times": 9}
NO_SUMMARY = {"on_followup": [SILENCE]}
FETCH = {"tool": "WebFetch", "input": {"url": "http://a.example", "prompt": "x"}}


def in_chinese(*steps: dict[str, Any]) -> str:
    """Write a script in a message that is Chinese all the same."""
    return script(*steps, say="请按照下面的脚本一步一步地执行，并且如实地告诉我每一步的结果。" * 3)


async def assert_honest(server: LiveServer, client: LiveClient, result: dict[str, Any]) -> None:
    """Assert what holds for every turn, however it ended."""
    assert set(result) == FIELDS
    assert result["reply"].strip() == result["reply"] != ""
    assert not any(item in result["reply"] for item in NOT_FOR_PEOPLE)
    assert str(server.workspace) not in str(result)
    assert {tool["status"] for tool in result["tools"]} <= STATUSES
    texts = [step["text"] for step in result["steps"] if step["type"] == "text"]
    assert " ".join(texts).split() == result["reply"].split()
    calls = [step["index"] for step in result["steps"] if step["type"] == "tool"]
    assert calls == [tool["index"] for tool in result["tools"]]
    *_, last = server.journal(result)
    assert last["kind"] == "response"
    assert {key: last.get(key) for key in FIELDS} == result  # a line leaves out what is None
    events = await client.replay(result["conversation_id"], result["turn_id"])
    own = [event for event in events if event.data["turn_id"] == result["turn_id"]]
    assert [item.id for item in own] == [f"{result['turn_id']}:{n + 1}" for n in range(len(own))]
    assert [item.type for item in own].count("turn.completed") == 1
    assert {key: own[-1].data[key] for key in FIELDS} == result
    told = [(e.data["code"], e.data["message"]) for e in own if e.type == "notice"]
    assert told == [(notice["code"], notice["message"]) for notice in result["notices"]]
    finished = {e.data["index"]: e.data["status"] for e in own if e.type == "tool.finished"}
    assert finished == {tool["index"]: tool["status"] for tool in result["tools"]}


def statuses(result: dict[str, Any]) -> list[str]:
    return [tool["status"] for tool in result["tools"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A message, and how its turn must end."""

    message: str
    outcome: str
    stop_reason: str = "end_turn"
    tools: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    reply: list[str]
    """Parts of the reply, in their order; one alone is all of it but for the log file's name."""


TABLE = {
    "text after a tool": Row(
        message=script({"text": "I look. "} | bash("ls"), {"text": "I looked."}),
        outcome="answered",
        tools=["ok"],
        reply=["I look.\n\nI looked."],
    ),
    "many blocks and tools": Row(
        message=script(
            {"thinking": "hm"} | bash("ls"),
            {
                "tools": [
                    {"name": "Bash", "input": {"command": f"ls {item}"}} for item in ("-a", "-l")
                ]
            },
            {"text": "Done."},
        ),
        outcome="answered",
        tools=["ok", "ok", "ok"],
        reply=["Done."],
    ),
    "a tool that is not offered": Row(
        message=script(FETCH, {"text": "I cannot."}),
        outcome="answered_with_failures",
        tools=["failed"],
        notices=["tools_failed"],
        reply=["I cannot."],
    ),
    "failing tool, no text": Row(
        message=script(bash("cat nothere.txt"), SILENCE, NO_SUMMARY),
        outcome="tool_failed",
        tools=["failed"],
        notices=["forced_summary", "summary_failed", "tools_failed"],
        reply=["This was not carried out. Bash: cat nothere.txt failed: ", "No such file"],
    ),
    "a rule ends the run": Row(
        message=script(bash("rm -rf ."), {"text": "never said"}),
        outcome="interrupted",
        stop_reason="policy_interrupt",
        tools=["denied"],
        notices=["tools_failed"],
        reply=["A rule stopped this turn: The workspace itself must not be deleted or moved."],
    ),
    "doom loop": Row(
        message=script({"repeat": bash("ls memory"), "times": 30}, {"text": "never said"}),
        outcome="stopped",
        stop_reason="doom_loop",
        tools=["ok", "ok", "ok", "ok", KEPT],
        notices=["tools_failed"],
        reply=[
            "I stopped this turn: the same calls were repeated 5 times in a row, Bash ls memory last."
        ],
    ),
    "nothing at all": Row(
        message=script(SILENCE),
        outcome="empty",
        reply=["The turn finished without text. Nothing failed."],
    ),
    "refusal": Row(
        message=script({"refusal": True}),
        outcome="empty",
        stop_reason="refusal",
        reply=["The model declined to answer this."],
    ),
    "forced summary": Row(
        message=script(bash("ls memory"), SILENCE, {"on_followup": [{"text": "I listed it."}]}),
        outcome="answered",
        tools=["ok"],
        notices=["forced_summary"],
        reply=["I listed it."],
    ),
    "forced summary that calls tools": Row(
        message=script(
            bash("ls memory"),
            SILENCE,
            {"on_followup": [bash("mkdir by-summary"), {"text": "I listed it."}]},
        ),
        outcome="answered_with_failures",
        tools=["ok", "denied"],
        notices=["forced_summary", "tools_failed"],
        reply=["I listed it."],
    ),
    "skill read, then summary": Row(
        message=script(
            READ_SKILL,
            {"text": "It says how to."},
            {"on_followup": [bash("ls memory"), {"text": "Done as it says."}]},
        ),
        outcome="answered",
        tools=["ok", "ok"],
        notices=["followed_skill"],
        reply=["It says how to.\n\nDone as it says."],
    ),
    "skill read, then summary, twice": Row(
        message=script(
            READ_SKILL,
            {"text": "It says how to."},
            {"on_followup": [READ_SKILL, {"text": "It still does."}, {"text": "never asked"}]},
        ),
        outcome="answered",
        tools=["ok", "ok"],
        notices=["followed_skill"],
        reply=["It says how to.\n\nIt still does."],
    ),
    "skill read and followed": Row(
        message=script(
            READ_SKILL,
            bash("ls memory"),
            {"text": "Done as it says."},
            {"on_followup": [{"text": "never asked"}]},
        ),
        outcome="answered",
        tools=["ok", "ok"],
        reply=["Done as it says."],
    ),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE.keys())
async def test_a_turn_ends_with_the_outcome_that_its_evidence_supports(
    server: LiveServer, conversation: str, row: Row
) -> None:
    async with server.client() as client:
        result = await client.ask(row.message, conversation)
        assert (result["outcome"], result["stop_reason"]) == (row.outcome, row.stop_reason)
        ended = statuses(result)
        kept = [one if row.tools[n : n + 1] != [KEPT] else KEPT for n, one in enumerate(ended)]
        assert (kept, codes(result["notices"])) == (row.tools, row.notices)
        assert KEPT not in row.tools or ended[-1] in {"denied", "interrupted"}
        at = 0
        for part in row.reply:
            at = result["reply"].index(part, at) + len(part)
        if row.outcome.startswith("answered"):
            assert result["reply"] == row.reply[0]
        assert "never" not in result["reply"]
        await assert_honest(server, client, result)
    assert not (server.workspace / "by-summary").exists()
    assert (server.workspace / "memory").is_dir()


async def test_a_user_stops_a_running_tool(server: LiveServer, conversation: str) -> None:
    server.make_pipe("pipe")
    async with (
        server.client() as client,
        client.stream(script(bash("cat pipe"), {"text": "never said"}), conversation) as events,
    ):
        started = await events.until("tool.started")
        conversation_id = started.data["conversation_id"]
        state = await client.get(f"/conversations/{conversation_id}")
        assert (state["state"], state["hot"]) == ("running", True)
        result = await client.post(f"/conversations/{conversation_id}/interrupt?wait=1")
        completed = await events.until("turn.completed")
        assert {key: completed.data[key] for key in FIELDS} == result
        assert (result["outcome"], result["stop_reason"]) == ("interrupted", "user_interrupt")
        assert statuses(result) == ["interrupted"]
        assert result["reply"].startswith("You stopped this turn before it was finished.")
        await assert_honest(server, client, result)
        state = await client.get(f"/conversations/{conversation_id}")
        assert state["state"] == "idle"
        refused = await client.post(f"/conversations/{conversation_id}/interrupt", status=409)
        assert refused["error"]["code"] == "nothing_running"
        again = await client.ask(script({"text": "Here again."}), conversation_id)
        assert again["reply"] == "Here again."


async def test_the_time_limit_ends_a_turn_and_what_it_started(tmp_path: Path) -> None:
    message = in_chinese(bash("cat pipe"), {"text": "never said"})
    async with (
        running_server(tmp_path, turn_timeout_s=10, prewarmed_clients=1) as server,
        server.client() as client,
    ):
        server.make_pipe("pipe")
        await client.wait_for_agents(1)
        ended = await client.ask(message)
        assert (ended["outcome"], ended["stop_reason"]) == ("stopped", "timeout")
        await assert_honest(server, client, ended)
        assert ended["reply"].startswith("我停止了这一轮：用时超过 10 秒。")
        assert statuses(ended) == ["interrupted"]
        assert [agent for agent in server.agents().values() if agent.name() == "cat"] == []
        again = await client.ask(script({"text": "Here again."}), ended["conversation_id"])
        assert again["reply"] == "Here again."


LIMITS: dict[str, tuple[dict[str, Any], list[str], str, str]] = {
    "steps": (
        {"max_agent_steps": 3},
        *(["ok"] * 3, "max_turns"),
        "I stopped this turn: it reached the limit of steps for one turn.",
    ),
    "budget": (  # the agent program computes a price even for a model without one
        {"max_budget_usd": 0.0001},
        *([], "budget"),
        "I stopped this turn: it reached the spending limit.",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
async def test_a_limit_ends_a_turn_and_the_next_one_counts_anew(tmp_path: Path, name: str) -> None:
    settings, tools, stop_reason, sentence = LIMITS[name]
    steps = [bash(f"ls {option}") for option in ("-a", "-l", "-la", "-1")]
    async with running_server(tmp_path, **settings) as server, server.client() as client:
        conversation: dict[str, str] = {}
        for _ in range(2):
            result = await client.ask(script(*steps, {"text": "never said"}), **conversation)
            assert (result["outcome"], result["stop_reason"]) == ("stopped", stop_reason)
            assert statuses(result)[: len(tools)] == tools
            assert result["reply"].startswith(sentence)
            await assert_honest(server, client, result)
            conversation["conversation_id"] = result["conversation_id"]
