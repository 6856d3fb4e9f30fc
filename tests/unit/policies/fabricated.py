"""Secrets that never were: put together at run time, so that none stands in the source."""

import base64
import json
import random
import re
import shlex
import string
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import quote

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URL_SAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
UPPER = string.ascii_uppercase + string.digits
_ALPHABETS = {
    "an": ALNUM,
    "hex": HEX,
    "url": URL_SAFE,
    "b64": BASE64,
    "AN": UPPER,
    "low": string.ascii_lowercase + string.digits,
    "az": string.ascii_letters,
}
_PLACE = re.compile(r"‹(?P<kind>\w+) (?P<length>\d+)›")

_random = random.Random(7)  # the same ones in each run


def fake(length: int, alphabet: str = ALNUM) -> str:
    """Return a random text that holds digits and begins and ends as real tokens do."""
    inner = "".join(_random.choice(alphabet) for _ in range(length - 3))
    letter, digit = ("A", "7") if alphabet == UPPER else ("a", "7")
    return f"{letter}{inner}{digit}{letter}"


def _jwt() -> str:
    def part(text: str) -> str:
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    head, body = part('{"alg":"HS256","typ":"JWT"}'), part(f'{{"sub":"{fake(12)}","exp":1}}')
    return f"{head}.{body}.{fake(43, URL_SAFE)}"


def _fill(template: str) -> str:
    return _PLACE.sub(lambda place: fake(int(place["length"]), _ALPHABETS[place["kind"]]), template)


_TEMPLATES = json.loads(Path(__file__).with_name("data").joinpath("providers.json").read_bytes())
PROVIDERS: Mapping[str, Callable[[], str]] = {
    "jwt": _jwt,
    **{name: partial(_fill, text) for name, text in _TEMPLATES.items()},
}
"""Makes a secret of each provider. The last ones no list names: one of their own words tells."""


def key_block(kind: str, *, lines: int = 6, end: str = "\n") -> str:
    """Return a private key of some kind, as PEM."""
    body = end.join(fake(64, BASE64) for _ in range(lines))
    word = "PRIVATE KEY BLOCK" if kind == "PGP " else "PRIVATE KEY"
    return f"-----BEGIN {kind}{word}-----{end}{body}{end}-----END {kind}{word}-----"


KEY_BLOCKS = ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", "PGP ")


def spellings(secret: str) -> Mapping[str, str]:
    """Return the forms in which a known value turns up."""
    raw = secret.encode()
    return {
        "plain": secret,
        "url": quote(secret, safe=""),
        "url with slashes": quote(secret),
        "url lower": re.sub("%..", lambda one: one[0].lower(), quote(secret, safe="")),
        "form": quote(secret, safe="").replace("%20", "+"),
        "base64": base64.b64encode(raw).decode(),
        "base64 url safe": base64.urlsafe_b64encode(raw).decode(),
        "base64 with a name": base64.b64encode(b"bob:" + raw).decode(),
        "base64 behind one": base64.b64encode(b"x" + raw).decode(),
        "base64 behind two": base64.b64encode(b"xy" + raw + b"tail").decode(),
        "hex": raw.hex(),
        "hex upper": raw.hex().upper(),
        "json": secret.replace("\\", "\\\\").replace('"', '\\"'),
        "json in json": json.dumps(json.dumps(secret, ensure_ascii=False)[1:-1])[1:-1],
        "repr": repr(secret)[1:-1],
        "shell": shlex.quote(secret),
        "shell with backslashes": secret.replace("'", "'\\''"),
        "shell in double quotes": re.sub(r'[\\"$`]', r"\\\g<0>", secret),
        "sql": secret.replace("'", "''"),
    }
