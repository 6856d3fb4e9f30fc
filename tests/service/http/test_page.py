"""The chat page and its files."""

from pathlib import Path

from gateway.http.routes.page import WEB_DIR
from tests.service.http.stage import assert_error, staged


async def test_the_page_is_served_without_a_token(tmp_path: Path) -> None:
    async with staged(tmp_path, users=("ada",)) as stage:
        answer = await stage.client().get("/")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.content == (WEB_DIR / "index.html").read_bytes()


async def test_every_file_of_the_page_is_served_by_a_type_that_browsers_take(
    tmp_path: Path,
) -> None:
    types = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    async with staged(tmp_path) as stage:
        client = stage.client()
        files = [path for path in (WEB_DIR / "static").rglob("*") if path.suffix in types]
        assert {file.suffix for file in files} == set(types)
        for file in files:
            answer = await client.get("/" + file.relative_to(WEB_DIR).as_posix())
            assert answer.status_code == 200
            assert answer.headers["content-type"].split(";")[0] == types[file.suffix]
            assert answer.headers["cache-control"] == "no-cache"


async def test_a_file_that_is_known_is_not_sent_again(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        client = stage.client()
        etag = (await client.get("/")).headers["etag"]
        for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            answer = await client.get("/", headers={"If-None-Match": known})
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["etag"] == etag
        other = await client.get("/", headers={"If-None-Match": '"other"'})
        assert other.status_code == 200


async def test_head_tells_of_the_page_without_sending_it(tmp_path: Path) -> None:
    async with staged(tmp_path, on_port=True) as stage:
        answer = await stage.client().head("/")
        assert (answer.status_code, answer.content) == (200, b"")
        assert int(answer.headers["content-length"]) > 0


UNLISTED = [
    *("/static/", "/static/nope.js", "/static/%2e%2e/index.html", "/static/..%2findex.html"),
    *("/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/vendor"),
    *("/static/..%5cindex.html", "/static/main.js%00", "/index.html"),
]


async def test_a_name_that_is_not_listed_is_not_found(tmp_path: Path) -> None:
    async with staged(tmp_path) as stage:
        for path in UNLISTED:
            assert_error(await stage.client().get(path), 404, "not_found")
