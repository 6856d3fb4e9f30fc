"""Every route refuses a host, a page or a caller that is not ours."""

from pathlib import Path

from tests.service.http.every_route import OPEN, ROUTES, UNKNOWN, WITH_IDS, send
from tests.service.http.stage import assert_error, staged

FOREIGN = [
    {"Host": "evil.example"},
    {"Host": "192.168.1.1"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
]
OWN_HOSTS = ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.0.0.1:", "[::1]", "[::1]:9"]


async def test_every_route_refuses_a_host_or_page_that_is_not_ours(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for method, template in ROUTES:
            for headers in FOREIGN:
                answer = await send(client, method, template, UNKNOWN, headers=headers)
                assert_error(answer, 403, "forbidden")
        for host in OWN_HOSTS:
            answer = await client.get("/conversations", headers={"Host": host})
            assert answer.status_code == 200


async def test_what_changes_something_is_refused_to_another_site_that_names_no_page(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        for method, template in ROUTES:
            headers = {"Sec-Fetch-Site": "cross-site"}
            if not template.endswith("/events"):
                answer = await send(client, method, template, UNKNOWN, headers=headers)
                assert (answer.status_code == 403) == (method != "GET"), template


async def test_every_route_but_the_page_and_its_pulse_needs_a_token(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",)) as stage:
        token = stage.tokens["ada"]
        given = [None, "", "Bearer", "Bearer wrong", f"Basic {token}", f"Bearer {token}x", token]
        client = stage.client()
        for method, template in ROUTES:
            for credentials in given:
                headers = {} if credentials is None else {"Authorization": credentials}
                answer = await send(client, method, template, UNKNOWN, headers=headers)
                if template in OPEN:
                    assert answer.status_code != 401
                elif answer.status_code == 429:  # one more of many unknown tokens
                    assert_error(answer, 429, "too_many_attempts")
                    assert credentials not in {None, "", "Bearer"}
                else:
                    assert_error(answer, 401, "unauthorised")
                    assert answer.headers["www-authenticate"] == "Bearer"
        assert_error(await client.get("/no-such-route"), 401, "unauthorised")
        twice = [("Authorization", f"Bearer {token}"), ("Authorization", "Bearer other")]
        assert_error(await client.get("/conversations", headers=twice), 401, "unauthorised")


async def test_no_token_is_asked_for_before_the_size_of_a_body_is_known(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",), max_body_bytes=1024) as stage:
        answer = await stage.client().post("/chat", content=b"x" * 1025)
        assert_error(answer, 413, "body_too_large")


async def test_an_id_that_never_was_is_not_found(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        for method, template in WITH_IDS:
            assert_error(await send(stage.client(), method, template, UNKNOWN), 404, "not_found")
