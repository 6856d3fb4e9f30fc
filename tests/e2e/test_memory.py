"""Memory through the whole program: the real server, the real agent process, the demo model."""

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from tests.support.live_server import LiveClient, LiveServer, bash, script, started_server

pytestmark = pytest.mark.e2e

ECHO = {"echo": "memory"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with started_server(tmp_path_factory.mktemp("memory")) as server:
        yield server


@pytest.fixture(scope="module")
def places(server: LiveServer) -> tuple[str, str]:
    """Return two conversations for the tests to share."""
    return server.new_conversation(), server.new_conversation()


async def remembered(client: LiveClient, words: str, kind: str = "episode") -> list[dict[str, Any]]:
    """Wait until something is found by these words."""
    found = await client.wait_until(
        f"/memory/search?q={words}&kinds={kind}", lambda answer: bool(answer["items"])
    )
    items: list[dict[str, Any]] = found["items"]
    return items


async def test_what_one_conversation_did_another_is_shown(
    server: LiveServer, places: tuple[str, str]
) -> None:
    async with server.client() as client:
        did = await client.ask(
            script(
                {"tool": "Write", "input": {"file_path": "zebra.txt", "content": "stripes\n"}},
                bash("cat zebra.txt"),
                {"text": "We decided to keep the zebra notes in zebra.txt."},
                say="Write down the zebra stripes.",
            ),
            places[0],
        )
        assert did["outcome"] == "answered"
        (item, *_) = await remembered(client, "zebra")
        question = script(ECHO, say="Where are the zebra stripes written down?")
        asked = await client.ask(question, places[1])
        assert asked["conversation_id"] != did["conversation_id"]
        (shown,) = [
            entry
            for entry in asked["memory"]["injected"]
            if entry["id"] in {item["id"], did["turn_id"]}
        ]
        assert shown["conversation_id"] == did["conversation_id"]
        assert "zebra.txt" in asked["reply"]
    lines = server.journal(asked)
    (context,) = [line for line in lines if line["kind"] == "context"]
    assert shown["id"] in context["text"]
    kinds = {line["kind"]: line.get("intent") for line in server.journal(did) if "intent" in line}
    assert kinds["request"] == "turn.received"
    assert kinds["tool"] == "tool.Bash.ok"


async def test_a_note_is_found_and_a_question_about_memory_is_answered_from_it(
    server: LiveServer, places: tuple[str, str]
) -> None:
    conversation, other = places
    note = anyio.Path(server.workspace) / "memory" / "鲸鱼.md"
    await note.parent.mkdir(exist_ok=True)
    await note.write_text("# 鲸鱼计划\n\n鲸鱼计划的负责人是小王，每周三发布。\n", encoding="utf-8")
    async with server.client() as client:
        asked = await client.ask(script(ECHO, say="你的记忆系统里有什么？"), conversation)
        assert "小王" in asked["reply"]
        assert "memory/鲸鱼.md" in asked["reply"]
        steps = script(bash("ls memory"), {"text": "好。"}, say="看看。")
        await client.ask(steps, conversation)
        (item, *_) = await remembered(client, "鲸鱼计划", "note")
        later = await client.ask(script(ECHO, say="鲸鱼计划谁负责？"), other)
        assert item["id"] in [entry["id"] for entry in later["memory"]["injected"]]
        assert "小王" in later["reply"]
