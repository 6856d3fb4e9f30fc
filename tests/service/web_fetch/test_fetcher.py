"""Fetching a page: which connections are made, what is followed, and what becomes of the text."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse

from gateway.web_fetch import fetcher
from gateway.web_fetch.errors import FetchRefused
from gateway.web_fetch.exchange import Exchange
from gateway.web_fetch.fetcher import MAX_PAGE_BYTES, Fetcher
from tests.service.web_fetch.pages import LOOPBACK, Web, page, web_with
from tests.support.loop_heartbeat import Heartbeat, most_s
from tests.support.relays import make_certificate, service


async def refused(asked: Fetcher, url: str) -> str:
    with pytest.raises(FetchRefused) as caught:
        await asked.fetch(url)
    return str(caught.value)


async def test_a_page_comes_as_markdown_from_the_address_that_was_checked() -> None:
    html = (
        '<nav><a href="/">Home</a></nav><main><h1>Herons</h1><p>They <b>wade</b>. '
        '<a href="../more?a=1">More</a><img src="data:image/png;base64,AAAA" alt="a heron"></p>'
        "<ul><li>grey</li></ul></main><script>alert(1)</script>"
    )
    async with web_with(lambda _: page(html)) as (web, seen):
        found = await web.fetcher().fetch("http://herons.org/a/b#part")
        assert found.url == "http://herons.org/a/b#part"
        assert found.is_whole
        assert found.text.splitlines() == [
            "# Herons",
            "",
            "They **wade**. [More](http://herons.org/more?a=1)a heron",
            "",
            "- grey",
        ]
        (request,) = seen.requests
        assert request.headers["host"] == "herons.org"
        assert not {"cookie", "referer", "authorization"} & {*request.headers}
        assert web.asked == [("herons.org", 80)]


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["169.254.169.254"],
        ["168.63.129.16"],
        ["100.100.100.200"],
        ["0.0.0.0"],
        ["::1"],
        ["fe80::1%eth0"],
        ["fd00:ec2::254"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["93.184.216.34", "127.0.0.1"],
        [],
    ],
)
async def test_a_name_that_leads_to_an_address_that_is_not_public_is_never_connected_to(
    addresses: list[str],
) -> None:
    async with web_with(lambda _: page("inside")) as (web, seen):
        web.names["herons.org"] = [addresses]
        strict = Fetcher(["*"], Exchange(resolve=web.resolve))
        told = await refused(strict, "http://herons.org/")
        assert told == "The host herons.org leads to an address that is not public."
        assert seen.requests == []


async def test_a_name_that_changes_its_address_after_the_check_is_not_asked_again() -> None:
    async with web_with(lambda _: page("first")) as (web, _):
        web.names["herons.org"] = [[LOOPBACK], ["10.0.0.1"]]
        assert "first" in (await web.fetcher().fetch("http://herons.org/")).text
        assert len(web.asked) == 1
        assert "not public" in await refused(web.fetcher(), "http://herons.org/")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("http://inside.org/", "The host inside.org leads to an address that is not public."),
        ("http://127.0.0.1/", "Only plain http and https addresses of public hosts"),
        ("http://localhost/", "Only plain http and https addresses of public hosts"),
        ("http://herons.org:8080/", "Only plain http and https addresses of public hosts"),
        ("http://user@herons.org/", "Only plain http and https addresses of public hosts"),
        ("file:///etc/passwd", "Only plain http and https addresses of public hosts"),
        ("http://other.org/", "The host other.org is not on the list of allowed hosts."),
        ("/again", "The page leads on more than 5 times."),
    ],
)
async def test_each_redirect_is_checked_like_the_first_address(target: str, said: str) -> None:
    def answer(_: Request) -> Response:
        return RedirectResponse(target)

    async with web_with(answer, "herons.org", "other.org") as (web, seen):
        web.names["inside.org"] = [["10.0.0.1"]]
        listing = web.fetcher("herons.org", "inside.org")
        assert (await refused(listing, "http://herons.org/")).startswith(said)
        assert {request.url.hostname for request in seen.requests} == {"herons.org"}
        assert len(seen.requests) == (6 if target == "/again" else 1)


async def test_a_redirect_to_a_listed_host_is_followed() -> None:
    def answer(request: Request) -> Response:
        is_first = request.url.hostname == "herons.org"
        return RedirectResponse("http://egrets.org/b") if is_first else page("Egrets wade, too.")

    async with web_with(answer, "herons.org", "egrets.org") as (web, _):
        found = await web.fetcher("herons.org", "egrets.org").fetch("http://herons.org/a")
        assert found.url == "http://egrets.org/b"
        assert "Egrets wade, too." in found.text


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        *((charset, "苍鹭") for charset in ("utf-8", "GB2312", "gbk", "gb18030")),
        *((charset, "サギ") for charset in ("Shift_JIS", "euc-jp", "iso-2022-jp", "ms932")),
        *((charset, "Héron") for charset in ("latin1", "ISO-8859-15", "windows-1252", "utf-16")),
        *((charset, "Цапля") for charset in ("koi8-r", "windows-1251", "iso-8859-5", "IBM866")),
        ("big5", "蒼鷺"),
        ("euc-kr", "왜가리"),
        ("macintosh", "Héron"),
    ],
)
async def test_text_is_read_in_the_character_set_that_it_is_told_to_be_in(
    charset: str, text: str
) -> None:
    response = Response(
        text.encode(charset), headers={"content-type": f"text/a; charset={charset}"}
    )
    async with web_with(lambda _: response) as (web, _):
        assert (await web.fetcher().fetch("http://herons.org/")).text == text


@pytest.mark.parametrize(
    "named",
    [
        *(f"={name}" for name in ("punycode", "idna", "undefined", "unicode_escape", "hex", "x")),
        "*=us-ascii''a%00b",
        "*=a%00b''utf-8",
    ],
)
async def test_a_name_of_no_character_set_passes_for_utf_8(named: str) -> None:
    """Python would take hours for a page in `punycode`, which holds up everybody."""
    page = "苍鹭-heron\\n-abc"
    response = Response(page.encode(), headers={"content-type": f"text/plain; charset{named}"})
    async with web_with(lambda _: response) as (web, _):
        assert (await web.fetcher().fetch("http://herons.org/")).text == page


@pytest.mark.parametrize("more", ['"' + ";" * 60_000, f"charset*{'9' * 60_000}=x"])
async def test_a_type_of_any_length_leaves_the_loop_free(more: str) -> None:
    """Python takes a quoted one of 90 KB apart in 17 s."""

    def answer(request: Request) -> Response:
        is_long = request.url.path == "/long"
        return Response("heron", headers={"content-type": f"text/plain;{more * is_long}"})

    heartbeat, bound_s = Heartbeat(), most_s()
    async with web_with(answer) as (web, _), anyio.create_task_group() as tasks:
        tasks.start_soon(heartbeat.run)
        fetcher = web.fetcher()
        await fetcher.fetch("http://herons.org/")
        await heartbeat.longest_s()
        assert (await fetcher.fetch("http://herons.org/long")).text == "heron"
        assert await heartbeat.longest_s() < bound_s
        tasks.cancel_scope.cancel()


async def test_a_page_of_which_links_make_a_hundred_times_as_much_text_is_refused() -> None:
    async with web_with(lambda _: page("<a href=a>a</a>" * 4_500)) as (web, _):
        told = await refused(web.fetcher(), f"http://herons.org/{'a' * 1_990}/")
    assert told == "The page cannot be read as text."


async def test_an_endless_page_is_read_up_to_its_limit() -> None:
    def endless(_: Request) -> Response:
        def chunks() -> Iterator[bytes]:
            while True:
                yield b"heron " * 10_000

        return StreamingResponse(chunks(), media_type="text/plain")

    async with web_with(endless) as (web, _):
        found = await web.fetcher().fetch("http://herons.org/")
        assert len(found.text) == MAX_PAGE_BYTES
        assert not found.is_whole


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (Response(b"\x89PNG", media_type="image/png"), "It is image/png, and only text is read."),
        (PlainTextResponse("No.", 404), "The server answered with the status 404."),
        (
            Response(b"x", headers={"content-encoding": "gzip"}),
            "The answer is compressed, which was not asked for.",
        ),
    ],
)
async def test_what_is_no_text_is_refused(response: Response, said: str) -> None:
    async with web_with(lambda _: response) as (web, _):
        assert await refused(web.fetcher(), "http://herons.org/") == said


async def test_a_text_is_read_in_its_character_set() -> None:
    async def fetched(answer: Response) -> str:
        async with web_with(lambda _: answer) as (web, _):
            return (await web.fetcher().fetch("http://herons.org/")).text

    latin = "Löffler".encode("latin-1")
    assert await fetched(Response(latin, media_type="text/plain; charset=latin-1")) == "Löffler"
    told = b'<meta charset="gbk"><p>' + "苍鹭".encode("gbk")
    assert await fetched(Response(told, media_type="text/html")) == "苍鹭"
    unknown = Response(b"heron", headers={"content-type": "text/plain; charset=nobodys"})
    assert await fetched(unknown) == "heron"


async def test_a_page_that_no_parser_gets_through_costs_nobody_anything() -> None:
    async with web_with(lambda _: page("<div>" * 30_000 + "heron")) as (web, _):
        assert "heron" in (await web.fetcher().fetch("http://herons.org/")).text


async def test_a_page_that_ends_its_converter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "_PROGRAM", "/no/such/program.py")

    async def told_of(text: str) -> str:
        async with web_with(lambda _: page(text)) as (web, _):
            return await refused(web.fetcher(), "http://herons.org/")

    for text in ("<p>heron</p>", "<p>heron</p>" * 100_000):  # also more than a pipe holds
        assert await told_of(text) == "The page cannot be read as text."


async def test_a_host_that_is_unknown_or_closed_is_said_so() -> None:
    async def drop(_: SocketStream) -> None:
        await anyio.lowlevel.checkpoint()

    async with service(drop) as url:
        web = Web(int(url.rpartition(":")[2]), {"herons.org": [[LOOPBACK]]})
        told = await refused(web.fetcher(), "http://herons.org/")
        assert told == "The connection failed, or the answer is not of HTTP."
    assert await refused(web.fetcher(), "http://herons.org/") == "herons.org cannot be reached."
    assert await refused(web.fetcher(), "http://egrets.org/") == "The host egrets.org is not found."


async def test_tls_is_verified_for_the_name_and_not_for_the_address(tmp_path: Path) -> None:
    cert, tls = await make_certificate(tmp_path, "herons.org")

    async def answer(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nheron"
        )

    trusted = ssl.create_default_context(cafile=cert)
    async with service(answer, tls) as url:
        port = int(url.rpartition(":")[2])
        web = Web(port, {name: [[LOOPBACK]] for name in ("herons.org", "egrets.org")})
        trusting = web.fetcher(trusted=trusted)
        assert (await trusting.fetch("https://herons.org/")).text == "heron"
        assert await refused(trusting, "https://egrets.org/") == "egrets.org cannot be reached."
        assert "cannot be reached" in await refused(web.fetcher(), "https://herons.org/")


async def test_a_page_does_not_lead_from_https_to_an_address_without_it(tmp_path: Path) -> None:
    cert, tls = await make_certificate(tmp_path, "herons.org")

    async def answer(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(
            b"HTTP/1.1 302 Found\r\nLocation: http://herons.org/\r\nContent-Length: 0\r\n\r\n"
        )

    trusted = ssl.create_default_context(cafile=cert)
    async with service(answer, tls) as url:
        web = Web(int(url.rpartition(":")[2]), {"herons.org": [[LOOPBACK]]})
        told = await refused(web.fetcher(trusted=trusted), "HTTPS://herons.org/")
        assert told == "The page leads from https to an address without it."
