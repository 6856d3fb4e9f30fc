"""The problems of the field log, each met by the real agent process; the docstring says which one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.live_server import (
    LiveClient,
    LiveServer,
    bash,
    running_server,
    script,
    started_server,
)

pytestmark = pytest.mark.e2e

SKILLS = {"memory-capture", "memory-summarize", "memory-organize", "memory-revise"}
OWN_KEY = (
    "sk-ant-api03-uT4mZ8qLr2XcVb7NwEy5KjHgFd3SaPo9Ii1Qh6Bn0MeRtYuWkClDzJxGvOs"
    "AfTqUw7PlKo2ZiXe4RcVt9YbN6mHjGdAA"
)
"""In the server's environment."""
FOREIGN_KEY = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
"""Known by its looks alone."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    directory = tmp_path_factory.mktemp("field-log")
    _make_personal_settings(directory)
    with started_server(directory, environ={"ANTHROPIC_API_KEY": OWN_KEY}) as server:
        yield server


@pytest.fixture(scope="module")
def conversation(server: LiveServer) -> str:
    """Return a conversation for what needs none of its own."""
    return server.new_conversation()


def _make_personal_settings(home: Path) -> None:
    """Put what must not come into a session where the agent program looks for a person's own."""
    for personal in (home / ".claude", home / "data" / "sessions"):
        skill = personal / "skills" / "personal"
        skill.mkdir(parents=True)
        front = "---\nname: personal\ndescription: a skill of mine\n---\n\nDo it.\n"
        (skill / "SKILL.md").write_text(front, encoding="utf-8")
        slow = {"mcpServers": {"slow": {"command": "sleep", "args": ["60"]}}}
        for file in (personal / ".claude.json", home / ".claude.json"):
            file.write_text(json.dumps(slow), encoding="utf-8")


def messages(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    found = [line["message"] for line in lines if line["kind"] == "message"]
    return [item for item in found if item["type"] == kind]


async def test_the_init_line_of_the_journal_names_the_four_skills(
    server: LiveServer, conversation: str
) -> None:
    """Problem 1: as skills and as slash commands. Problem 3: and nothing of the user's own settings."""
    async with server.client() as client:
        result = await client.ask(script({"text": "Here."}), conversation)
    lines = server.journal(result)
    init = messages(lines, "SystemMessage")[0]
    assert init["subtype"] == "init"
    assert set(init["data"]["skills"]) == SKILLS
    assert set(init["data"]["slash_commands"]) >= SKILLS
    assert "personal" not in init["data"]["skills"]
    assert [(s["name"], s["source"]) for s in init["data"]["mcp_servers"]] == [("memory", "sdk")]
    first_of_all = next(line for line in lines if line["kind"] == "message")
    assert first_of_all["message"]["subtype"] == "init"


async def test_a_new_conversation_forgets_and_the_old_one_remembers(server: LiveServer) -> None:
    """Problem 2: by another agent process, and by asking what the model is really sent."""
    async with server.client() as client:
        old = (await client.ask("my codeword is plum"))["conversation_id"]
        fresh = await client.ask(script({"echo": "messages"}), old, new_conversation=True)
        assert fresh["conversation_id"] != old
        assert "candor-script" in fresh["reply"]
        said, _, _ = fresh["reply"].partition("Memory, found for this message")
        assert "plum" not in said  # memory may still show it, as what another conversation said
        shown = await client.get(f"/conversations/{fresh['conversation_id']}/messages")
        assert "plum" not in shown["messages"][0]["text"]
        assert "plum" in (await client.ask("what is my codeword?", old))["reply"]


async def test_a_stale_agent_process_is_gone_after_the_grace_and_at_shutdown(
    tmp_path: Path,
) -> None:
    """Problem 4: one whose grace is over; and one whose grace would last, when the server stops."""
    for grace_s in (0.5, 3600):
        async with (
            running_server(tmp_path, prewarmed_clients=0, stale_client_grace_s=grace_s) as server,
            server.client() as client,
        ):
            left = (await client.ask(script({"text": "One."})))["conversation_id"]
            stale = set(server.agents())
            assert stale
            fresh = await client.post("/new-conversation", status=201, conversation_id=left)
            assert (await client.get(f"/conversations/{left}"))["hot"] is False
            await client.ask(script({"text": "Two."}), fresh["conversation_id"])
            if grace_s < 1:
                with anyio.fail_after(30):
                    while stale & set(server.agents()):  # noqa: ASYNC110  another process
                        await anyio.sleep(0.05)
                assert server.agents()
            else:
                assert stale < set(server.agents()), "the grace has only begun"
            assert server.stop() == 0
            assert not server.agents()


async def test_the_journal_holds_the_whole_turn_as_json(
    server: LiveServer, conversation: str
) -> None:
    """Problem 7: every SDK message, in order. Streamed pieces are none: the whole one follows."""
    text = "Zeile\u2028Ende\t“引号” \\ \x7f 🦉"
    steps = (
        {"thinking": "hm"} | bash("ls"),
        bash("curl http://a.example"),
        {"tool": "Write", "input": {"file_path": "x/y.md", "content": text}},
        {"text": text},
    )
    async with server.client() as client:
        async with client.stream(script(*steps), conversation) as events:
            told = await events.rest()
        result = told[-1].data
        own = await client.http.get(f"/logs/{result['log_file']}")
        (listed,) = (await client.get(f"/logs?conversation_id={conversation}&limit=1"))["logs"]
    lines = server.journal(result)
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert {(line["conversation_id"], line["turn_id"]) for line in lines} == {
        (result["conversation_id"], result["turn_id"])
    }
    kinds = [line["kind"] for line in lines]
    assert (kinds[0], kinds[1], kinds[-1]) == ("request", "context", "response")
    assert kinds.count("response") == 1
    assert set(kinds) == {"request", "context", "message", "permission", "tool", "response"}
    assert lines[0]["message"] == script(*steps)
    types = {line["message"]["type"] for line in lines if line["kind"] == "message"}
    assert types == {"SystemMessage", "AssistantMessage", "UserMessage", "ResultMessage"}
    verdicts = {item["tool_use_id"]: item for item in lines if item["kind"] == "permission"}
    assert [verdict["verdict"] for verdict in verdicts.values()] == ["allow", "deny", "allow"]
    assert all(
        verdict["rule"] and verdict["reason"] and verdict["input"] for verdict in verdicts.values()
    )
    for use in result["tools"]:
        own_lines = [n["kind"] for n in lines if n.get("tool_use_id") == use["tool_use_id"]]
        assert own_lines == ["permission", "tool"]
    spoken = messages(lines, "AssistantMessage")[-1]["content"]
    assert [item["text"] for item in spoken if item["type"] == "TextBlock"] == [text]
    assert result["reply"] == text
    assert own.text == server.journal_text(result)
    assert (listed["log_file"], listed["outcome"]) == (result["log_file"], result["outcome"])


async def test_no_secret_comes_out_again(server: LiveServer, conversation: str) -> None:
    """Problem 7: out of a message, a file, a tool's input and the model's own words, streamed in pieces."""
    for name, secret in (("own.txt", OWN_KEY), ("foreign.txt", FOREIGN_KEY)):
        (server.workspace / name).write_text(f"it is {secret} there\n", encoding="utf-8")
    steps = (
        bash("cat own.txt"),
        bash("cat foreign.txt"),
        bash(f"cat {OWN_KEY}"),
        {"tool": "Write", "input": {"file_path": "z.txt", "content": f"{FOREIGN_KEY}"}},
        {"text": f"One is {OWN_KEY} and the other is {FOREIGN_KEY}. ", "delta_delay_ms": 5},
    )
    async with server.client() as client:
        message = script(*steps, say=f"Use {OWN_KEY} and {FOREIGN_KEY}.")
        async with client.stream(message, conversation) as events:
            told = await events.rest()
        result = told[-1].data
        assert (result["outcome"], len(result["tools"])) == ("answered_with_failures", 4)
        log = await client.http.get(f"/logs/{result['log_file']}")
    streamed = "".join(item.data["text"] for item in told if item.type == "text.delta")
    assert "One is" in streamed
    for secret in (OWN_KEY, FOREIGN_KEY):
        assert secret not in result["reply"]
        assert secret not in streamed
        assert secret not in json.dumps([item.data for item in told])
        assert secret not in server.journal_text(result)
        assert secret not in log.text
        assert secret not in server.err_file.read_text(encoding="utf-8")


async def _done(client: LiveClient, conversation: str, *commands: str) -> list[str]:
    message = script(*map(bash, commands), {"text": "Said nothing else."})
    result = await client.ask(message, conversation)
    return [tool["status"] for tool in result["tools"]]


async def test_file_commands_inside_the_workspace_really_happen(
    server: LiveServer, conversation: str
) -> None:
    """Problem 11: moved, copied, made and deleted on the disk, whatever the names are written in."""
    root = server.workspace
    (root / "报告 一.txt").write_text("一", encoding="utf-8")
    (root / "it's.txt").write_text("its", encoding="utf-8")
    (root / "-dash.txt").write_text("dash", encoding="utf-8")
    commands = (
        'mkdir -p "新 文件夹/deep er"',
        "mv '报告 一.txt' '新 文件夹/报告 二.txt'",
        'cp -r "新 文件夹" 备份',
        "rm '新 文件夹/报告 二.txt'",
        'mv "it\'s.txt" plain.txt',
        "cp ./-dash.txt 备份/dash.txt",
        "rm -- -dash.txt",
        "rm -r '新 文件夹'",
    )
    async with server.client() as client:
        assert await _done(client, conversation, *commands) == ["ok"] * len(commands)
    assert (root / "备份" / "报告 二.txt").read_text("utf-8") == "一"
    assert (root / "备份" / "dash.txt").read_text("utf-8") == "dash"
    assert (root / "plain.txt").read_text("utf-8") == "its"
    assert (root / "备份" / "deep er").is_dir()
    for gone in ("新 文件夹", "报告 一.txt", "-dash.txt", "it's.txt"):
        assert not (root / gone).exists()
