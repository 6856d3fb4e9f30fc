"""Users whom a proxy names in a header: believed from listed addresses, and from nowhere else."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.errors import StartError
from gateway.http.auth import check_exposure
from gateway.settings import Settings
from tests.service.http.stage import Stage, assert_error, staged

PROXY, STRANGER = "10.1.2.3", "10.2.0.1"
HEADER = "X-Forwarded-Email"
SIGN_ON: dict[str, Any] = {
    "identity_header": HEADER.lower(),
    "identity_proxies": ("10.1.0.0/16", "fd00::7"),
}


def caller(stage: Stage, address: str, *users: str, **headers: str) -> httpx.AsyncClient:
    """A client at an address, whose requests name users."""
    client = httpx.AsyncClient(
        base_url=stage.base_url,
        transport=httpx.ASGITransport(stage.app, client=(address, 4711)),
        headers=[*((HEADER, user) for user in users), *headers.items()],
    )
    stage.clients.append(client)
    return client


async def test_each_user_of_the_proxy_has_conversations_of_their_own(tmp_path: Path) -> None:
    async with staged(tmp_path, **SIGN_ON) as stage:
        ada = caller(stage, PROXY, "ada@example.org")
        made = await ada.post("/new-conversation", json={"title": "Ada's"})
        assert made.status_code == 201
        for address, user, seen in (
            (PROXY, "ada@example.org", ["Ada's"]),
            ("fd00::7", "ada@example.org", ["Ada's"]),
            ("::ffff:10.1.2.3", "ada@example.org", ["Ada's"]),
            (PROXY, "Ada@example.org", []),
            (PROXY, "bob", []),
        ):
            listed = await caller(stage, address, user).get("/conversations")
            assert [one["title"] for one in listed.json()["conversations"]] == seen, (address, user)


async def test_nobody_else_is_believed(tmp_path: Path) -> None:
    async with staged(tmp_path, **SIGN_ON) as stage:
        for address, users in (
            (STRANGER, ["ada"]),
            ("127.0.0.1", ["ada"]),
            ("testclient", ["ada"]),
            (PROXY, []),
            (PROXY, ["ada", "bob"]),
            (PROXY, [""]),
            (PROXY, ["../ada"]),
            (PROXY, ["ada bob"]),
            (PROXY, ["a" * 129]),
        ):
            answer = await caller(stage, address, *users).get("/conversations")
            assert_error(answer, 401, "unauthorised")
        assert (await caller(stage, STRANGER).get("/healthz")).status_code == 200


@pytest.mark.parametrize("title", ["The operator's own", "管理员自己的"])
async def test_nobody_of_the_proxy_is_the_user_of_a_server_without_sign_in(
    tmp_path: Path, title: str
) -> None:
    async with staged(tmp_path) as stage:
        made = await stage.client().post("/new-conversation", json={"title": title})
        place = f"/conversations/{made.json()['conversation_id']}"
    async with staged(tmp_path, **SIGN_ON) as stage:
        for path in ("/conversations", place, "/users/me"):
            assert_error(await caller(stage, PROXY, "local").get(path), 401, "unauthorised")
        assert_error(await caller(stage, PROXY, "Local").get(place), 404, "not_found")


async def test_tokens_serve_beside_the_proxy(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("bob",), **SIGN_ON) as stage:
        token = {"Authorization": f"Bearer {stage.tokens['bob']}"}
        assert (await caller(stage, STRANGER, **token).get("/conversations")).status_code == 200
        assert (
            await caller(stage, PROXY, "ada", **token).post("/new-conversation", json={})
        ).is_success
        listed = await caller(stage, STRANGER, "ada", **token).get("/conversations")
        assert listed.json()["conversations"] == []  # bob's: the stranger's header is not believed
        assert_error(
            await caller(stage, STRANGER, "ada").get("/conversations"), 401, "unauthorised"
        )


def test_half_of_the_setting_is_a_mistake_and_the_whole_opens_the_server() -> None:
    for half in ({"identity_header": "x-user"}, {"identity_proxies": ("10.0.0.1",)}):
        with pytest.raises(StartError, match="belong together"):
            check_exposure(Settings(**half))
    assert check_exposure(Settings(host="0.0.0.0", **SIGN_ON)) is None
    with pytest.raises(StartError, match="CANDOR_TOKENS_FILE"):
        check_exposure(Settings(host="0.0.0.0"))
