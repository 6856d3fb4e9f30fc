"""Fetches one page for an agent: each step of it is checked, and the text is bounded."""

import codecs
import logging
import re
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import Final

import anyio
import httpx

from gateway.jsonsafe import clean_text
from gateway.web_fetch.errors import FetchRefused
from gateway.web_fetch.exchange import Exchange, Reply
from policies.verdict import Refused
from policies.web import ANY_HOST, HTTP_AND_HTTPS, check_url

_log = logging.getLogger(__name__)

MAX_PAGE_BYTES: Final = 2 * 1024 * 1024
MAX_REDIRECTS: Final = 5
_LIMIT_S: Final = 30.0
"""For all of it."""
_CONVERT_S: Final = 15.0
_PROGRAM: Final = Path(__file__).with_name("markdown_program.py")
_MAX_TYPE_CHARS: Final = 1_000
"""Python needs time for a `Content-Type` that grows with the square of its length."""
_REDIRECTIONS: Final = range(300, 400)
_HTML: Final = {"text/html", "application/xhtml+xml"}
_TEXTS: Final = {"application/json", "application/xml", "application/yaml", "application/toml"}
_CODECS: Final = re.compile(
    r"ascii|utf-(8|16|32)(-sig|-[bl]e)?|iso8859-\d+|cp\d+|koi8-\w|mac-\w+|tis-620"
    r"|gb2312|gbk|gb18030|hz|big5(hkscs)?|euc_\w+|shift_jis\w*|iso2022_\w+|johab"
)
"""Of character sets, as opposed to what else Python decodes by name."""
_NOT_PLAIN: Final = (
    "Only plain http and https addresses of public hosts, with their usual ports, are fetched."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page as text."""

    url: str
    """Where it was found, after redirects."""
    text: str
    is_whole: bool


class Fetcher:
    """Fetches from the hosts that are listed; `*` among them is every public one."""

    def __init__(self, hosts: Collection[str], exchange: Exchange | None = None) -> None:
        self._hosts = hosts
        self.is_open = ANY_HOST in hosts
        """True if every public host is fetched from."""
        self._exchange = exchange or Exchange()

    async def fetch(self, url: str) -> Page:
        """Return the page at an address. Raise `FetchRefused`."""
        try:
            with anyio.fail_after(_LIMIT_S):
                where, reply = await self._follow(url)
                return Page(url=where, text=await _text_of(where, reply), is_whole=reply.is_whole)
        except TimeoutError as exc:
            raise FetchRefused(f"The page was not there within {_LIMIT_S:g} s.") from exc
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
            raise FetchRefused("The connection failed, or the answer is not of HTTP.") from exc

    async def _follow(self, url: str) -> tuple[str, Reply]:
        """Return the first answer that is no redirect, and its address; check each on the way."""
        for _ in range(MAX_REDIRECTS + 1):
            host = self._check(url)
            reply = await self._exchange.get(url, host, max_bytes=MAX_PAGE_BYTES)
            location = reply.headers.get("location")
            if location is None or reply.status not in _REDIRECTIONS:
                return url, _good(reply)
            source = httpx.URL(url)
            target = source.join(location)
            if source.scheme == "https" and target.scheme != "https":
                raise FetchRefused("The page leads from https to an address without it.")
            url = str(target)
        raise FetchRefused(f"The page leads on more than {MAX_REDIRECTS} times.")

    def _check(self, url: str) -> str:
        try:
            return check_url(url, self._hosts, HTTP_AND_HTTPS)
        except Refused as exc:
            is_form = exc.denial.rule == "url_form"
            raise FetchRefused(_NOT_PLAIN if is_form else exc.denial.message) from exc


def _good(reply: Reply) -> Reply:
    if reply.status != HTTPStatus.OK:
        raise FetchRefused(f"The server answered with the status {reply.status}.")
    return reply


async def _text_of(url: str, reply: Reply) -> str:
    header = Message()
    header["Content-Type"] = reply.headers.get("content-type", "text/html")[:_MAX_TYPE_CHARS]
    kind, charset = header.get_content_type(), _charset_of(header)
    if kind in _HTML:
        return await _to_markdown(url, reply.body, charset)
    if not (kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml"))):
        raise FetchRefused(f"It is {kind[:60]}, and only text is read.")
    return clean_text(reply.body.decode(_codec(charset), "replace"))


def _charset_of(header: Message) -> str | None:
    try:
        return header.get_content_charset()
    except ValueError:  # a NUL in the name of its own character set
        return None


def _codec(charset: str | None) -> str:
    """Return the codec of a character set; UTF-8 if the name is of none.

    Python has other codecs: `punycode` takes hours for a page, `idna` raises.
    """
    try:
        name = codecs.lookup(charset or "utf-8").name
    except (LookupError, ValueError):  # a NUL, half a character
        return "utf-8"
    return name if _CODECS.fullmatch(name) else "utf-8"


async def _to_markdown(url: str, page: bytes, charset: str | None) -> str:
    words = [sys.executable, "-I", str(_PROGRAM)]
    given = f"{url}\n{charset or ''}\n".encode() + page
    try:
        with anyio.move_on_after(_CONVERT_S):
            done = await anyio.run_process(
                words, input=given, stderr=subprocess.DEVNULL, env={}, check=False
            )
            if done.returncode == 0:
                return done.stdout.decode("utf-8", "replace")
    except ExceptionGroup:  # it ended before it had read the page
        _log.info("page_not_converted", exc_info=True)
    raise FetchRefused("The page cannot be read as text.")
