"""Texts whose shapes slow down careless expressions."""

from collections.abc import Mapping
from typing import Final

UNITS: Final[Mapping[str, str]] = {
    "letters": "a",
    "spaces": " ",
    "commas": "，",
    "brackets": "(",
    "braces": '{"a":',
    "keys": "A_KEY=",
    "passwords": "密码：",
    "questions": "?",
    "wide questions": "什么？",
    "lines": "\n",
    "windows lines": "a\r\n",
    "quotes": '"',
    "quotations": "> a\n",
    "backticks": "`",
    "fences": "```\n",
    "mixed fences": "~~~a\n```b\n",
    "addresses": "http://a.b/c?d=e&",
    "mails": "a@b.",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\n",
    "dashes": "-",
    "equals": "=",
    "dots": ".",
    "digits": "1",
    "base64": "QUJDREVG",
    "tables": "|a|b|\n",
    "emoji": "😀",
    "invisible": "\u200b",
    "combining": "e\u0301",
    "words": "the quick brown fox ",
    "characters": "我们的记忆里有什么东西",
    "escapes": "\\u0041",
    "tabs": "\t\t a",
}
"""Each is repeated."""


def text_of(unit: str, chars: int) -> str:
    """Return a text of this length with an end that repetitions do not match."""
    end = ".x"[:chars]
    return (unit * (chars // len(unit) + 1))[: chars - len(end)] + end
