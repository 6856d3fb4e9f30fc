"""Every route refuses a host, a page, a caller or an id that is not ours."""

from pathlib import Path

import pytest

from tests.service.http.every_route import OPEN, ROUTES, UNKNOWN, WITH_IDS, send
from tests.service.http.stage import assert_error, staged

FOREIGN_HOSTS = [
    "evil.example",
    "127.0.0.1.evil",
    "localhost.",
    "localhost.evil:8000",
    "evil:8000@localhost",
    "[::1",
    "[::1]evil",
    "127.0.0.1:99999",
    "192.168.1.1",
    "",
]
OWN_HOSTS = ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.0.0.1:", "[::1]", "[::1]:9"]


async def test_every_route_refuses_a_host_that_is_not_ours(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for method, template in ROUTES:
            for host in FOREIGN_HOSTS:
                answer = await send(client, method, template, UNKNOWN, headers={"Host": host})
                assert_error(answer, 403, "forbidden")


@pytest.mark.parametrize("host", OWN_HOSTS)
async def test_our_own_names_are_taken_with_any_port(tmp_path: Path, host: str) -> None:
    async with staged(tmp_path) as stage:
        answer = await stage.client().get("/conversations", headers={"Host": host})
        assert answer.status_code == 200


FOREIGN_PAGES = [
    "https://evil.example",
    "http://localhost.evil:8000",
    "http://127.0.0.1:3000",
    "http://localhost",
    "file://",
    "null",
    "",
    "127.0.0.1:8000",
    "http://127.0.0.1:8000/path",
    "ftp://127.0.0.1:8000",
]


async def test_every_route_refuses_a_page_that_is_not_ours(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for method, template in ROUTES:
            for origin in FOREIGN_PAGES:
                answer = await send(client, method, template, UNKNOWN, headers={"Origin": origin})
                assert_error(answer, 403, "forbidden")


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8000", "http://localhost:8000"])
async def test_our_own_page_may_send_messages(tmp_path: Path, origin: str) -> None:
    async with staged(tmp_path) as stage:
        body = {"message": "hi"}
        answer = await stage.client().post("/chat", json=body, headers={"Origin": origin})
        assert answer.status_code == 200


async def test_what_changes_something_is_refused_to_another_site_that_names_no_page(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for method, template in ROUTES:
            for site in ("cross-site", "same-site", "nonsense"):
                headers = {"Sec-Fetch-Site": site}
                if method == "GET":
                    if not template.endswith("/events"):
                        answer = await send(client, method, template, UNKNOWN, headers=headers)
                        assert answer.status_code != 403
                else:
                    answer = await send(client, method, template, UNKNOWN, headers=headers)
                    assert_error(answer, 403, "forbidden")
        for site in ("same-origin", "none"):
            headers = {"Sec-Fetch-Site": site}
            assert (await client.post("/new-conversation", headers=headers)).status_code == 201


async def test_every_route_but_the_page_and_its_pulse_needs_a_token(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",)) as stage:
        given = [
            None,
            "",
            "Bearer",
            "Bearer wrong",
            f"Basic {stage.tokens['ada']}",
            f"Bearer {stage.tokens['ada']}x",
            stage.tokens["ada"],
        ]
        client = stage.client()
        for method, template in ROUTES:
            for one in given:
                headers = {} if one is None else {"Authorization": one}
                answer = await send(client, method, template, UNKNOWN, headers=headers)
                if template in OPEN:
                    assert answer.status_code != 401
                elif answer.status_code == 429:  # one more of many unknown tokens
                    assert_error(answer, 429, "too_many_attempts")
                    assert one not in {None, "", "Bearer"}
                else:
                    assert_error(answer, 401, "unauthorised")
                    assert answer.headers["www-authenticate"] == "Bearer"
        assert_error(await client.get("/no-such-route"), 401, "unauthorised")


async def test_no_token_is_asked_for_before_the_size_of_a_body_is_known(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",), max_body_bytes=1024) as stage:
        answer = await stage.client().post("/chat", content=b"x" * 1025)
        assert_error(answer, 413, "body_too_large")


async def test_an_id_that_never_was_is_not_found(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        for method, template in WITH_IDS:
            assert_error(await send(stage.client(), method, template, UNKNOWN), 404, "not_found")


async def test_what_is_another_users_is_not_found_and_stays_as_it_is(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada", "bob")) as stage:
        ada, bob = stage.client("ada"), stage.client("bob")
        done = (await ada.post("/chat", json={"message": "mine"})).json()
        ids = {**UNKNOWN, **{key: done[key] for key in ("conversation_id", "turn_id", "log_file")}}
        before = (await ada.get(f"/conversations/{ids['conversation_id']}")).json()
        for method, template in WITH_IDS:
            assert_error(await send(bob, method, template, ids), 404, "not_found")
        for path in ("/chat", "/chat/stream"):
            body = {"message": "yours", "conversation_id": ids["conversation_id"]}
            assert_error(await bob.post(path, json=body), 404, "not_found")
        leaving = {"conversation_id": ids["conversation_id"]}
        assert_error(await bob.post("/new-conversation", json=leaving), 404, "not_found")
        for path in ("/approvals", "/logs"):
            assert_error(await bob.get(path, params=leaving), 404, "not_found")
        assert (await bob.get("/conversations")).json()["conversations"] == []
        assert (await ada.get(f"/conversations/{ids['conversation_id']}")).json() == before
