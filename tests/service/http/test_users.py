"""Users and tokens of the database: who is let in, who no longer is, and what is recorded of it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from gateway.ids import UserId
from gateway.users.accounts import Accounts
from gateway.users.model import Act, ApiToken, Role, User, digest_of, new_secret
from memory.background import keep_running
from memory.clock import utc_now
from memory.errors import StoreUnavailable
from tests.service.http.reading import Event, EventReader, following, streaming
from tests.service.http.stage import HOLD, LIMIT_S, Stage, assert_error, staged

ADA = UserId("ada")
PROXY: dict[str, Any] = {"identity_header": "x-user", "identity_proxies": ("10.1.2.3",)}


def accounts_of(stage: Stage) -> Accounts:
    accounts: Accounts = stage.app.state.gateway.services.accounts
    return accounts


def act() -> Act:
    return Act(by="command:root", at=utc_now())


async def add_user(stage: Stage, name: str, role: Role = "user") -> None:
    user = User(id=UserId(name), role=role, created_at=utc_now())
    assert await accounts_of(stage).users.add(user, act())


async def add_token(stage: Stage, name: str, *, minutes: float | None = None) -> tuple[str, str]:
    """Create a token for a user; return its id and the token."""
    secret, now = new_secret(), utc_now()
    until = None if minutes is None else now + timedelta(minutes=minutes)
    token = ApiToken(
        id=f"tok_{secret[-9:]}", user_id=UserId(name), name="", created_at=now, expires_at=until
    )
    assert await accounts_of(stage).tokens.add(token, digest_of(secret), act())
    return token.id, secret


async def asks(stage: Stage, token: str = "", **headers: str) -> httpx.Response:
    given = {"Authorization": f"Bearer {token}"} if token else {}
    return await stage.client().get("/conversations", headers={**given, **headers})


async def test_a_token_signs_in_until_it_is_revoked_or_expires(tmp_path: Path) -> None:
    async with staged(tmp_path, accounts=True) as stage:
        for name in ("ada", "bob"):
            await add_user(stage, name)
        (revoked, first), (_, second) = await add_token(stage, "ada"), await add_token(stage, "ada")
        _, others = await add_token(stage, "bob", minutes=5)
        _, expired = await add_token(stage, "bob", minutes=0)
        made = await stage.client().post(
            "/new-conversation", json={"title": "Ada's"}, headers={"X-Api-Key": first}
        )
        assert made.status_code == 201
        for token, seen in ((second, ["Ada's"]), (others, [])):
            listed = (await asks(stage, token)).json()["conversations"]
            assert [one["title"] for one in listed] == seen
        assert await accounts_of(stage).tokens.revoke(revoked, act())
        for token in (first, expired, digest_of(second), ""):
            assert_error(await asks(stage, token), 401, "unauthorised")
        assert (await asks(stage, second)).is_success
        assert (await stage.client().get("/healthz")).is_success


async def test_a_token_that_does_not_count_is_told_from_none_and_not_why(tmp_path: Path) -> None:
    async with staged(tmp_path, accounts=True) as stage:
        for name in ("ada", "bob"):
            await add_user(stage, name)
        (revoked, first), (_, disabled) = (
            await add_token(stage, "bob"),
            await add_token(stage, "ada"),
        )
        _, expired = await add_token(stage, "bob", minutes=0)
        await accounts_of(stage).tokens.revoke(revoked, act())
        await accounts_of(stage).users.set_disabled(ADA, act(), is_disabled=True)
        errors = [
            assert_error(await asks(stage, token), 401, "unauthorised")["message"]
            for token in (first, disabled, expired, new_secret(), "")
        ]
    *unknown, none = errors
    assert len(set(unknown)) == 1
    assert "no longer" in unknown[0]
    assert "needs a token" in none


async def test_a_disabled_user_is_refused_whatever_signs_them_in(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob"), accounts=True, **PROXY) as stage:
        await add_user(stage, "ada")
        _, token = await add_token(stage, "ada")
        proxy = httpx.ASGITransport(stage.app, client=("10.1.2.3", 4711))
        async with httpx.AsyncClient(base_url=stage.base_url, transport=proxy) as behind:

            async def answers(name: str) -> list[int]:
                named = await behind.get("/conversations", headers={"X-User": name})
                by_file = await asks(stage, stage.tokens[name])
                return [named.status_code, by_file.status_code]

            assert [*await answers("ada"), (await asks(stage, token)).status_code] == [200] * 3
            await accounts_of(stage).users.set_disabled(ADA, act(), is_disabled=True)
            assert [*await answers("ada"), (await asks(stage, token)).status_code] == [401] * 3
            assert await answers("bob") == [200, 200]


async def test_an_open_stream_ends_when_its_user_may_no_longer_read_it(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("bob",), on_port=True, accounts=True) as stage:
        for name in ("ada", "bob"):
            await add_user(stage, name)
        token_id, token = await add_token(stage, "ada")
        ada, bob = stage.client(), stage.client("bob")
        ada.headers["Authorization"] = f"Bearer {token}"
        accounts = accounts_of(stage)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(accounts.watch)
            async with streaming(ada, HOLD) as first, streaming(bob, HOLD) as second:
                for stream in (first, second):
                    await stream.until("text.delta")
                await accounts.tokens.revoke(token_id, act())
                with anyio.fail_after(LIMIT_S):
                    assert "turn.completed" not in [event.type for event in await first.rest()]
                await accounts.users.set_disabled(UserId("bob"), act(), is_disabled=True)
                with anyio.fail_after(LIMIT_S):
                    assert "turn.completed" not in [event.type for event in await second.rest()]
            tasks.cancel_scope.cancel()


class Outage:
    """Keeps accounts from looking anything up between `begin` and `end`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, accounts: Accounts) -> None:
        self._is_on = False
        self.refused, self.passed = anyio.Event(), anyio.Event()
        """Set at a look during the outage, and at one outside of it."""
        for store, name in ((accounts.users, "listed"), (accounts.tokens, "holder")):
            monkeypatch.setattr(store, name, partial(self._look, getattr(store, name)))

    async def _look(self, look: Callable[..., Awaitable[Any]], *given: Any) -> Any:
        if self._is_on:
            self.refused.set()
            raise StoreUnavailable("The database cannot be reached.")
        self.passed.set()
        return await look(*given)

    def begin(self) -> None:
        self._is_on = True

    def end(self) -> None:
        self._is_on = False


@asynccontextmanager
async def watching(accounts: Accounts) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_running, "users", accounts.watch)
        yield
        tasks.cancel_scope.cancel()


async def last_of(stream: EventReader) -> Event:
    """Return the last event of a stream that ends by itself."""
    with anyio.fail_after(LIMIT_S):
        return (await stream.rest())[-1]


def assert_storage_unavailable(event: Event) -> None:
    error = event.data["error"]
    assert (event.type, error["code"]) == ("error", "storage_unavailable")
    assert error["retryable"] is True
    assert "token" not in error["message"]


async def test_a_stream_whose_token_cannot_be_looked_up_is_told_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(tmp_path, on_port=True, accounts=True) as stage:
        await add_user(stage, "ada")
        _, token = await add_token(stage, "ada")
        ada = stage.client()
        ada.headers["Authorization"] = f"Bearer {token}"
        outage = Outage(monkeypatch, accounts_of(stage))
        async with watching(accounts_of(stage)):
            async with streaming(ada, HOLD) as stream:
                last = (await stream.until("text.delta"))[-1]
                outage.begin()
                assert_storage_unavailable(await last_of(stream))
            outage.end()
            listed = (await ada.get("/conversations")).json()["conversations"]
            async with following(ada, listed[0]["id"], last.id) as stream:
                stage.release()  # the turn went on
                assert (await stream.until("turn.completed"))[-1].data["outcome"] == "answered"


async def test_a_stream_whose_token_is_revoked_during_an_outage_is_refused_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with staged(tmp_path, on_port=True, accounts=True) as stage:
        await add_user(stage, "ada")
        token_id, token = await add_token(stage, "ada")
        ada = stage.client()
        ada.headers["Authorization"] = f"Bearer {token}"
        outage = Outage(monkeypatch, accounts_of(stage))
        async with watching(accounts_of(stage)), streaming(ada, HOLD) as stream:
            await stream.until("text.delta")
            outage.begin()
            assert_storage_unavailable(await last_of(stream))
            assert await accounts_of(stage).tokens.revoke(token_id, act())
            assert_error(await ada.get("/conversations"), 503, "storage_unavailable")
            outage.end()
            assert_error(await ada.get("/conversations"), 401, "unauthorised")


async def test_an_outage_is_logged_in_lines_and_is_no_failure_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged(tmp_path, accounts=True) as stage:
        accounts = accounts_of(stage)
        outage, failed = Outage(monkeypatch, accounts), list[str]()
        await add_user(stage, "ada")
        outage.begin()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_running, "users", accounts.watch, failed.append)
            with anyio.fail_after(LIMIT_S):
                await outage.refused.wait()
                outage.end()
                await outage.passed.wait()
            tasks.cancel_scope.cancel()
    assert failed == []
    (line,) = caplog.records
    assert (line.levelname, line.msg, line.exc_info) == ("WARNING", "users_unknown", None)
    assert line.__dict__["reason"] == "The database cannot be reached."


async def test_refused_tokens_are_recorded_within_bounds_and_without_them(tmp_path: Path) -> None:
    async with staged(tmp_path, accounts=True) as stage:
        guesses = [new_secret() for _ in range(30)]
        codes = [(await asks(stage, guess)).status_code for guess in guesses]
        assert set(codes) == {401, 429}
        assert (await asks(stage)).status_code == 401  # nothing was tried
        entries = await accounts_of(stage).audit.page(limit=99)
        assert len(entries) == codes.count(401)
        assert {(one.action, one.subject) for one in entries} == {("sign_in.refused", "127.0.0.1")}
        assert not any(guess in repr(entries) for guess in guesses)


async def test_a_token_of_the_file_is_recorded_when_its_user_is_disabled(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",), accounts=True) as stage:
        await add_user(stage, "ada")
        await accounts_of(stage).users.set_disabled(ADA, act(), is_disabled=True)
        assert (await asks(stage, stage.tokens["ada"])).status_code == 401
        (latest, *_) = await accounts_of(stage).audit.page(limit=9)
        assert (latest.action, latest.subject) == ("sign_in.refused", "127.0.0.1")


async def test_nobody_is_let_in_while_the_database_cannot_be_read(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("bob",), accounts=True) as stage:
        await add_user(stage, "ada")
        _, token = await add_token(stage, "ada")
        await stage.database.close()
        for given in (token, stage.tokens["bob"], new_secret()):
            assert_error(await asks(stage, given), 503, "storage_unavailable")


async def test_tokens_of_the_database_count_only_if_the_setting_says_so(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("bob",)) as stage:
        await add_user(stage, "ada")
        _, token = await add_token(stage, "ada")
        assert_error(await asks(stage, token), 401, "unauthorised")
        assert (await asks(stage, stage.tokens["bob"])).is_success
