"""What a user may use: refused in a sentence, with nothing stored, and shown."""

from pathlib import Path
from typing import Any

import pytest

from gateway.chat.quotas import quota_used
from gateway.conversations.model import Quota, QuotaLimit
from gateway.ids import LOCAL_USER, UserId
from gateway.users.model import Act
from memory.clock import utc_now
from tests.service.http.client import Client
from tests.service.http.reading import streaming
from tests.service.http.stage import HOLD, assert_error, running, staged, two_clients
from tests.service.http.test_users import accounts_of


async def ask(client: Client, message: str = "hello", **more: Any) -> Any:
    return await client.post("/chat", json={"message": message, **more})


async def test_a_day_has_so_many_turns_for_each_user(tmp_path: Path) -> None:
    async with two_clients(tmp_path, max_user_daily_turns=2) as (ada, bob):
        first = await ask(ada, idempotency_key="once")
        place = first.json()["conversation_id"]
        assert (await ask(ada, conversation_id=place)).is_success
        await ada.delete(f"/conversations/{place}")  # what is deleted was used all the same
        kept = await ada.read("/conversations")
        refused = await ask(ada, "one too many")
        error = assert_error(refused, 429, "quota_used")
        wait_s = error["details"].pop("retry_after_s")
        assert error["details"] == {"limit": "daily_turns", "most": 2}
        assert 0 < wait_s <= 86_401
        assert refused.headers["retry-after"] == str(wait_s)
        assert "2 turns of today" in error["message"]
        assert await ada.read("/conversations") == kept
        assert (await ask(bob)).is_success
        shown = await ada.read("/quota")
        assert shown["daily_turns"] == {"used": 2, "most": 2}


async def test_a_message_that_was_taken_is_given_again_beyond_the_quota(tmp_path: Path) -> None:
    async with two_clients(tmp_path, max_user_daily_turns=1) as (ada, _):
        first = await ask(ada, idempotency_key="once")
        assert (await ask(ada, idempotency_key="once")).json() == first.json()
        assert_error(await ask(ada, idempotency_key="twice"), 429, "quota_used")


async def test_so_many_turns_of_a_user_wait_or_run(tmp_path: Path) -> None:
    async with staged(
        tmp_path, users=("ada", "bob"), on_port=True, max_user_running_turns=1
    ) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        async with streaming(ada, HOLD) as held:
            *_, event = await held.until("text.delta")
            place = event.data["conversation_id"]
            assert (await ada.read("/quota"))["running_turns"] == {"used": 1, "most": 1}
            for body in ({}, {"conversation_id": place}):
                error = assert_error(await ask(ada, **body), 429, "quota_used")
                assert error["details"]["limit"] == "running_turns"
            assert (await ask(bob)).is_success
            stage.release()
            await held.rest()
        assert (await ask(ada)).is_success


async def test_without_a_quota_there_is_no_limit(tmp_path: Path) -> None:
    async with two_clients(tmp_path) as (ada, _):
        assert (await ask(ada)).is_success
        assert await ada.read("/quota") == {
            "running_turns": {"used": 0, "most": None},
            "live_agents": {"used": 0, "most": None},
            "daily_turns": {"used": 1, "most": None},
            "daily_usd": {"used": 0.0, "most": None},
        }


async def test_a_user_reads_who_they_are_with_their_quota(tmp_path: Path) -> None:
    async with two_clients(tmp_path, max_user_running_turns=2) as (ada, bob):
        assert (await ask(ada)).is_success

        told = [await one.read("/users/me") for one in (ada, bob)]

        assert [(me["user"], me["role"], me["signed_in_by"]) for me in told] == [
            ("ada", "user", "token"),
            ("bob", "user", "token"),
        ]
        assert [me["quota"] for me in told] == [await one.read("/quota") for one in (ada, bob)]
        assert told[0]["quota"]["daily_turns"]["used"] == 1


async def test_so_many_conversations_of_a_user_work_at_once(tmp_path: Path) -> None:
    users = ("ada", "bob")
    async with staged(tmp_path, users=users, on_port=True, max_user_live_agents=1) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        async with streaming(ada, HOLD) as held:
            await held.until("text.delta")
            assert (await ada.read("/quota"))["live_agents"] == {"used": 1, "most": 1}
            error = assert_error(await ask(ada), 429, "quota_used")
            assert error["details"] == {"limit": "live_agents", "most": 1, "retry_after_s": 5}
            assert (await ask(bob)).is_success
            stage.release()
            await held.rest()
        assert (await ask(ada)).is_success


@pytest.mark.parametrize("limit", ["running_turns", "live_agents"])
async def test_what_is_used_until_a_turn_ends_may_be_asked_for_again(
    tmp_path: Path, limit: str
) -> None:
    one: Any = {f"max_user_{limit}": 1}
    async with staged(tmp_path, users=("ada",), on_port=True, **one) as stage:
        ada = stage.client("ada")
        async with streaming(ada, HOLD) as held:
            await held.until("text.delta")
            answer = await ask(ada)
            assert assert_error(answer, 429, "quota_used")["retryable"] is True
            assert answer.headers["retry-after"] == "5"
            stage.release()
            await held.rest()


@pytest.mark.parametrize(
    ("limit", "quota"),
    [
        ("daily_turns", Quota(daily_turns=1)),
        ("daily_usd", Quota(daily_usd=1.0)),
        ("running_turns", Quota(running_turns=0)),
    ],
)
def test_what_is_used_until_tomorrow_or_never_free_is_not_asked_for_again(
    limit: QuotaLimit, quota: Quota
) -> None:
    assert not quota_used(limit, quota, utc_now()).retryable


async def test_an_administrator_sets_the_limits_of_a_single_user(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob"), max_user_daily_turns=1) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        quotas, act = accounts_of(stage).quotas, Act(by="command:root", at=utc_now())
        await quotas.set(UserId("ada"), "daily_turns", 2, act)
        assert [(await ask(client)).status_code for client in (ada, ada, bob)] == [200] * 3
        for client, most in ((ada, 2), (bob, 1)):
            error = assert_error(await ask(client), 429, "quota_used")
            assert error["details"]["most"] == most
            assert (await client.read("/quota"))["daily_turns"] == {"used": most, "most": most}
        await quotas.set(UserId("ada"), "daily_turns", None, act)
        assert (await ask(ada)).is_success


async def test_an_agent_that_began_early_is_stopped_when_its_turn_is_refused(
    tmp_path: Path,
) -> None:
    """The local user's message is stored together with the start of its turn."""
    async with running(tmp_path) as (services, client):
        act = Act(by="command:root", at=utc_now())
        await services.accounts.quotas.set(LOCAL_USER, "daily_turns", 1, act)
        assert (await ask(client)).is_success
        kept = await client.read("/conversations")
        assert_error(await ask(client), 429, "quota_used")
        assert await client.read("/conversations") == kept
        await services.accounts.quotas.reset(LOCAL_USER, "daily_turns", act)
        assert (await ask(client)).is_success
