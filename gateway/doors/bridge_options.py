"""The options of a command that bridges standard input and output to a running server."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gateway.errors import StartError


def read_options(
    arguments: Sequence[str], *, address: str, program: str, about: str | None
) -> tuple[str, str | None] | int:
    """Return the server's address and the token, if one is given; or the exit code after help or a
    usage error was printed.

    Raise `StartError` if the token cannot be read, or can be none.
    """
    parser = argparse.ArgumentParser(prog=program, description=about)
    parser.add_argument("--url", type=_url, help=f"where Candor runs; default: {address}")
    parser.add_argument("--token-file", type=Path, help="a file that holds your token alone")
    try:
        options = parser.parse_args(arguments)
    except SystemExit as exc:
        return int(exc.code or 0)
    url = options.url or address
    if options.token_file is None:
        return url, None
    try:
        token = options.token_file.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise StartError("The file of --token-file cannot be read.") from exc
    if not token or not all("!" <= character <= "~" for character in token):
        raise StartError("The file of --token-file must hold one token and nothing else.")
    return url, token


def _url(text: str) -> str:
    try:
        url = urlsplit(text)
        is_address = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        is_address = False
    if not is_address or not text.isprintable() or " " in text:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an address such as http://127.0.0.1:8000"
        )
    return text
