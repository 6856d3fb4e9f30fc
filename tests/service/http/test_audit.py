"""The audit log over HTTP: what users did, for administrators alone, page by page."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NoReturn

import anyio
import pytest

from gateway.users.model import AuditEntry
from gateway.users.sql.audit import AuditLog
from memory.clock import utc_now
from memory.errors import StoreUnavailable
from tests.service.http.reading import streaming
from tests.service.http.stage import ASK, LIMIT_S, assert_error, staged
from tests.service.http.test_users import accounts_of, act, add_token, add_user


async def test_only_administrators_read_it_from_the_next_request_on(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("bob",), accounts=True) as stage:
        await add_user(stage, "ada", "admin")
        _, token = await add_token(stage, "ada")
        ada, bob = stage.client(), stage.client("bob")
        ada.headers["Authorization"] = f"Bearer {token}"
        assert (await ada.read("/audit"))["entries"][-1]["subject"] == "ada"
        assert_error(await bob.get("/audit"), 403, "forbidden")
        await add_user(stage, "bob", "admin")
        assert (await bob.read("/audit"))["entries"][0]["subject"] == "bob"
        for name in ("ada", "bob"):
            await accounts_of(stage).users.set_role(name, "user", act())  # type: ignore[arg-type]
        for client in (ada, bob):
            assert_error(await client.get("/audit"), 403, "forbidden")


async def test_what_users_delete_and_allow_is_recorded_without_their_words(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        client = stage.client()
        place = (await client.say("a secret wish"))["conversation_id"]
        fact = (await client.post("/memory/facts", json={"text": "A secret wish."})).json()
        async with streaming(client, ASK) as asking:
            question = (await asking.until("approval.requested"))[-1].data
            reply = {"decision": "allow", "remember": "conversation"}
            path = f"/approvals/{question['approval_id']}"
            assert (await client.post(path, json=reply)).is_success
            await asking.rest()
        async with streaming(client, ASK) as asking:
            once = (await asking.until("approval.requested"))[-1].data
            await client.post(f"/approvals/{once['approval_id']}", json={"decision": "allow"})
            await asking.rest()
        for path in (f"/memory/items/{fact['id']}", f"/conversations/{place}"):
            assert (await client.delete(path)).status_code == 204
            assert (await client.delete(path)).status_code == 404
        entries = (await client.read("/audit"))["entries"]
        assert [(one["action"], one["subject"], one["details"]) for one in entries] == [
            ("conversation.deleted", place, {}),
            ("memory.deleted", fact["id"], {}),
            (
                "permission.granted",
                question["approval_id"],
                {"conversation": question["conversation_id"], "reach": "exact"},
            ),
        ]
        assert {one["actor"] for one in entries} == {"local"}
        assert "wish" not in repr(entries)


async def test_a_conversation_whose_deletion_cannot_be_recorded_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> NoReturn:
        raise StoreUnavailable

    async with staged(tmp_path) as stage:
        client = stage.client()
        place = f"/conversations/{(await client.say('a wish'))['conversation_id']}"
        with monkeypatch.context() as patched:
            patched.setattr(AuditLog, "add", fail)
            assert not (await client.delete(place)).is_success
        assert "a wish" in repr(await client.read(f"{place}/messages"))
        assert (await client.delete(place)).status_code == 204
        assert len((await client.read("/audit"))["entries"]) == 1


async def test_of_two_deletions_at_once_one_is_recorded_and_the_other_finds_nothing(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        place = f"/conversations/{(await client.say('a wish'))['conversation_id']}"
        codes: list[int] = []

        async def delete() -> None:
            codes.append((await client.delete(place)).status_code)

        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(delete)
        assert sorted(codes) == [204, 404]
        assert len((await client.read("/audit"))["entries"]) == 1


async def test_it_is_read_in_pages_and_for_one_actor(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        for number in range(5):
            name = "ada" if number % 2 else "bob"
            await accounts_of(stage).record(name, "conversation.deleted", f"cnv_{number}")
        client = stage.client()
        subjects = []
        before: str | None = ""
        while before is not None:
            page = await client.read("/audit", limit=2, before=before)
            subjects.append([one["subject"][-1] for one in page["entries"]])
            before = page["next_before"]
        assert subjects == [["4", "3"], ["2", "1"], ["0"]]
        found = await client.read("/audit", actor="ada")
        assert [one["subject"] for one in found["entries"]] == ["cnv_3", "cnv_1"]
        assert_error(await client.get("/audit?before=x"), 422, "invalid_request")


async def test_old_entries_go(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        accounts = accounts_of(stage)
        for days in (9, 11):
            at = utc_now() - timedelta(days=days)
            old = AuditEntry(at=at, actor="ada", action="memory.deleted", subject=f"{days}")
            await accounts.audit.add(old)
        with anyio.fail_after(LIMIT_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(accounts.prune_audit, 10))
                while len(entries := await accounts.audit.page(limit=9)) > 1:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        assert [one.subject for one in entries] == ["9"]
