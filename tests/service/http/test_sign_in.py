"""Sign-in through a real OpenID provider, whose answers are changed on their way: whatever is not exactly right refuses."""

import base64
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx
import pytest

from gateway.errors import StartError
from gateway.http.auth import check_exposure
from gateway.ids import UserId
from gateway.settings import Secret, Settings
from gateway.users.model import Session, User, digest_of
from memory.clock import utc_now
from tests.service.http.reading import streaming
from tests.service.http.stage import HOLD, LIMIT_S, Stage, assert_error, staged
from tests.service.http.test_users import accounts_of, act
from tests.support.oidc_provider import (
    Claims,
    Provider,
    in_the_past,
    new_key,
    running_provider,
    sign_not_at_all,
    sign_rightly,
    sign_with_another_key,
    sign_with_the_public_key_as_secret,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
HERE = "http://127.0.0.1:8000"
OWN = {"Origin": HERE}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as one:
        yield one


@asynccontextmanager
async def signing(directory: Path, provider: Provider, **settings: Any) -> AsyncIterator[Stage]:
    given: dict[str, Any] = {
        "oidc_issuer": provider.url,
        "oidc_client_id": "candor",
        "oidc_client_secret": Secret("hush-hush-hush"),
        "public_url": HERE,
    }
    directory.mkdir(exist_ok=True)
    async with staged(directory, accounts=True, **{**given, **settings}) as stage:
        yield stage


async def comes_back(stage: Stage, provider: Provider, name: str = "ada") -> tuple[Any, str]:
    """Begin a sign-in in a new browser; return the browser, and the way back from the provider."""
    browser = stage.client()
    begun = await browser.get("/auth/sign-in")
    assert begun.status_code == 303, begun.text
    return browser, await provider.sign_in(begun.headers["location"], name)


async def sign_in(stage: Stage, provider: Provider, name: str = "ada") -> Any:
    """Sign in in a new browser, and return it."""
    browser, back = await comes_back(stage, provider, name)
    done = await browser.get(back)
    assert (done.status_code, done.headers["location"]) == (303, f"{HERE}/"), done.text
    return browser


async def refused(stage: Stage, answer: httpx.Response) -> None:
    assert_error(answer, 401, "sign_in_refused")
    assert "candor_session" not in answer.headers.get("set-cookie", "")
    (entry, *_) = await accounts_of(stage).audit.page(limit=1)
    assert (entry.action, entry.actor, entry.subject) == ("sign_in.refused", "", "127.0.0.1")
    assert "hush" not in repr(entry)


async def test_a_browser_signs_in_and_out(tmp_path: Path, provider: Provider) -> None:
    async with signing(tmp_path, provider) as stage:
        browser = stage.client()
        error = assert_error(await browser.get("/conversations"), 401, "unauthorised")
        assert error["details"] == {"sign_in": "/auth/sign-in"}
        begun = await browser.get("/auth/sign-in")
        asked = {
            key: one for key, (one,) in parse_qs(urlsplit(begun.headers["location"]).query).items()
        }
        assert asked["response_type"] == "code"
        assert asked["redirect_uri"] == f"{HERE}/auth/callback"
        assert "openid" in asked["scope"].split()
        assert len(asked["state"]) > 20 < len(asked["nonce"]) + 1
        back = await provider.sign_in(begun.headers["location"], "ada")
        done = await browser.get(back)
        (exchange,) = provider.exchanges
        challenge = hashlib.sha256(exchange["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(challenge).decode().rstrip("=") == asked["code_challenge"]
        assert asked["code_challenge_method"] == "S256"
        cookies = done.headers.get_list("set-cookie")
        (kept,) = [one for one in cookies if one.startswith("candor_session=")]
        told = {part.strip().lower() for part in kept.split(";")[1:]}
        assert told >= {"httponly", "samesite=strict", "path=/", "max-age=43200"}
        assert await browser.read("/session") == {
            "user": "ada",
            "role": "user",
            "signed_in_by": "session",
        }
        made = await browser.post("/new-conversation", json={}, headers=OWN)
        assert made.status_code == 201
        copied = {"Cookie": f"candor_session={browser.cookies['candor_session']}"}
        assert (await browser.post("/auth/sign-out", headers=OWN)).status_code == 204
        assert "candor_session" not in browser.cookies
        stranger = await stage.client().get("/conversations", headers=copied)
        assert_error(stranger, 401, "unauthorised")
        entries = await accounts_of(stage).audit.page(limit=9)
        assert [(one.actor, one.action) for one in reversed(entries)] == [
            ("provider:ada", "user.added"),
            ("ada", "sign_in.done"),
            ("ada", "sign_out"),
        ]


def changing(**changed: Any) -> Callable[[Claims], Claims]:
    return lambda claims: {
        key: one for key, one in {**claims, **changed}.items() if one is not None
    }


WRONG: dict[str, dict[str, Any]] = {
    "another issuer": {"change": changing(iss="https://evil.example.org")},
    "no issuer": {"change": changing(iss=None)},
    "another audience": {"change": changing(aud="other")},
    "another audience and us as the party": {"change": changing(aud="other", azp="candor")},
    "no audience": {"change": changing(aud=None)},
    "us and another party": {"change": changing(aud=["candor", "other"], azp="other")},
    "another nonce": {"change": changing(nonce="other")},
    "no nonce": {"change": changing(nonce=None)},
    "expired": {"change": in_the_past},
    "no expiry": {"change": changing(exp=None)},
    "not yet": {"change": changing(iat=4_000_000_000, nbf=4_000_000_000)},
    "no subject": {"change": changing(sub=None)},
    "another key": {"sign": sign_with_another_key},
    "unsigned": {"sign": sign_not_at_all},
    "unsigned as announced": {
        "sign": sign_not_at_all,
        "metadata": {"id_token_signing_alg_values_supported": ["none", "RS256"]},
    },
    "the public key as a secret": {
        "sign": sign_with_the_public_key_as_secret,
        "metadata": {"id_token_signing_alg_values_supported": ["HS256", "RS256"]},
    },
    "no identity": {"sends_identity": False},
    "the name of nobody": {"change": changing(sub="../etc")},
    "the local user": {"change": changing(sub="local")},
    "a number": {"change": changing(sub=7)},
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_what_is_not_exactly_right_is_refused(
    tmp_path: Path, provider: Provider, wrong: str
) -> None:
    async with signing(tmp_path, provider) as stage:
        for name, value in WRONG[wrong].items():
            setattr(provider, name, value)
        browser, back = await comes_back(stage, provider)
        await refused(stage, await browser.get(back))
        assert await accounts_of(stage).users.listed() == []
        assert_error(await browser.get("/conversations"), 401, "unauthorised")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"iss": "https://evil.example.org"}, "InvalidClaimError: iss"),
        ({"aud": "secret-other"}, "InvalidClaimError: aud"),
        ({"nonce": "secret-other"}, "InvalidClaimError: nonce"),
        ({"nbf": 4_000_000_000}, "InvalidClaimError: nbf"),
        ({"iat": 4_000_000_000}, "InvalidClaimError: iat"),
        ({"sub": None}, "MissingClaimError: sub"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
async def test_the_audit_log_names_the_claim_that_is_wrong(
    tmp_path: Path, provider: Provider, changed: dict[str, Any], reason: str
) -> None:
    async with signing(tmp_path, provider) as stage:
        provider.change = changing(**changed)
        browser, back = await comes_back(stage, provider)
        await refused(stage, await browser.get(back))
        (entry,) = await accounts_of(stage).audit.page(limit=9)
        assert entry.details == {"reason": reason}


async def test_a_sign_in_comes_back_once_to_the_browser_that_began_it(
    tmp_path: Path, provider: Provider
) -> None:
    async with signing(tmp_path, provider) as stage:
        browser, back = await comes_back(stage, provider)
        stranger, _ = await comes_back(stage, provider, "bob")
        for wrong in (stage.client(), stranger):  # a link that somebody sends to another
            await refused(stage, await wrong.get(back))
        for changed in ("state=forged", "state="):
            state = f"state={parse_qs(urlsplit(back).query)['state'][0]}"
            await refused(stage, await browser.get(back.replace(state, changed)))
        cookie = {"Cookie": f"candor_sign_in={browser.cookies['candor_sign_in']}"}
        assert (await browser.get(back)).status_code == 303
        await refused(stage, await stage.client().get(back, headers=cookie))
        assert len(provider.exchanges) == 1


async def test_a_sign_in_that_took_too_long_or_was_denied_is_refused(
    tmp_path: Path, provider: Provider
) -> None:
    async with signing(tmp_path, provider) as stage:
        browser, back = await comes_back(stage, provider)
        await stage.database.execute("UPDATE sign_ins SET expires_at = '2026-01-01T00:00:00.000Z'")
        await refused(stage, await browser.get(back))
        begun = await browser.get("/auth/sign-in")
        back = await provider.sign_in(begun.headers["location"], "ada", deny=True)
        state = parse_qs(urlsplit(begun.headers["location"]).query)["state"][0]
        denied = f"{back}&state={state}" if "state=" not in back else back
        await refused(stage, await browser.get(denied))
        browser, back = await comes_back(stage, provider)
        await refused(stage, await browser.get(f"{back}&iss=https://evil.example.org"))


async def test_keys_of_the_provider_count_as_they_are_published_now(
    tmp_path: Path, provider: Provider
) -> None:
    async with signing(tmp_path, provider) as stage:
        await sign_in(stage, provider)
        provider.key = old = new_key()
        await sign_in(stage, provider)
        provider.key = new_key()
        provider.sign = lambda claims, _key: sign_rightly(claims, old)
        browser, back = await comes_back(stage, provider)
        await refused(stage, await browser.get(back))


async def test_a_provider_that_is_down_signs_nobody_in_and_ends_no_session(
    tmp_path: Path, provider: Provider
) -> None:
    async with signing(tmp_path, provider) as stage:
        signed_in = await sign_in(stage, provider)
        browser, back = await comes_back(stage, provider)
        provider.is_broken = True
        for path in (back, "/auth/sign-in"):
            error = assert_error(await browser.get(path), 503, "provider_unavailable")
            assert error["retryable"] is True
        assert (await signed_in.get("/conversations")).is_success
        provider.is_broken = False
        provider.metadata = {"issuer": "https://evil.example.org"}
        assert_error(await browser.get("/auth/sign-in"), 401, "sign_in_refused")
    async with signing(tmp_path / "other", replace(provider, url="http://localhost:9")) as stage:
        answer = await stage.client().get("/auth/sign-in")
        assert_error(answer, 503, "provider_unavailable")


async def test_a_group_of_the_provider_makes_administrators(
    tmp_path: Path, provider: Provider
) -> None:
    groups = {"oidc_admin_group": "ops", "oidc_groups_claim": "teams"}
    async with signing(tmp_path, provider, **groups) as stage:
        for teams, status in ((["all"], 403), (["all", "ops"], 200), ("ops", 403), (None, 403)):
            provider.user = {"teams": teams}
            browser = await sign_in(stage, provider)
            assert (await browser.get("/audit")).status_code == status, teams
    async with signing(tmp_path / "by_command", provider) as stage:
        await sign_in(stage, provider)
        await accounts_of(stage).users.set_role(UserId("ada"), "admin", act())
        browser = await sign_in(stage, provider)  # the provider says nothing of roles
        assert (await browser.get("/audit")).status_code == 200


async def test_an_address_is_a_name_only_if_the_provider_verified_it(
    tmp_path: Path, provider: Provider
) -> None:
    async with signing(tmp_path, provider, oidc_user_claim="email") as stage:
        for verified in (None, False, "true"):
            provider.user = {"email": "ada@example.org", "email_verified": verified}
            browser, back = await comes_back(stage, provider)
            await refused(stage, await browser.get(back))
        provider.user["email_verified"] = True
        browser = await sign_in(stage, provider)
        assert (await browser.read("/session"))["user"] == "ada@example.org"


async def test_what_the_identity_lacks_is_asked_of_the_same_user_alone(
    tmp_path: Path, provider: Provider
) -> None:
    chosen = {"oidc_user_claim": "email", "oidc_admin_group": "ops"}
    async with signing(tmp_path, provider, **chosen) as stage:
        provider.change = changing(email=None)
        provider.further = {"email": "ada@x.org", "email_verified": True, "groups": ["ops"]}
        browser = await sign_in(stage, provider)
        told = await browser.read("/session")
        assert (told["user"], told["role"]) == ("ada@x.org", "admin")
        provider.change = changing(email="bob@x.org", groups=[])  # what is signed goes over it
        assert (await (await sign_in(stage, provider)).read("/session"))["user"] == "bob@x.org"
        provider.further["sub"] = "other"
        browser, back = await comes_back(stage, provider)
        await refused(stage, await browser.get(back))


async def test_a_disabled_user_has_no_session_and_gets_none(
    tmp_path: Path, provider: Provider
) -> None:
    async with signing(tmp_path, provider) as stage:
        browser = await sign_in(stage, provider)
        await accounts_of(stage).users.set_disabled(UserId("ada"), act(), is_disabled=True)
        assert_error(await browser.get("/conversations"), 401, "unauthorised")
        again, back = await comes_back(stage, provider)
        await refused(stage, await again.get(back))


async def test_only_the_own_page_uses_the_session(tmp_path: Path, provider: Provider) -> None:
    listed = "https://listed.example.org"
    async with signing(tmp_path, provider, allowed_origins=(listed,)) as stage:
        browser = await sign_in(stage, provider)

        async def makes(**headers: str) -> int:
            sent = {name.replace("_", "-"): one for name, one in headers.items()}
            made = await browser.post("/new-conversation", json={}, headers=sent)
            return int(made.status_code)

        assert await makes(Origin=HERE) == 201
        assert await makes(Sec_Fetch_Site="same-origin") == 201
        assert await makes() == 403  # a browser tells where it comes from
        for wrong in ("https://evil.example.org", listed, "null"):
            assert await makes(Origin=wrong) == 403
        assert await makes(Sec_Fetch_Site="cross-site") == 403
        read = await browser.get("/conversations", headers={"Origin": listed})
        assert read.status_code == 403


async def test_a_session_ends_in_time(tmp_path: Path, provider: Provider) -> None:
    async with signing(tmp_path, provider) as stage:
        now, sessions = utc_now(), accounts_of(stage).sessions
        await accounts_of(stage).users.add(User(id=UserId("ada"), created_at=now), act())
        ada = {"user_id": UserId("ada"), "created_at": now}
        for secret, hours, status in (("old", -1, 401), ("new", 1, 200)):
            one = Session(id=f"ses_{secret}", expires_at=now + timedelta(hours=hours), **ada)  # type: ignore[arg-type]
            await sessions.start(one, digest_of(secret), act())
            cookie = {"Cookie": f"candor_session={secret}"}
            answer = await stage.client().get("/conversations", headers=cookie)
            assert answer.status_code == status


async def test_an_open_stream_ends_with_its_session(tmp_path: Path, provider: Provider) -> None:
    async with signing(tmp_path, provider, on_port=True) as stage:
        now, accounts = utc_now(), accounts_of(stage)
        await accounts.users.add(User(id=UserId("ada"), created_at=now), act())
        one = Session(
            id="ses_a", user_id=UserId("ada"), created_at=now, expires_at=now + timedelta(hours=1)
        )
        await accounts.sessions.start(one, digest_of("hush"), act())
        ada = stage.client()
        ada.headers.update({"Cookie": "candor_session=hush", "Origin": stage.base_url})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(accounts.watch)
            async with streaming(ada, HOLD) as stream:
                await stream.until("text.delta")
                await accounts.sessions.end(digest_of("hush"), act())
                with anyio.fail_after(LIMIT_S):
                    assert "turn.completed" not in [event.type for event in await stream.rest()]
            tasks.cancel_scope.cancel()


async def test_over_tls_the_cookies_belong_to_this_host_alone(
    tmp_path: Path, provider: Provider
) -> None:
    public = {"public_url": "https://chat.example.org/c", "allowed_hosts": ("chat.example.org",)}
    async with signing(tmp_path, provider, **public) as stage:
        begun = await stage.client().get("/auth/sign-in", headers={"Host": "chat.example.org"})
        asked = parse_qs(urlsplit(begun.headers["location"]).query)
        assert asked["redirect_uri"] == ["https://chat.example.org/c/auth/callback"]
        kept = begun.headers["set-cookie"]
        assert kept.startswith("__Host-candor_sign_in=")
        told = {part.strip().lower() for part in kept.split(";")[1:]}
        assert told >= {"secure", "httponly", "samesite=lax", "path=/"}


async def test_sign_ins_are_limited_by_address(tmp_path: Path, provider: Provider) -> None:
    async with signing(tmp_path, provider) as stage:
        browser = stage.client()
        while (answer := await browser.get("/auth/sign-in")).status_code == 303:
            pass
        error = assert_error(answer, 429, "too_many_attempts")
        assert error["retryable"], "unlike an unknown token, a sign-in is taken a moment later"
        assert int(answer.headers["retry-after"]) == error["details"]["retry_after_s"] > 0


async def test_refused_sign_ins_fill_no_log_and_keep_nobody_out(
    tmp_path: Path, provider: Provider
) -> None:
    async with signing(tmp_path, provider) as stage:
        stranger = stage.client()
        for _ in range(50):
            assert_error(await stranger.get("/auth/callback"), 401, "sign_in_refused")
        entries = await accounts_of(stage).audit.page(limit=99)
        assert 10 <= len(entries) < 50
        await sign_in(stage, provider)


async def test_without_a_provider_there_is_no_sign_in(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for path in ("/auth/sign-in", "/auth/callback"):
            assert_error(await client.get(path), 404, "not_found")
        assert (await client.post("/auth/sign-out")).status_code == 204
        told = {"user": "local", "role": "admin", "signed_in_by": "nothing"}
        assert await client.read("/session") == told


def test_half_a_provider_or_one_without_tls_is_a_mistake() -> None:
    whole: dict[str, Any] = {
        "oidc_issuer": "https://sso.example.org",
        "oidc_client_id": "candor",
        "public_url": "https://chat.example.org",
        "users": "on",
    }
    assert check_exposure(Settings(**whole)) is None
    for missing in ("oidc_client_id", "public_url", "users"):
        half = {key: one for key, one in whole.items() if key != missing}
        with pytest.raises(StartError, match="CANDOR_OIDC_ISSUER needs"):
            check_exposure(Settings(**half))
    for name in ("oidc_issuer", "public_url"):
        with pytest.raises(StartError, match="must begin with https"):
            check_exposure(Settings(**{**whole, name: "http://chat.example.org"}))
