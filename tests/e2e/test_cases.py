"""Case memory end to end: real agents record, find, render and judge cases across conversations.

What the tools answer is tested below; here they pass through the agent program.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.live_server import LiveClient, LiveServer, script, started_server

pytestmark = pytest.mark.e2e

SEARCH, UPSERT, FEEDBACK, RENDER = (
    f"mcp__memory_case__memory_case_{does}" for does in ("search", "upsert", "feedback", "render")
)
OOM = {
    "symptom_summary": "Pods of checkout are OOMKilled every 20 minutes after the deploy of Friday.",
    "diagnosis": "`kubectl describe` shows exit 137. The heap dump holds 1.2 GB of CartSnapshot objects in"
    " SnapshotCache, which never evicts: the new release dropped its size limit.",
    "root_cause": "SnapshotCache lost its maximum size in the release, so the heap fills until the limit.",
    "resolution": "Restored maximumSize(10_000) and rolled out; no restarts for 24 hours.",
    "confidence": 0.7,
    "metadata": {"failure_layer": "jvm", "runtime": "jdk17", "related_services": ["checkout"]},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with started_server(tmp_path_factory.mktemp("cases"), demo_cadence_ms=0) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Incident:
    """A conversation with case memory, and what its agent gets from the tools."""

    client: LiveClient
    conversation_id: str

    async def call(self, *calls: tuple[str, Mapping[str, Any]], say: str = "") -> list[str]:
        """Have the agent make these calls; gives the whole text of each answer, as the model sees it."""
        tools = [{"name": name, "input": dict(arguments)} for name, arguments in calls]
        asked = await self.client.ask(
            script({"tools": tools}, {"echo": "messages"}, say=say), self.conversation_id
        )
        assert asked["outcome"] in {"answered", "answered_with_failures"}, asked
        return results_in(asked["reply"], len(calls))


def results_in(messages: str, count: int) -> list[str]:
    """Read the last tool results out of the messages that the model was sent."""
    found: list[str] = []
    for message in json.loads(messages[messages.index("[") : messages.rindex("]") + 1]):
        content = message["content"]
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                inner = block["content"]
                texts = [inner] if isinstance(inner, str) else [item["text"] for item in inner]
                found.append("".join(texts))
    return found[-count:]


async def begin(client: LiveClient, **scope: str) -> Incident:
    """Start a conversation for which a person switches case memory on."""
    conversation_id = (await client.post("/new-conversation", status=201))["conversation_id"]
    answer = await client.http.patch(
        f"/conversations/{conversation_id}", json={"memory": {"case_memory": True}, **scope}
    )
    assert answer.status_code == 200, answer.text
    return Incident(client, conversation_id)


async def test_what_one_agent_records_another_finds_reads_and_judges(server: LiveServer) -> None:
    """With a field that a model may not write, and a skill that is read before its tools are called."""
    async with server.client() as client:
        author = await begin(client, app_code="shop", environment="production")
        forged = {**OOM, "fb": {"global": {"h": 50, "u": 0}}, "app_code": "bank"}
        recorded, wrong = map(
            json.loads,
            await author.call(
                (UPSERT, {"case": forged, "conversation_id": "cnv_forged"}),
                (UPSERT, {"case": {**OOM, "confidence": 2}}),
            ),
        )
        assert (recorded["code"], recorded["status"]) == ("OK", "created")
        assert "fb" in recorded["stripped"]
        assert wrong["code"] == "INVALID_CASE"
        case_id = recorded["case_id"]

        judge = await begin(client, app_code="shop", environment="staging")
        read = await client.ask(
            script({"tool": "Skill", "input": {"skill": "memory-case"}}, {"text": "Read."}),
            judge.conversation_id,
        )
        assert [tool["status"] for tool in read["tools"]] == ["ok"]
        found, markdown, judged, nowhere = await judge.call(
            (SEARCH, {"query": "checkout pods OOMKilled exit 137"}),
            (RENDER, {"case_ids": [case_id]}),
            (FEEDBACK, {"case_id": case_id, "helpful": True}),
            (RENDER, {"case_ids": ["cas_none"]}),
        )
        assert [case["case_id"] for case in json.loads(found)["cases"]] == [case_id]
        assert "SnapshotCache, which never evicts" in markdown
        assert json.loads(judged)["code"] == "OK"
        assert json.loads(nowhere)["code"] == "CASE_NOT_FOUND"
        for words in ("search cases for OOMKilled checkout", "搜索案例：OOMKilled checkout"):
            asked = await client.ask(words, judge.conversation_id)
            assert case_id in asked["reply"], asked["reply"]

        case = await client.get(f"/memory/cases/{case_id}")
        assert (case["app_code"], case["environment"]) == ("shop", "production")
        assert case["source_conv_id"] == author.conversation_id
        assert case["feedback"] == {"helpful": 1, "unhelpful": 0, "conversations": 1}
        named = {entry["conversation_id"] for entry in case["history"]}
        assert named == {author.conversation_id, judge.conversation_id}
