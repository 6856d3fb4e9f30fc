"""What a web page elsewhere, or a name of theirs that points here, can make a browser send.

Each request of the list would do something if it came from our own page; none of them does
anything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.http.client import Client
from tests.service.http.stage import Json, Stage, assert_error, one_client, staged
from tests.service.http.test_connections import JSON, post
from tests.service.http.wired import raw
from tests.support.asgi import served

OWN = "127.0.0.1:8000"

EVIL_HOSTS = [
    # names of theirs, with ours in front, behind and in the middle
    *("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example"),
    *("127.0.0.1.nip.io", "evil-localhost", "localhostevil", "xlocalhost", "notlocalhost:8000"),
    *("localhost.localdomain", "127.0.0.1evil", "1127.0.0.1", "127.0.0.11", "127.0.0.1-evil"),
    *("www.localhost", "foo.localhost:8000", "localhost_", "local-host", "localhos"),
    # other spellings of the same number, and other numbers
    *("127.1", "127.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.000.000.001"),
    *("0.0.0.0", "0", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:2]"),
    *("127.0.0.2", "10.0.0.1", "169.254.169.254", "[fe80::1]", "[::1%25lo]", "[::1%lo]"),
    # nothing that is a host and a port
    *("localhost.", "127.0.0.1.", "[::1].", ".localhost", "localhost..", "-localhost"),
    *("", " ", ":8000", "localhost:80:80", "localhost:-1", "localhost:99999"),
    *("localhost:8000.evil.example", "localhost:evil", "localhost:0x50", "localhost:٨٠"),
    *("::1", "[::1", "::1]", "[]", "[::1]evil", "[::1]:80:80", "[localhost]", "[127.0.0.1]"),
    *("evil@localhost", "localhost@evil.example", "localhost:8000@evil.example"),
    *("localhost/evil.example", "localhost?evil", "localhost#evil", "localhost\\evil"),
    *("localhost,evil.example", "localhost evil.example", "localhost;evil", "localhost%00"),
    *("lоcalhost", "localhost。", "ⅼocalhost", "１２７.0.0.1", "xn--lcalhost-xgi"),
    *("http://localhost", "//localhost", "null", "*", "file:"),
]

EVIL_ORIGINS = [
    *("https://evil.example", "http://evil.example:8000", "http://localhost.evil.example:8000"),
    *("http://127.0.0.1.evil.example:8000", "http://evil-localhost:8000", "http://localhost.:8000"),
    *("http://localhost", "http://localhost:80", "https://localhost:8000.evil.example"),
    *("http://localhost:3000", "http://127.0.0.1:8001", "http://127.0.0.1", "https://127.0.0.1"),
    *("http://[::1]:8001", "http://[::1", "http://[::ffff:127.0.0.1]:8000", "http://0.0.0.0:8000"),
    *("null", "NULL", "", " ", "file://", "file:///", "file://localhost", "about:blank", "*"),
    *("chrome-extension://abcdefghijklmnop", "moz-extension://0123", "data:", "blob:http://x"),
    *("ftp://127.0.0.1:8000", "ws://127.0.0.1:8000", "javascript://127.0.0.1:8000"),
    *("//127.0.0.1:8000", "127.0.0.1:8000", "http:127.0.0.1:8000", "http:/127.0.0.1:8000"),
    *("http://evil.example@127.0.0.1:8000", "http://127.0.0.1:8000@evil.example"),
    *("http://127.0.0.1:8000/", "http://127.0.0.1:8000/x", "http://127.0.0.1:8000?x"),
    *("http://127.0.0.1:8000#x", "http://127.0.0.1:8000\\evil", "http://127.0.0.1:8000.evil"),
    *("http://127.0.0.1:8000, https://evil.example", "http://127.0.0.1:8000 https://evil.example"),
    *(
        "https://evil.example http://127.0.0.1:8000",
        "http://127.0.0.1:８000",
        "http://lоcalhost:8000",
    ),
]
EVIL_SITES = ["cross-site", "same-site", "Cross-Site", "", "none, cross-site", "null", "*"]

SIMPLE_TYPES = [
    *("text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded"),
    *("multipart/form-data; boundary=x", "text/plain; application/json", "text/json"),
    *("application/json+evil", "application/jsonp", "json", "*/*", "application/json, text/plain"),
]


OWN_HOST, OWN_PAGE = (b"Host", OWN.encode()), (b"Origin", f"http://{OWN}".encode())
EVIL_PAGE = (b"Origin", b"https://evil.example")
Headers = Sequence[tuple[bytes, bytes]]


def hosts() -> Iterator[Headers]:
    yield from ([(b"Host", host.encode())] for host in EVIL_HOSTS)
    yield [OWN_HOST, (b"Host", b"evil.example")]
    yield [OWN_HOST, OWN_HOST]


def pages() -> Iterator[Headers]:
    more = [(b"Sec-Fetch-Site", b"same-origin"), (b"Referer", f"http://{OWN}/".encode())]
    for origin in EVIL_ORIGINS:
        yield [(b"Origin", origin.encode())]
        yield [(b"Origin", origin.encode()), *more]  # what else the browser says does not help it
    yield from ([OWN_PAGE, EVIL_PAGE], [EVIL_PAGE, OWN_PAGE])
    for site in EVIL_SITES:
        yield [OWN_PAGE, (b"Sec-Fetch-Site", site.encode())]  # of our name, without TLS
        yield [(b"Sec-Fetch-Site", site.encode())]
        yield [(b"Sec-Fetch-Site", b"none"), (b"Sec-Fetch-Site", site.encode())]


@pytest.mark.parametrize("given", [hosts, pages], ids=lambda given: given.__name__)
async def test_a_host_or_page_that_is_not_ours_causes_nothing(
    tmp_path: Path, given: Callable[[], Iterator[Headers]]
) -> None:
    async with staged(tmp_path) as stage:
        await _assert_cause_nothing(stage, list(given()), 403, "forbidden")
        for headers in hosts():
            assert_error(await stage.client().get("/", headers=headers), 403, "forbidden")


async def test_a_type_that_needs_no_leave_causes_nothing(tmp_path: Path) -> None:
    """An old browser's form names no page; but it cannot call what it sends JSON."""
    async with staged(tmp_path) as stage:
        given = [[(b"Content-Type", kind.encode())] for kind in SIMPLE_TYPES]
        await _assert_cause_nothing(stage, given, 422, "invalid_request")


async def test_json_without_its_name_causes_nothing(tmp_path: Path) -> None:
    """A page can send a body of no type at all, and is not asked first."""
    async with staged(tmp_path, on_port=True) as stage:
        body = b'{"message": "hi"}'
        answer = await stage.client().post("/chat", content=body)
        assert_error(answer, 422, "invalid_request")
        assert (await stage.client().read("/conversations"))["conversations"] == []
    async with staged(tmp_path) as stage, served(stage.app) as port, raw(port) as client:
        twice = b"Content-Type: text/plain"
        length = b"Content-Length: %d" % len(body)
        await client.send(post(b"/chat", JSON, twice, length, body=body))
        await client.expect(422)


async def test_no_answer_lets_another_page_read_it(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        asked = {"Access-Control-Request-Method": "POST", "Origin": "https://evil.example"}
        answers = [
            await client.options("/chat", headers=asked),
            await client.options("/chat", headers={**asked, "Origin": f"http://{OWN}"}),
            await client.get("/conversations", headers={"Origin": f"http://{OWN}"}),
            await client.get("/conversations", headers={"Origin": "https://evil.example"}),
        ]
        for answer in answers:
            assert not [name for name in answer.headers if name.startswith("access-control")]
        assert [answer.status_code for answer in answers] == [403, 405, 200, 403]


async def test_ones_own_page_and_a_terminal_are_let_through(tmp_path: Path) -> None:
    async with one_client(tmp_path) as client:
        for headers in (
            {},
            {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{OWN}"},
            {"Sec-Fetch-Site": "none"},
            {"Content-Type": "application/json"},
            {"Host": "[::1]:8000", "Origin": "http://[::1]:8000"},
            {"Host": "LocalHost:8000", "Origin": "http://localhost:8000"},
        ):
            answer = await client.post("/new-conversation", headers=headers)
            assert answer.status_code == 201, headers


async def test_a_listed_page_may_ask_and_read_and_a_listed_name_is_ours(tmp_path: Path) -> None:
    page, name = "https://chat.example.org", "host.docker.internal"
    settings = {"allowed_origins": (page,), "allowed_hosts": (name, "chat")}
    async with one_client(tmp_path, **settings) as client:
        asked = {"Access-Control-Request-Method": "POST", "Origin": page}
        asked["Access-Control-Request-Headers"] = "authorization,x-stainless-retry-count"
        leave = await client.options("/chat", headers=asked)
        assert leave.status_code == 200
        assert "x-stainless-retry-count" in leave.headers["access-control-allow-headers"]
        missing = await client.get("/conversations/cnv_none", headers={"Origin": page})
        assert_error(missing, 404, "not_found")
        for answer in (leave, missing):
            assert answer.headers["access-control-allow-origin"] == page
            assert "access-control-allow-credentials" not in answer.headers
        for host in (name, f"{name}:8000", "CHAT"):
            answer = await client.post("/new-conversation", headers={"Host": host, "Origin": page})
            assert answer.status_code == 201, host
        for headers in (
            {"Origin": f"{page}.evil"},
            {"Origin": "http://chat.example.org"},
            {"Host": "evil.example"},
            {"Host": f"x.{name}"},
            {"Host": "evil.example", "Origin": page},
        ):
            assert_error(await client.post("/new-conversation", headers=headers), 403, "forbidden")
            refused = await client.options("/chat", headers={**asked, **headers})
            if headers.get("Origin", page) != page:
                assert_error(refused, 403, "forbidden")


async def _assert_cause_nothing(
    stage: Stage, given: Sequence[Headers], status: int, code: str
) -> None:
    client = stage.client()
    done = await client.say("before")
    before = await _state(client, done)
    place = f"/conversations/{done['conversation_id']}"
    requests: list[tuple[str, str, Mapping[str, Any] | None]] = [
        ("POST", "/chat", {"message": "evil"}),
        ("POST", "/chat/stream", {"message": "evil", "conversation_id": done["conversation_id"]}),
        ("POST", "/new-conversation", None),
        ("POST", "/new-conversation", {"conversation_id": done["conversation_id"]}),
        ("POST", f"{place}/interrupt", None),
        ("POST", f"{place}/fork", {"turn_id": done["turn_id"]}),
        ("PATCH", place, {"title": "evil"}),
        ("DELETE", f"{place}/queue/{done['turn_id']}", None),
        ("DELETE", place, None),
        ("POST", "/approvals/apr_x", {"decision": "allow"}),
    ]
    for number, extra in enumerate(given):
        first = number % len(requests)  # each is tried with two of them, and all are tried
        for method, path, body in (requests[first], requests[first - 1]):
            headers = list(extra)
            if not any(name == b"Content-Type" for name, _ in headers) and body is not None:
                headers.append((b"Content-Type", b"application/json"))
            content = None if body is None else httpx.Request("POST", "http://x", json=body).content
            answer = await client.request(method, path, headers=headers, content=content)
            assert_error(answer, status, code)
    assert await _state(client, done) == before


async def _state(client: Client, done: Json) -> list[Any]:
    place = f"/conversations/{done['conversation_id']}"
    answers = [await client.get(value) for value in ("/conversations", place, f"{place}/messages")]
    return [answer.json() for answer in answers]
