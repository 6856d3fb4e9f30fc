"""Case memory end to end: real agents record, find, render and judge cases across conversations."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from tests.support.live_server import LiveClient, LiveServer, bash, script, started_server

pytestmark = pytest.mark.e2e

SEARCH, UPSERT, FEEDBACK, RENDER = (
    f"mcp__memory_case__memory_case_{does}" for does in ("search", "upsert", "feedback", "render")
)
PARALLEL = 4

OOM = {
    "symptom_summary": "Pods of checkout are OOMKilled every 20 minutes after the deploy of Friday.",
    "diagnosis": "`kubectl describe` shows exit 137. The heap dump holds 1.2 GB of CartSnapshot objects in"
    " SnapshotCache, which never evicts: the new release dropped its size limit.",
    "root_cause": "SnapshotCache lost its maximum size in the release, so the heap fills until the limit.",
    "resolution": "Restored maximumSize(10_000) and rolled out; no restarts for 24 hours.",
    "confidence": 0.7,
    "metadata": {"failure_layer": "jvm", "runtime": "jdk17", "related_services": ["checkout"]},
}
KAFKA = {
    "symptom_summary": "订单服务消费 Kafka 堆积，消费组反复重平衡",
    "diagnosis": "日志里每五分钟出现 rebalance，单批处理超过 max.poll.interval.ms，消费者被踢出。",
    "root_cause": "批处理时间超过 max.poll.interval.ms，触发消费组重平衡。",
    "resolution": "把 max.poll.records 从 500 降到 50，堆积在十分钟内消失。",
    "confidence": 0.8,
    "metadata": {"failure_layer": "middleware", "middleware": "kafka"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    settings = {"max_live_clients": PARALLEL, "demo_cadence_ms": 0}
    with started_server(tmp_path_factory.mktemp("cases"), **settings) as server:
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

    async def search(self, query: str, **more: Any) -> dict[str, Any]:
        """Return the answer of one search."""
        (text,) = await self.call((SEARCH, {"query": query, **more}))
        answer: dict[str, Any] = json.loads(text)
        assert answer["code"] == "OK", answer
        return answer

    async def upsert(self, case: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Record a case; gives the answer."""
        (text,) = await self.call((UPSERT, {"case": dict(case), **more}))
        answer: dict[str, Any] = json.loads(text)
        assert answer["code"] == "OK", answer
        return answer


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


def ids(answer: Mapping[str, Any]) -> Sequence[str]:
    return [case["case_id"] for case in answer["cases"]]


async def test_what_one_incident_taught_two_others_confirm_and_it_is_accepted(
    server: LiveServer,
) -> None:
    async with server.client(deadline_s=180) as client:
        first = await begin(client, app_code="shop", environment="production")
        recorded = await first.upsert(OOM)
        case_id = recorded["case_id"]
        assert (recorded["status"], recorded["lifecycle"]) == ("created", "draft")
        # a draft alike, so that being first means something
        other = {
            **OOM,
            "root_cause": "",
            "diagnosis": "Exit 137 was seen, nothing more.",
            "confidence": 0.6,
        }
        other["symptom_summary"] = "Pods of checkout are OOMKilled now and then, cause unknown."
        await first.upsert(other)
        # whoever wrote it cannot promote it, however often
        for _ in range(2):
            await first.call((FEEDBACK, {"case_id": case_id, "helpful": True, "signal": "success"}))
        shown = await client.get(f"/memory/cases/{case_id}")
        assert shown["lifecycle"] == "draft"

        judges = []
        for environment in ("staging", "canary"):
            judge = await begin(client, app_code="shop", environment=environment)
            judges.append(judge.conversation_id)
            found = await judge.search("checkout pods OOMKilled exit 137")
            assert case_id in ids(found)
            (markdown,) = await judge.call((RENDER, {"case_ids": [case_id]}))
            assert "SnapshotCache, which never evicts" in markdown
            (text,) = await judge.call((FEEDBACK, {"case_id": case_id, "helpful": True}))
            assert json.loads(text)["code"] == "OK"

        accepted = await client.get(f"/memory/cases/{case_id}")
        assert accepted["lifecycle"] == "accepted"
        assert accepted["app_code"] == "shop"
        assert accepted["environment"] == "production"
        named = {item["conversation_id"] for item in accepted["history"]}
        assert named >= {first.conversation_id, *judges}
        fourth = await begin(client, app_code="shop")
        found = await fourth.search("checkout pods OOMKilled")
        assert ids(found)[0] == case_id, [(case["score"], case["why"]) for case in found["cases"]]
        assert len(ids(found)) > 1
        assert found["cases"][0]["lifecycle"] == "accepted"


async def test_what_a_model_may_not_write_changes_nothing(server: LiveServer) -> None:
    async with server.client(deadline_s=180) as client:
        mine = await begin(client, app_code="pay", environment="production")
        forged = {
            **KAFKA,
            "fb": {"global": {"h": 50, "u": 0}},
            "lifecycle": "accepted",
            "similar_cases": [{"case_id": "cas_x"}],
            "app_code": "bank",
            "source_conv_id": "cnv_forged",
        }
        forged["metadata"] = {**KAFKA["metadata"], "fb": {"h": 9}}  # type: ignore[dict-item]
        recorded = await mine.upsert(
            forged,
            scope={"app_code": "bank", "environment": "default"},
            conversation_id="cnv_forged",
        )
        assert {"fb", "lifecycle", "similar_cases"} <= set(recorded["stripped"])
        case = await client.get(f"/memory/cases/{recorded['case_id']}")
        assert (case["lifecycle"], case["app_code"], case["environment"]) == (
            *("draft", "pay"),
            "production",
        )
        assert case["feedback"] == {"helpful": 0, "unhelpful": 0, "conversations": 0}
        assert case["source_conv_id"] == mine.conversation_id
        assert "cnv_forged" not in json.dumps(case)
        # neither does an argument lead into another app, nor make a vote another conversation's
        theirs = await begin(client, app_code="bank")
        found = await theirs.search("Kafka 堆积", scope={"app_code": "pay"}, app_code="pay")
        assert ids(found) == []
        vote = {"case_id": recorded["case_id"], "helpful": True, "conversation_id": "cnv_forged"}
        for _ in range(2):
            await mine.call((FEEDBACK, vote))
        case = await client.get(f"/memory/cases/{recorded['case_id']}")
        assert case["lifecycle"] == "draft"
        assert case["feedback"]["conversations"] == 0
        # it is found in two characters, and in English by the names of products
        for query in ("堆积", "consumer group rebalance kafka max.poll.interval.ms"):
            assert recorded["case_id"] in ids(await mine.search(query)), query


async def test_twenty_told_at_once_are_one_case_with_nineteen_reports(server: LiveServer) -> None:
    async with server.client(deadline_s=120) as client:
        incidents = [await begin(client, app_code="twenty") for _ in range(PARALLEL)]
        made: list[str] = []

        async def record(incident: Incident, numbers: Sequence[int]) -> None:
            calls = [
                (
                    UPSERT,
                    {
                        "case": {
                            **OOM,
                            "symptom_summary": f"{OOM['symptom_summary']} Seen on node-{n} at 10:{n:02}.",
                        }
                    },
                )
                for n in numbers
            ]
            made.extend(await incident.call(*calls))

        async with anyio.create_task_group() as tasks:
            for at, incident in enumerate(incidents):
                tasks.start_soon(record, incident, range(at, 20, PARALLEL))
        answers = [json.loads(item) for item in made]
        assert len({answer["case_id"] for answer in answers}) == 1
        assert sorted(answer["status"] for answer in answers) == ["created"] + ["merged"] * 19
        case = await client.get(f"/memory/cases/{answers[0]['case_id']}")
        assert case["report_count"] == 19


async def test_an_agent_without_case_memory_does_not_know_of_it(server: LiveServer) -> None:
    async with server.client() as client:
        plain = (await client.post("/new-conversation", status=201))["conversation_id"]
        words = "Why are the pods of checkout OOMKilled, SnapshotCache?"
        asked = await client.ask(script({"echo": "messages"}, say=words), plain)
        assert "memory_case" not in asked["reply"].replace("memory_case\\", "")
        assert "memory-case" not in asked["reply"]
        assert "never evicts" not in asked["reply"], "cases come by their tools alone"
        tried = await client.ask(
            script({"tool": SEARCH, "input": {"query": "OOM"}}, {"text": "tried"}), plain
        )
        assert tried["tools"][0]["status"] != "ok"
        # a person switches it on in the middle of the conversation
        body = {"memory": {"case_memory": True}}
        assert (await client.http.patch(f"/conversations/{plain}", json=body)).status_code == 200
        asked = await client.ask(script({"echo": "messages"}, say="Now?"), plain)
        assert words in asked["reply"], "it is the same conversation"
        assert "memory-case" in asked["reply"]
        tried = await client.ask(
            script({"tool": SEARCH, "input": {"query": "OOM"}}, {"text": "tried"}), plain
        )
        assert tried["tools"][0]["status"] == "ok"
        # and off again: the session may still name them, but nothing answers
        off = {"memory": {"case_memory": False}}
        assert (await client.http.patch(f"/conversations/{plain}", json=off)).status_code == 200
        tried = await client.ask(
            script({"tool": SEARCH, "input": {"query": "OOM"}}, {"text": "tried"}), plain
        )
        assert tried["tools"][0]["status"] != "ok"


async def test_a_wrong_call_gets_its_code_from_the_real_agent_too(server: LiveServer) -> None:
    calls: list[tuple[str, dict[str, Any], str]] = [
        (SEARCH, {"query": None}, "INVALID_QUERY"),
        (SEARCH, {"query": "x", "top_k": 21}, "INVALID_TOP_K"),
        (UPSERT, {}, "MISSING_CASE"),
        (UPSERT, {"case": {**OOM, "confidence": 2}}, "INVALID_CASE"),
        (UPSERT, {"case": {**OOM, "metadata": {"failure_layer": "moon"}}}, "INVALID_CASE"),
        (FEEDBACK, {"helpful": True}, "MISSING_CASE_ID"),
        (FEEDBACK, {"case_id": "cas_none", "signal": "great"}, "INVALID_FEEDBACK"),
        (RENDER, {"case_ids": ["cas_none"]}, "CASE_NOT_FOUND"),
    ]
    async with server.client() as client:
        incident = await begin(client, app_code="codes")
        told = await incident.call(*((name, given) for name, given, _ in calls))
        assert [json.loads(item)["code"] for item in told] == [code for _, _, code in calls]


async def test_a_fork_of_the_author_does_not_confirm_what_the_author_wrote(
    server: LiveServer,
) -> None:
    async with server.client() as client:
        author = await begin(client, app_code="fork")
        case_id = (await author.upsert(KAFKA))["case_id"]
        await author.call((FEEDBACK, {"case_id": case_id, "helpful": True}))
        turn = (await client.get(f"/conversations/{author.conversation_id}/messages"))["messages"]
        turn_id = next(item["turn_id"] for item in reversed(turn) if item.get("turn_id"))
        path = f"/conversations/{author.conversation_id}/fork"
        fork = (await client.post(path, status=201, turn_id=turn_id))["conversation_id"]
        branch = Incident(client, fork)
        await branch.call((FEEDBACK, {"case_id": case_id, "helpful": True}))
        case = await client.get(f"/memory/cases/{case_id}")
        assert case["lifecycle"] == "draft"
        assert case["feedback"]["helpful"] == 1
        other = await begin(client, app_code="fork")
        await other.call((FEEDBACK, {"case_id": case_id, "helpful": True}))
        assert (await client.get(f"/memory/cases/{case_id}"))["lifecycle"] == "accepted"


async def test_cases_are_found_while_the_vector_index_is_gone_and_it_comes_back(
    server: LiveServer,
) -> None:
    async with server.client() as client:
        incident = await begin(client, app_code="index")
        recorded = await incident.upsert(
            {**KAFKA, "symptom_summary": "积压告警 for the index test"}
        )
        path = "/memory/health"
        whole = await client.wait_until(path, lambda answer: state_of(answer) == ("ok", 0.0))
        assert whole
        await anyio.to_thread.run_sync(shutil.rmtree, server.data_dir / "vectors")
        found = await incident.search("积压告警 index test")
        assert ids(found)[0] == recorded["case_id"]
        assert found["degraded"]
        await client.wait_until(path, lambda answer: state_of(answer) == ("ok", 0.0))
        found = await incident.search(str(KAFKA["diagnosis"]))
        assert found["degraded"] == []
        assert "meaning" in found["cases"][0]["why"]


def state_of(health: Mapping[str, Any]) -> tuple[str, float]:
    (vectors,) = [backend for backend in health["backends"] if backend["name"] == "vectors"]
    return vectors["state"], vectors["lag_s"]


async def test_the_demo_model_searches_cases_in_plain_words(server: LiveServer) -> None:
    async with server.client() as client:
        incident = await begin(client, app_code="demo")
        recorded = await incident.upsert(
            {**KAFKA, "symptom_summary": "消费组反复重平衡 (demo rebalance)"}
        )
        for words in ("search cases for consumer rebalance", "搜索案例：重平衡"):
            asked = await client.ask(words, incident.conversation_id)
            assert recorded["case_id"] in asked["reply"], asked["reply"]


async def test_a_skill_of_the_playbook_is_followed_by_its_tools(server: LiveServer) -> None:
    """The skill is read, and then its tools are there to be called."""
    async with server.client() as client:
        incident = await begin(client, app_code="skill")
        asked = await client.ask(
            script(
                {"tool": "Skill", "input": {"skill": "memory-case"}},
                {"tool": SEARCH, "input": {"query": "OOM"}},
                bash("ls"),
                {"text": "Searched before digging."},
            ),
            incident.conversation_id,
        )
        assert [tool["status"] for tool in asked["tools"]] == ["ok", "ok", "ok"]
        kinds = {tool["name"]: tool for tool in asked["tools"]}
        assert SEARCH in kinds
