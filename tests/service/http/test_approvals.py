"""Approvals over HTTP."""

from pathlib import Path

import pytest

from tests.service.http.reading import reading
from tests.service.http.stage import ASK, Json, assert_error, staged


@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_an_open_approval_is_listed_and_answered_once(tmp_path: Path, decision: str) -> None:
    async with staged(tmp_path, on_port=True, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        async with reading(ada, "POST", "/chat/stream", json={"message": ASK}) as stream:
            asked = (await stream.until("approval.requested"))[-1].data
            listed = (await ada.get("/approvals")).json()
            assert listed == {"approvals": [asked], "asks": False}
            only = {"conversation_id": asked["conversation_id"]}
            assert (await ada.get("/approvals", params=only)).json() == listed
            path = f"/approvals/{asked['approval_id']}"
            body: Json = {"decision": decision}
            assert (await bob.get("/approvals")).json()["approvals"] == []
            assert_error(await bob.post(path, json=body), 404, "not_found")
            assert_error(await ada.post(path, json={}), 422, "invalid_request")
            answer = await ada.post(
                path, json={**body, "message": "ok", "remember": "conversation"}
            )
            assert (answer.status_code, answer.json()) == (
                200,
                {"approval_id": asked["approval_id"], "decision": decision},
            )
            assert (await stream.rest())[-1].data["reply"] == decision
            assert_error(await ada.post(path, json=body), 409, "already_answered")
            rules = f"/conversations/{asked['conversation_id']}/permissions"
            kept = [{"approval_id": asked["approval_id"], **asked["permits"][0]}]
            expected: Json = {"permissions": kept if decision == "allow" else []}
            assert (await ada.get(rules)).json() == expected
            rule = f"{rules}/{asked['approval_id']}"
            assert (await ada.delete(rule)).status_code == (204 if decision == "allow" else 404)
            assert (await ada.get(rules)).json() == {"permissions": []}
        assert (await ada.get("/approvals")).json()["approvals"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "decision"),
        ({"decision": "maybe"}, "decision"),
        ({"decision": True}, "decision"),
        ({"decision": "allow", "remember": "forever"}, "remember"),
        ({"decision": "allow", "reach": "everything"}, "reach"),
        ({"decision": "allow", "message": "\0"}, "message"),
    ],
    ids=str,
)
async def test_an_answer_that_does_not_fit_names_the_field(
    tmp_path: Path, body: Json, field: str
) -> None:
    async with staged(tmp_path) as stage:
        answer = await stage.client().post("/approvals/apr_x", json=body)
        assert assert_error(answer, 422, "invalid_request")["details"] == {"field": field}
