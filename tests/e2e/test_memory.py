"""Memory through the whole program: the real server, the real agent process, the demo model."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.live_server import LiveServer, bash, script, started_server

pytestmark = pytest.mark.e2e

ECHO = {"echo": "memory"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    directory = tmp_path_factory.mktemp("memory")
    with started_server(directory, recall_deadline_ms=10_000) as server:
        yield server


async def test_what_one_conversation_did_another_is_shown(server: LiveServer) -> None:
    async with server.client() as client:
        did = await client.ask(
            script(
                {"tool": "Write", "input": {"file_path": "zebra.txt", "content": "stripes\n"}},
                bash("cat zebra.txt"),
                {"text": "We decided to keep the zebra notes in zebra.txt."},
                say="Write down the zebra stripes.",
            )
        )
        assert did["outcome"] == "answered"
        path = "/memory/search?q=zebra&kinds=episode"
        (item, *_) = (await client.wait_until(path, lambda found: found["items"]))["items"]
        question = script(ECHO, say="Where are the zebra stripes written down?")
        asked = await client.ask(question)
        assert asked["conversation_id"] != did["conversation_id"]
        (shown, *_) = [
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


async def test_a_note_is_found_after_the_turn_that_it_was_written_in(server: LiveServer) -> None:
    note = {"file_path": "memory/鲸鱼.md", "content": "# 鲸鱼计划\n\n负责人是小王，每周三发布。\n"}
    async with server.client() as client:
        await client.ask(script({"tool": "Write", "input": note}, {"text": "好。"}))
        path = "/memory/search?q=鲸鱼计划&kinds=note"
        await client.wait_until(path, lambda found: found["items"])
        asked = await client.ask(script(ECHO, say="鲸鱼计划谁负责？"))
    assert "小王" in asked["reply"]


def called(result: dict[str, Any]) -> list[str]:
    """Return the tools of memory that a turn called, if all succeeded."""
    assert {tool["status"] for tool in result["tools"]} <= {"ok"}, result["tools"]
    return [tool["name"].rpartition("_")[2] for tool in result["tools"]]


@pytest.mark.parametrize(
    ("told", "changed", "question", "old", "new", "forget"),
    [
        (
            "remember that my locker number is A81",
            "my locker number is B90",
            "what is my locker number?",
            "A81",
            "B90",
            "please forget my locker number",
        ),
        (
            "记住我的柜子号是A81",
            "我的柜子号是B90",
            "我的柜子号是什么？",
            "A81",
            "B90",
            "把我的柜子号忘掉",
        ),
    ],
)
async def test_plain_requests_are_kept_corrected_and_forgotten_by_calls(
    server: LiveServer, told: str, changed: str, question: str, old: str, new: str, forget: str
) -> None:
    async with server.client() as client:
        first = await client.ask(told)
        assert called(first) == ["search", "remember"]
        (fact,) = first["memory"]["saved"]
        assert old in (await client.ask(question))["reply"]
        second = await client.ask(changed)
        assert called(second) == ["search", "remember"]
        (newer,) = second["memory"]["saved"]
        item = await client.get(f"/memory/items/{newer['id']}")
        assert (item["replaces"], item["evidence"]) == ([fact["id"]], changed)
        reply = (await client.ask(question))["reply"]
        assert (new in reply, old in reply) == (True, False)
        gone = await client.ask(forget)
        assert called(gone) == ["search", "forget"]
        (forgotten,) = gone["memory"]["forgotten"]
        assert (forgotten["id"], forgotten["earlier"]) == (
            newer["id"],
            [told[-len(forgotten["earlier"][0]) :]],
        )
        reply = (await client.ask(question))["reply"]
        assert new not in reply
        assert old not in reply
