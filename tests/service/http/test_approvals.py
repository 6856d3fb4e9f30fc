"""Approvals, tokens and health over HTTP."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from gateway.http.context import HttpLimits
from gateway.model_access import Ping
from gateway.version import VERSION
from tests.service.http.reading import streaming
from tests.service.http.stage import (
    ASK,
    HOLD,
    Json,
    Stage,
    assert_error,
    one_client,
    staged,
    two_clients,
)


@pytest.mark.parametrize("decision", ["allow", "deny"])
async def test_an_open_approval_is_listed_and_answered_once(tmp_path: Path, decision: str) -> None:
    async with two_clients(tmp_path, on_port=True) as (ada, bob):
        async with streaming(ada, ASK) as stream:
            asked = (await stream.until("approval.requested"))[-1].data
            listed = await ada.read("/approvals")
            assert listed == {"approvals": [asked], "asks": False}
            only = {"conversation_id": asked["conversation_id"]}
            assert (await ada.get("/approvals", params=only)).json() == listed
            path = f"/approvals/{asked['approval_id']}"
            body: Json = {"decision": decision}
            assert (await bob.read("/approvals"))["approvals"] == []
            assert_error(await bob.post(path, json=body), 404, "not_found")
            assert_error(await ada.post(path, json={}), 422, "invalid_request")
            answer = await ada.post(
                path, json={**body, "message": "ok", "remember": "conversation"}
            )
            given = {**body, "approval_id": asked["approval_id"], "turn_id": asked["turn_id"]}
            assert (answer.status_code, answer.json()) == (200, given)
            assert (await stream.rest())[-1].data["reply"] == decision
            assert_error(await ada.post(path, json=body), 409, "already_answered")
            rules = f"/conversations/{asked['conversation_id']}/permissions"
            kept = [{"approval_id": asked["approval_id"], **asked["permits"][0]}]
            expected: Json = {"permissions": kept if decision == "allow" else []}
            assert await ada.read(rules) == expected
            rule = f"{rules}/{asked['approval_id']}"
            assert (await ada.delete(rule)).status_code == (204 if decision == "allow" else 404)
            assert await ada.read(rules) == {"permissions": []}
        assert (await ada.read("/approvals"))["approvals"] == []


UNFIT: list[tuple[Json, str]] = [
    ({}, "decision"),
    ({"decision": "maybe"}, "decision"),
    ({"decision": True}, "decision"),
    ({"decision": "allow", "remember": "forever"}, "remember"),
    ({"decision": "allow", "reach": "everything"}, "reach"),
    ({"decision": "allow", "reach": "any"}, "reach"),
    ({"decision": "allow", "message": "\0"}, "message"),
]


async def test_an_answer_that_does_not_fit_names_the_field(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for body, field in UNFIT:
            error = assert_error(
                await client.post("/approvals/apr_x", json=body), 422, "invalid_request"
            )
            assert error["details"] == {"field": field}


async def take_back(stage: Stage, user: str) -> None:
    path = anyio.Path(stage.settings.tokens_file or "")
    lines = (await path.read_text()).splitlines()
    await path.write_text("\n".join(line for line in lines if not line.startswith(f"{user} ")))


async def test_a_token_taken_out_of_the_file_lets_nobody_in_and_ends_its_streams(
    tmp_path: Path,
) -> None:
    async with (
        staged(tmp_path, users=("ada", "bob"), on_port=True) as stage,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(stage.app.state.tokens.watch)
        ada, bob = stage.client("ada"), stage.client("bob")
        async with streaming(ada, HOLD) as lost, streaming(bob, HOLD) as kept:
            for stream in (lost, kept):
                await stream.until("text.delta")
            await take_back(stage, "ada")
            (last,) = await lost.rest()
            assert (last.type, last.data["error"]["code"]) == ("error", "unauthorised")
            assert_error(await ada.get("/conversations"), 401, "unauthorised")
            stage.release()
            assert (await kept.rest())[-1].type == "turn.completed"
        assert (await bob.get("/conversations")).status_code == 200
        tasks.cancel_scope.cancel()


async def test_unknown_tokens_are_limited_and_a_known_one_is_served_all_the_same(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path, users=("ada",)) as stage:
        stranger = stage.client()
        stranger.headers["Authorization"] = "Bearer candor_guess"
        for _ in range(10):
            assert_error(await stranger.get("/conversations"), 401, "unauthorised")
        limited = await stranger.get("/conversations")
        assert_error(limited, 429, "too_many_attempts")
        assert int(limited.headers["retry-after"]) > 0
        assert (await stage.client("ada").get("/conversations")).status_code == 200
        assert_error(await stage.client().get("/conversations"), 401, "unauthorised")


def telling(told: str | dict[str, str] | Exception | None) -> Ping:
    """Make what asks a part after its state, which it tells so."""

    async def ping() -> str | dict[str, str] | None:
        await anyio.lowlevel.checkpoint()
        if isinstance(told, Exception):
            raise told
        return told

    return ping


async def silent() -> str | None:
    await anyio.sleep_forever()
    return None


async def test_a_server_is_ready_when_each_part_is_that_turns_cannot_do_without(
    tmp_path: Path,
) -> None:
    pings = {
        "agent": telling(None),
        "memory": telling({"state": "unavailable", "detail": "It is damaged."}),
        "sandbox": telling({"kind": "off", "message": "No kernel sandbox."}),
    }
    async with one_client(tmp_path, pings=pings) as client:
        assert await client.read("/readyz") == {
            "ready": True,
            "demo": True,
            "checks_answers": False,
            "runs_schedules": False,
            "model": "candor-demo",
            "version": VERSION,
            "parts": {
                "agent": {"ok": True},
                "memory": {"ok": False, "state": "unavailable", "detail": "It is damaged."},
                "sandbox": {"ok": True, "kind": "off", "message": "No kernel sandbox."},
            },
        }


async def test_the_part_at_fault_is_named_and_the_others_are_asked_all_the_same(
    tmp_path: Path,
) -> None:
    broken = telling(RuntimeError("secret of /etc"))
    pings = {"agent": telling("There is none."), "slow": silent, "broken": broken}
    quick = HttpLimits(ping_deadline_s=0.5)
    async with one_client(
        tmp_path, pings={**pings, "database": telling(None)}, limits=quick
    ) as client:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["ready"]) == (503, False)
        parts = answer.json()["parts"]
        assert list(parts) == [*pings, "database"]
        assert parts["agent"] == {"ok": False, "message": "There is none."}
        assert parts["slow"]["ok"] is False
        assert "secret" not in parts["broken"]["message"]
        assert parts["database"] == {"ok": True}
