"""Writes a web page as Markdown, which it prints.

A program of its own, because a hostile page can make a parser work for long: it is bounded in time
and memory, and holds up nobody. Its standard input is a line with the page's address, a line with
its character set or nothing, and the page.
"""

import sys
from urllib.parse import urljoin

_MAX_MEMORY_BYTES = 1 << 30
_MAX_SECONDS = 10
_MAX_CHARS = 8 * 1024 * 1024
"""Links that are made whole, and cells that span many columns, can make far more of a page."""
_LEFT_OUT = ["script", "style", "noscript", "template", "svg", "iframe", "nav", "footer", "form"]


def _bound() -> None:
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  not there on Windows

    resource.setrlimit(resource.RLIMIT_CPU, (_MAX_SECONDS, _MAX_SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))


def to_markdown(page: bytes, address: str, charset: str | None) -> str:
    """Return the page's main part as Markdown, with whole links; if it is nested too deeply, its
    text alone.
    """
    from bs4 import BeautifulSoup  # noqa: PLC0415  after the bounds
    from markdownify import MarkdownConverter  # noqa: PLC0415

    soup = BeautifulSoup(page, "html.parser", from_encoding=charset)
    for element in soup(_LEFT_OUT):
        element.decompose()
    for picture in soup("img"):
        picture.replace_with(str(picture.get("alt") or ""))
    for link in soup("a", href=True):
        link["href"] = urljoin(address, str(link["href"]))
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    main = soup.find("main") or soup.find("article") or soup.body or soup
    try:
        text = MarkdownConverter(heading_style="ATX", bullets="-").convert_soup(main)
    except RecursionError:
        text = main.get_text("\n", strip=True)
    lines = [line.rstrip() for line in text.splitlines()]
    body = "\n".join(
        line for at, line in enumerate(lines) if line or (at and lines[at - 1])
    ).strip()
    return f"{title}\n\n{body}" if title and title not in body[:500] else body


def main() -> None:
    """Convert one page."""
    _bound()
    address, charset = (sys.stdin.buffer.readline().decode().strip() for _ in range(2))
    text = to_markdown(sys.stdin.buffer.read(), address, charset or None)
    if len(text) > _MAX_CHARS:
        sys.exit(1)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
