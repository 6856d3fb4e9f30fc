"""The chat page and its files."""

import gzip
import json
import re
from hashlib import sha256
from pathlib import Path

from gateway.http.page_files import PageFiles
from gateway.http.routes.page import WEB_DIR
from tests.service.http.stage import assert_error, one_client


async def test_every_file_of_the_page_is_served_by_a_type_that_browsers_take(
    tmp_path: Path,
) -> None:
    types = {
        ".js": "text/javascript",
        ".css": "text/css",
        ".svg": "image/svg+xml",
        ".png": "image/png",
        ".webmanifest": "application/manifest+json",
    }
    async with one_client(tmp_path) as client:
        files = [path for path in (WEB_DIR / "static").rglob("*") if path.suffix in types]
        assert {file.suffix for file in files} == set(types)
        for file in files:
            answer = await client.get("/" + file.relative_to(WEB_DIR).as_posix())
            assert answer.status_code == 200
            assert answer.headers["content-type"].split(";")[0] == types[file.suffix]
            assert answer.headers["cache-control"] == "no-cache"


async def test_what_the_page_loads_is_kept_until_its_version_changes(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        names = re.findall(r'(?:href|src)="(static/[^"]+)"', (await client.get("/")).text)
        # One script and one style sheet, the rest pictures: addresses relative to the page's.
        assert sorted(Path(name).suffix for name in names if "icon" not in name) == [
            *(".css", ".js", ".webmanifest")
        ]
        for name in names:
            is_manifest = name.endswith(".webmanifest")
            cached = (await client.get(f"/{name}")).headers["cache-control"]
            assert ("immutable" in cached) == (not is_manifest), name
        script = next(name for name in names if name.endswith(".js"))
        older = re.sub("/v-[0-9a-f]+/", "/v-0123/", script)
        assert (await client.get(f"/{older}")).headers["cache-control"] == "no-cache"


async def test_the_frame_of_diagrams_names_the_host_of_its_scripts(tmp_path: Path) -> None:
    """WebKit matches 'self' with nothing in a frame without an origin."""
    async with one_client(tmp_path) as client:
        answer = await client.get("/static/diagram/frame.html", headers={"Host": "localhost:8000"})
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self' http://localhost:8000 https://localhost:8000;" in policy


async def test_texts_are_sent_compressed_as_the_client_takes_them(tmp_path: Path) -> None:
    file = WEB_DIR / "static" / "bundle.css"
    plain, brotli = file.read_bytes(), file.with_name("bundle.css.br").read_bytes()
    async with one_client(tmp_path) as client:

        async def get(takes: str) -> tuple[str | None, bytes, str]:
            headers = {"Accept-Encoding": takes}
            async with client.stream("GET", "/static/bundle.css", headers=headers) as answer:
                raw = b"".join([part async for part in answer.aiter_raw()])
            return answer.headers.get("content-encoding"), raw, answer.headers["etag"]

        found = {
            takes: await get(takes) for takes in ("br, gzip", "gzip;q=0.5, br;q=0", "identity")
        }
    assert [found[takes][0] for takes in found] == ["br", "gzip", None]
    packed, zipped, sent = (raw for _, raw, _ in found.values())
    assert (packed, gzip.decompress(zipped), sent) == (brotli, plain, plain)
    assert len({etag for *_, etag in found.values()}) == 3


def test_the_bundle_is_current() -> None:
    """If not: `make page`."""
    told = json.loads((WEB_DIR / "static" / "bundle.json").read_text("utf-8"))
    written = {name: (WEB_DIR / "static" / name).read_bytes() for name in told["files"]}

    assert told["files"] == {name: sha256(data).hexdigest() for name, data in written.items()}
    assert PageFiles(WEB_DIR).is_bundled


def test_a_bundle_that_is_not_current_is_left_aside(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "index.html").write_text((WEB_DIR / "index.html").read_text("utf-8"), "utf-8")
    (tmp_path / "static" / "main.js").write_text("one", "utf-8")
    sources = PageFiles(tmp_path).sources
    (tmp_path / "static" / "bundle.json").write_text(json.dumps({"sources": sources}), "utf-8")

    def script() -> list[str]:
        file = PageFiles(tmp_path).get("index.html")
        assert file is not None
        return re.findall(r'src="static/v-[0-9a-f]+/(\w+\.js)"', file.content.decode())

    assert script() == ["bundle.js"]
    (tmp_path / "static" / "main.js").write_text("two", "utf-8")
    assert script() == ["main.js"]


async def test_a_file_that_is_known_is_not_sent_again(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        etag = (await client.get("/")).headers["etag"]
        for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            answer = await client.get("/", headers={"If-None-Match": known})
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["etag"] == etag
        other = await client.get("/", headers={"If-None-Match": '"other"'})
        assert other.status_code == 200


async def test_head_tells_of_the_page_without_sending_it(tmp_path: Path) -> None:
    async with one_client(tmp_path, on_port=True) as client:
        answer = await client.head("/")
        assert (answer.status_code, answer.content) == (200, b"")
        assert int(answer.headers["content-length"]) > 0


UNLISTED = [
    *("/static/", "/static/nope.js", "/static/%2e%2e/index.html", "/static/..%2findex.html"),
    *("/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/vendor"),
    *("/static/..%5cindex.html", "/static/main.js%00", "/index.html"),
]


async def test_a_name_that_is_not_listed_is_not_found(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for path in UNLISTED:
            assert_error(await client.get(path), 404, "not_found")
