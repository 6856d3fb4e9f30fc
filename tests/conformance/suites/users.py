"""What every store of users and tokens, and every audit log, must do."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

import anyio
import pytest

from gateway.conversations.model import Quota
from gateway.conversations.sql.conversations import ConversationStore
from gateway.conversations.sql.turns import TurnStore
from gateway.conversations.store import QuotaReached
from gateway.users.model import Act, Action, ApiToken, AuditEntry, Session, User
from gateway.users.sql.audit import AuditLog
from gateway.users.sql.quotas import QuotaStore
from gateway.users.sql.sessions import SessionStore
from gateway.users.sql.users import TokenStore, UserStore
from tests.conformance.suites.conversation_values import (
    ANN,
    AT,
    BOB,
    WAIT_S,
    at,
    conversation,
    turn,
)
from tests.conformance.suites.opened import OpenedSuite

ROOT = Act(by="command:root", at=AT)
KEY = "a" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStores:
    """The stores, open on one place."""

    users: UserStore
    tokens: TokenStore
    sessions: SessionStore
    quotas: QuotaStore
    audit: AuditLog
    turns: TurnStore
    """Which holds the quotas."""
    conversations: ConversationStore


OpenAccounts = Callable[[], AbstractAsyncContextManager[AccountStores]]


def token(name: str = "a", user_id: Any = ANN, **fields: Any) -> ApiToken:
    """Make a token with the id `tok_<name>`."""
    blank = ApiToken(id=f"tok_{name}", user_id=user_id, name=f"name of {name}", created_at=AT)
    return replace(blank, **fields)


def refused(address: str, minutes: float = 0) -> AuditEntry:
    """Make the entry of a refused sign-in."""
    return AuditEntry(at=at(minutes), actor="", action="sign_in.refused", subject=address)


async def acts(stores: AccountStores) -> list[tuple[str, Action, str]]:
    """Return what the log holds, oldest first."""
    page = await stores.audit.page(limit=999)
    return [(one.actor, one.action, one.subject) for one in reversed(page)]


class AccountStoreSuite(OpenedSuite):
    """The contracts of `UserStore`, `TokenStore` and `AuditLog`."""

    @pytest.fixture
    def stores(self, opened: AccountStores) -> AccountStores:
        """Return the open stores."""
        return opened

    async def test_a_user_is_added_once(self, stores: AccountStores) -> None:
        ann, bob = User(id=ANN, created_at=AT), User(id=BOB, role="admin", created_at=at(1))
        for one in (bob, ann):
            assert await stores.users.add(one, ROOT)
        assert not await stores.users.add(replace(ann, role="admin"), ROOT)
        assert await stores.users.listed() == [ann, bob]
        assert await stores.users.get(ANN) == ann
        assert await stores.users.get("ANN") is None  # type: ignore[arg-type]
        assert await acts(stores) == [
            ("command:root", "user.added", "bob"),
            ("command:root", "user.added", "ann"),
        ]

    async def test_a_change_of_a_user_is_recorded_once(self, stores: AccountStores) -> None:
        users = stores.users
        assert not await users.set_role(ANN, "admin", ROOT)
        assert not await users.set_disabled(ANN, ROOT, is_disabled=True)
        await users.add(User(id=ANN, created_at=AT), ROOT)
        await users.add(User(id=BOB, created_at=AT), ROOT)
        for _ in range(2):
            assert await users.set_role(ANN, "admin", ROOT)
            assert await users.set_disabled(ANN, replace(ROOT, at=at(3)), is_disabled=True)
        assert await users.get(ANN) == User(id=ANN, role="admin", created_at=AT, disabled_at=at(3))
        assert await users.get(BOB) == User(id=BOB, created_at=AT)
        assert await users.set_disabled(ANN, ROOT, is_disabled=False)
        assert await users.get(ANN) == User(id=ANN, role="admin", created_at=AT)
        assert [action for _, action, _ in await acts(stores)][2:] == [
            "user.role_changed",
            "user.disabled",
            "user.enabled",
        ]

    async def test_a_token_signs_its_user_in_while_it_is_valid(self, stores: AccountStores) -> None:
        ann = User(id=ANN, role="admin", created_at=AT)
        await stores.users.add(ann, ROOT)
        await stores.users.add(User(id=BOB, created_at=AT), ROOT)
        assert not await stores.tokens.add(token(user_id="nobody"), KEY, ROOT)
        assert await stores.tokens.add(token(expires_at=at(5)), KEY, ROOT)
        assert await stores.tokens.add(token("b", BOB), "b" * 64, ROOT)
        assert await stores.tokens.holder(KEY, at(4.9)) == ann
        for digest, moment in ((KEY, at(5)), ("c" * 64, AT), ("", AT)):
            assert await stores.tokens.holder(digest, moment) is None
        assert list(await stores.tokens.live(at(4.9))) == ["tok_a", "tok_b"]
        assert list(await stores.tokens.live(at(5))) == ["tok_b"]
        assert await stores.tokens.listed(ANN) == [token(expires_at=at(5))]
        assert await stores.tokens.listed() == [token(expires_at=at(5)), token("b", BOB)]

    async def test_a_disabled_user_has_no_token_until_enabled(self, stores: AccountStores) -> None:
        ann = User(id=ANN, created_at=AT)
        await stores.users.add(ann, ROOT)
        await stores.tokens.add(token(), KEY, ROOT)
        await stores.users.set_disabled(ANN, ROOT, is_disabled=True)
        assert await stores.tokens.holder(KEY, AT) is None
        await stores.users.set_disabled(ANN, ROOT, is_disabled=False)
        assert await stores.tokens.holder(KEY, AT) == ann

    async def test_a_token_is_revoked_at_once_and_for_good(self, stores: AccountStores) -> None:
        await stores.users.add(User(id=ANN, created_at=AT), ROOT)
        for name, digest in (("a", KEY), ("b", "b" * 64)):
            await stores.tokens.add(token(name), digest, ROOT)
        assert await stores.tokens.revoke("tok_a", replace(ROOT, at=at(1)))
        assert await stores.tokens.holder(KEY, AT) is None
        assert await stores.tokens.holder("b" * 64, AT) is not None
        assert list(await stores.tokens.live(AT)) == ["tok_b"]
        for name in ("tok_a", "tok_c"):
            assert not await stores.tokens.revoke(name, replace(ROOT, at=at(2)))
        assert await stores.tokens.listed() == [token(revoked_at=at(1)), token("b")]
        entries = await stores.audit.page(limit=3)
        told = [(one.action, one.subject, one.details) for one in reversed(entries)]
        of_a, of_b = ({"user": "ann", "name": f"name of {name}"} for name in "ab")
        assert told == [
            ("token.made", "tok_a", of_a),
            ("token.made", "tok_b", of_b),
            ("token.revoked", "tok_a", of_a),
        ]

    async def test_of_many_who_revoke_at_once_one_does(self, opens: OpenAccounts) -> None:
        """Two stores on one database, each with several writers."""
        done: list[bool] = []

        async def revoke(store: TokenStore) -> None:
            done.append(await store.revoke("tok_a", ROOT))

        with anyio.fail_after(WAIT_S):
            async with opens() as stores, opens() as other:
                await stores.users.add(User(id=ANN, created_at=AT), ROOT)
                await stores.tokens.add(token(), KEY, ROOT)
                async with anyio.create_task_group() as tasks:
                    for store in (stores.tokens, other.tokens) * 4:
                        tasks.start_soon(revoke, store)
                assert sorted(done) == [False] * 7 + [True]
                recorded = [action for _, action, _ in await acts(stores)]
                assert recorded.count("token.revoked") == 1

    async def test_a_sign_in_comes_back_once_in_time(self, stores: AccountStores) -> None:
        kept = {"nonce": "n", "code_verifier": "数"}
        for name, minutes in (("a", 5), ("b", 5), ("c", 1)):
            await stores.sessions.begin(name, kept, at=AT, expires_at=at(minutes))
        assert await stores.sessions.take("a", at(4.9)) == kept
        assert await stores.sessions.take("a", at(4.9)) is None
        assert await stores.sessions.take("b", at(5)) is None
        await stores.sessions.begin("d", kept, at=at(2), expires_at=at(5))
        assert await stores.sessions.take("c", at(0)) is None  # it had expired, and was deleted
        assert await stores.sessions.take("d", at(2)) == kept

    async def test_a_session_lasts_until_it_expires_or_ends(self, stores: AccountStores) -> None:
        ann, sessions = User(id=ANN, created_at=AT), stores.sessions
        await stores.users.add(ann, ROOT)
        for name in ("a", "b", "c"):
            one = Session(
                id=f"ses_{name}", user_id=ANN, created_at=AT, expires_at=at(1 if name == "c" else 5)
            )
            await sessions.start(one, name, replace(ROOT, by="ann"))
        assert await sessions.holder("a", at(4.9)) == ann
        assert [await sessions.holder("a", at(5)), await sessions.holder("x", AT)] == [None, None]
        assert list(await sessions.live(at(1))) == ["ses_a", "ses_b"]
        assert await sessions.end("a", ROOT)
        assert not await sessions.end("a", ROOT)
        assert await sessions.holder("a", AT) is None
        assert await sessions.holder("b", AT) == ann
        await stores.users.set_disabled(ANN, ROOT, is_disabled=True)
        assert await sessions.holder("b", AT) is None
        late = Session(id="ses_d", user_id=ANN, created_at=at(2), expires_at=at(9))
        await sessions.start(late, "d", replace(ROOT, at=at(2)))
        assert list(await sessions.live(AT)) == ["ses_b", "ses_d"]  # what expired is deleted
        told = [(actor, action, subject) for actor, action, subject in await acts(stores)][1:]
        assert told[:4] == [
            *[("ann", "sign_in.done", f"ses_{name}") for name in "abc"],
            ("command:root", "sign_out", "ses_a"),
        ]

    async def test_a_users_own_limits_go_over_everybodys(self, stores: AccountStores) -> None:
        everybody = Quota(daily_turns=1, daily_usd=0.5, running_turns=9)
        quotas, turns = stores.quotas, stores.turns
        await quotas.set(ANN, "daily_turns", 2, ROOT)
        await quotas.set(ANN, "daily_turns", 3, ROOT)
        await quotas.set(ANN, "daily_usd", None, ROOT)
        assert await quotas.own(ANN) == {"daily_turns": 3, "daily_usd": None}
        own = Quota(daily_turns=3, running_turns=9)
        assert await turns.quota_of(ANN, everybody) == own
        assert await turns.quota_of(BOB, everybody) == everybody
        for name, user, most in (("a", ANN, 3), ("b", BOB, 1)):
            await stores.conversations.create(conversation(name, user))
            for number in range(most):
                await turns.accept(turn(f"{name}{number}", name, user), quota=everybody)
            with pytest.raises(QuotaReached, match="daily_turns") as reached:
                await turns.accept(turn(f"{name}x", name, user), quota=everybody)
            assert reached.value.quota.daily_turns == most
        assert await quotas.reset(ANN, "daily_turns", ROOT)
        assert not await quotas.reset(ANN, "daily_turns", ROOT)
        assert await turns.quota_of(ANN, everybody) == replace(own, daily_turns=1)
        entries = await stores.audit.page(limit=9)
        assert {(one.action, one.subject) for one in entries} == {("quota.changed", "ann")}
        assert [tuple(one.details.values()) for one in reversed(entries)] == [
            ("daily_turns", "2"),
            ("daily_turns", "3"),
            ("daily_usd", "none"),
            ("daily_turns", "default"),
        ]

    async def test_the_log_is_read_page_by_page_from_its_end(self, stores: AccountStores) -> None:
        for number in range(5):
            entry = refused(f"10.0.0.{number}", number)
            await stores.audit.add(replace(entry, actor="ann" if number == 1 else ""))
        first = await stores.audit.page(limit=2)
        assert [one.subject for one in first] == ["10.0.0.4", "10.0.0.3"]
        second = await stores.audit.page(limit=9, before=first[-1].seq)
        assert [one.subject for one in second] == ["10.0.0.2", "10.0.0.1", "10.0.0.0"]
        (of_ann,) = await stores.audit.page(limit=9, actor="ann")
        assert of_ann == replace(refused("10.0.0.1", 1), actor="ann", seq=of_ann.seq)

    async def test_refused_sign_ins_displace_only_one_another(self, stores: AccountStores) -> None:
        await stores.users.add(User(id=ANN, created_at=AT), ROOT)
        for number in range(4):
            await stores.audit.add(refused(str(number), number))
        assert await stores.audit.prune(at(-1), refused=2) == 2
        assert [subject for *_, subject in await acts(stores)] == ["ann", "2", "3"]
        assert await stores.audit.prune(at(3), refused=9) == 2
        assert [subject for *_, subject in await acts(stores)] == ["3"]
        assert await stores.audit.prune(at(3), refused=1) == 0
