"""What a person mends of cases over HTTP: lists that agents filled, verdicts of one voice, words found wrong."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.http.stage import Json, staged
from tests.service.http.test_cases import CASE, CHINESE, conversation, find, record

BOTH = pytest.mark.parametrize("told", [CASE, CHINESE], ids=["en", "zh"])


async def judge(client: httpx.AsyncClient, case_id: str, **vote: Any) -> Json:
    answer = await client.post(f"/memory/cases/{case_id}/feedback", json=vote)
    assert answer.status_code == 200, answer.text
    judged: Json = answer.json()
    return judged


@BOTH
async def test_a_list_that_is_sent_takes_the_place_of_the_one_that_is_there(
    tmp_path: Path, told: Json
) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        known = {"failure_layer": "network", "tags": ["a", "b"], "related_services": ["x"]}
        case_id = (await record(client, {**told, "metadata": known}))["case_id"]
        after = await record(client, {"case_id": case_id, "metadata": {"tags": ["对的", "right"]}})
        assert after["status"] == "updated"
        assert after["metadata"] == {**known, "tags": ["对的", "right"]}


@BOTH
async def test_whom_it_helped_brings_back_what_one_voice_hid_and_clears_what_it_flagged(
    tmp_path: Path, told: Json
) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        case_id = (await record(client, {**told, "confidence": 0.9}))["case_id"]
        for _ in range(2):
            await judge(client, case_id, helpful=True, conversation_id=await conversation(client))
        voices = [await conversation(client), await conversation(client)]
        await judge(client, case_id, signal="high_risk", conversation_id=voices[0])
        stale = await judge(client, case_id, signal="stale", conversation_id=voices[1])
        assert (stale["lifecycle"], stale["review_reasons"]) == ("stale", ["high_risk"])
        assert await find(client, told["symptom_summary"]) == []
        back = await judge(client, case_id, helpful=True)
        assert (back["lifecycle"], back["requires_human_review"]) == ("accepted", False)
        assert await find(client, told["symptom_summary"]) == [case_id]


async def test_what_was_found_wrong_and_is_put_right_by_hand_is_found_again(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        case_id = (await record(client))["case_id"]
        voices = [await conversation(client) for _ in range(3)]
        judged = [
            await judge(client, case_id, helpful=False, conversation_id=one) for one in voices
        ]
        assert judged[-1]["lifecycle"] == "rejected"
        after = await record(client, {**CHINESE, "case_id": case_id})
        assert (after["lifecycle"], after["confidence"]) == ("draft", 0.8)
        assert after["feedback"] == {"helpful": 0, "unhelpful": 0, "conversations": 0}
        assert await find(client, "网关连接超时") == [case_id]
