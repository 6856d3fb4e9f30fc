"""Case memory over HTTP, by the contract's names: real stores, no agent."""

import json
from pathlib import Path
from typing import Any

import anyio

from tests.service.http.client import Client
from tests.service.http.stage import Json, assert_error, one_client, staged

CASE: Json = {
    "symptom_summary": "Checkout answers 503 after each deploy",
    "diagnosis": "Readiness probes pass before the connection pool is filled; the first requests time out.",
    "root_cause": "The readiness probe does not look at the connection pool.",
    "resolution": "Added the pool to the readiness check; no 503 in ten deploys.",
    "confidence": 0.7,
    "metadata": {
        "failure_layer": "k8s",
        "related_services": ["checkout", "orders"],
        "tags": ["deploy"],
    },
}
CHINESE: Json = {
    "symptom_summary": "网关重启后大量连接超时",
    "diagnosis": "重启后 DNS 缓存为空，所有请求同时解析，CoreDNS 被限流。",
    "root_cause": "CoreDNS 限流。",
    "resolution": "开启 NodeLocal DNSCache。",
    "confidence": 0.8,
}


async def record(client: Client, case: Json = CASE, **beside: Any) -> Json:
    answer = await client.post("/memory/cases", json={"case": case, **beside})
    assert answer.status_code in {200, 201}, answer.text
    recorded: Json = answer.json()
    return recorded


async def find(client: Client, q: str, **params: Any) -> list[str]:
    answer = await client.get("/memory/cases/search", params={"q": q, **params})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["count"] == len(told["cases"])
    assert told["code"] == "OK"
    return [case["case_id"] for case in told["cases"]]


async def conversation(client: Client, **changes: str) -> str:
    conversation_id = str(await client.new_conversation())
    if changes:
        answer = await client.patch(f"/conversations/{conversation_id}", json=changes)
        assert answer.status_code == 200, answer.text
    return conversation_id


async def test_a_case_is_recorded_found_shown_judged_and_forgotten(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        answer = await client.post(
            "/memory/cases", json={"case": CASE, "app_code": "shop", "environment": "production"}
        )
        assert answer.status_code == 201
        made = answer.json()
        assert set(made) >= {
            *("case_id", "lifecycle", "confidence", "similar_cases", "feedback", "history"),
            *("markdown", "status", "stripped", "unreviewed_cases", "app_code", "environment"),
        }
        case_id = made["case_id"]
        assert case_id.startswith("cas_")
        assert (made["lifecycle"], made["confidence"], made["status"]) == ("draft", 0.7, "created")
        assert "Readiness probes pass" in made["markdown"]
        (found,) = (await client.read("/memory/cases/search", q="503 deploy"))["cases"]
        assert set(found) >= {
            *("case_id", "symptom_summary", "diagnosis_preview", "diagnosis_len", "root_cause"),
            *("resolution", "confidence", "lifecycle", "similar_count", "source_conv_id"),
            *("fingerprint", "created_at", "updated_at", "feedback_h", "feedback_u"),
            "feedback_cv_count",
        }
        shown = await client.read(f"/memory/cases/{case_id}")
        assert {name: shown[name] for name in CASE} == CASE
        judged = await client.post(f"/memory/cases/{case_id}/feedback", json={"helpful": True})
        assert judged.status_code == 200
        assert (judged.json()["confidence"], judged.json()["feedback"]["helpful"]) == (0.8, 1)
        # it is an item like any other
        items = (await client.read("/memory/search", q="503 deploy"))["items"]
        assert [(item["id"], item["kind"]) for item in items] == [(case_id, "case")]
        assert (await client.delete(f"/memory/items/{case_id}")).status_code == 204
        assert_error(await client.get(f"/memory/cases/{case_id}"), 404, "not_found")
        assert await find(client, "503 deploy") == []


async def test_a_case_that_search_does_not_show_is_an_item_by_its_id(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        case_id = (await record(client))["case_id"]
        await client.post(f"/memory/cases/{case_id}/feedback", json={"signal": "stale"})
        shown = await client.read(f"/memory/items/{case_id}")
        assert (shown["id"], shown["kind"], shown["lifecycle"]) == (case_id, "case", "stale")
        assert (await client.delete(f"/memory/items/{case_id}")).status_code == 204
        assert_error(await client.get(f"/memory/items/{case_id}"), 404, "not_found")


async def test_a_conversation_brings_its_own_scope_and_is_asked_to_judge(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        made = await record(client, app_code="shop", environment="production")
        mine = await conversation(client, app_code="shop", environment="staging")
        other = await conversation(client, app_code="bank")
        assert await find(client, "503", conversation_id=mine) == [made["case_id"]]
        assert await find(client, "503", conversation_id=other) == []
        second = await record(client, CHINESE, conversation_id=mine)
        assert second["unreviewed_cases"] == [made["case_id"]]
        assert (second["app_code"], second["environment"]) == ("shop", "staging")
        body = {"helpful": True, "conversation_id": mine}
        answer = await client.post(f"/memory/cases/{made['case_id']}/feedback", json=body)
        assert answer.json()["unreviewed_cases"] == []
        assert answer.json()["history"][-1]["conversation_id"] == mine


UNFIT: list[tuple[Json, str, str | None]] = [
    ({"case": {}}, "case", "MISSING_CASE"),
    ({"case": {**CASE, "symptom_summary": "  "}}, "case.symptom_summary", "INVALID_CASE"),
    ({"case": {**CASE, "confidence": "high"}}, "case.confidence", "INVALID_CASE"),
    ({"case": {**CASE, "confidence": 7}}, "case.confidence", "INVALID_CASE"),
    ({"case": {**CASE, "diagnosis": 7}}, "case.diagnosis", "INVALID_CASE"),
    ({"case": {**CASE, "metadata": {"runtime": 7}}}, "case.metadata.runtime", "INVALID_CASE"),
    ({"case": {**CASE, "metadata": {"tags": 7}}}, "case.metadata.tags", "INVALID_CASE"),
    ({"case": {**CASE, "metadata": 7}}, "case.metadata", "INVALID_CASE"),
    ({"case": {**CASE, "case_id": 7}}, "case.case_id", "INVALID_CASE"),
    ({"case": {**CASE, "diagnosis": "a\0b"}}, "case.diagnosis", None),
    ({"case": {**CASE, "symptom_summary": "a\ud800b"}}, "case.symptom_summary", None),
    ({"case": {**CASE, "metadata": {"tags": ["x", "a\udfff"]}}}, "case.metadata.tags", None),
    ({"case": {**CASE, "more": [{"deep": "\0"}]}}, "case.more.deep", None),
    ({"case": {**CASE, "\0": 1}}, "case", None),
    ({"case": CASE, "environment": "a\u2028b"}, "environment", None),
]


async def test_a_refusal_names_the_field_that_is_to_blame(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for body, field, code in UNFIT:
            headers = {"content-type": "application/json"}
            answer = await client.post("/memory/cases", content=json.dumps(body), headers=headers)
            error = assert_error(answer, 422, "invalid_request")
            assert (error["details"]["field"], error["details"].get("code")) == (field, code)
        assert await find(client, "503 deploy") == []


QUESTIONS: list[tuple[Json, str]] = [
    ({}, "q"),
    ({"q": " "}, "q"),
    ({"query": " "}, "query"),
    ({"q": "x", "limit": 99}, "limit"),
    ({"q": "x", "top_k": 0}, "top_k"),
    ({"q": "x", "top_k": 21}, "top_k"),
    ({"q": "x", "top_k": "many"}, "top_k"),
]


async def test_a_question_is_refused_by_the_name_that_the_caller_used(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for params, field in QUESTIONS:
            answer = await client.get("/memory/cases/search", params=params)
            error = assert_error(answer, 422, "invalid_request")
            assert error["details"]["field"] == field
            assert f"`{field}`" in error["message"]


async def test_exported_cases_are_restored_once_but_not_their_confirmation(tmp_path: Path) -> None:
    for name in ("old", "new"):
        await anyio.Path(tmp_path / name).mkdir()
    async with staged(tmp_path / "old") as stage, stage.client() as client:
        kept = (await record(client))["case_id"]
        wrong = (await record(client, CHINESE, environment="prod"))["case_id"]
        await client.post(f"/memory/cases/{kept}/feedback", json={"helpful": True})
        await client.post(f"/memory/cases/{wrong}/feedback", json={"signal": "stale"})
        before = await client.read(f"/memory/cases/{wrong}")
        lines = (await client.get("/memory/export")).text.splitlines()
    async with staged(tmp_path / "new") as stage, stage.client() as client:
        twice = [
            (await client.post("/memory/import", json={"lines": lines})).json() for _ in range(2)
        ]
        assert [(counts["stored"], counts["there"]) for counts in twice] == [(2, 0), (0, 2)]
        assert await find(client, "checkout answers 503") == [kept]
        told = await client.read(f"/memory/cases/{kept}")
        assert (told["lifecycle"], told["confidence"]) == ("draft", 0.8)
        assert told["metadata"]["related_services"] == CASE["metadata"]["related_services"]
        again = await client.read(f"/memory/cases/{wrong}")
        assert {again[name] == before[name] for name in ("lifecycle", "environment")} == {True}
        broken = json.dumps({**json.loads(lines[0]), "content": {"diagnosis": "?"}})
        refused = (await client.post("/memory/import", json={"lines": [broken]})).json()
        assert refused["refused"] + refused["there"] == 1
