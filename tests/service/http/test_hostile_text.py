"""Ordinary and hostile text of the greatest length that a route takes keeps the event loop for a moment only."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest

from tests.service.http.stage import one_client

MOST_S: Final = 0.02
"""Processor time of the loop's thread between two turns of the loop, on the machine of `ADDITIONS_S`."""
ADDITIONS_S: Final = 0.05
"""What a million additions take there."""
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


class Heartbeat:
    """The longest that the loop's thread computed between two turns of the loop, in seconds."""

    longest_s = 0.0

    async def run(self) -> None:
        before = time.thread_time()
        while True:
            await anyio.lowlevel.checkpoint()
            now = time.thread_time()
            self.longest_s = max(self.longest_s, now - before)
            before = now


@asynccontextmanager
async def beating() -> AsyncIterator[Heartbeat]:
    heartbeat = Heartbeat()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(heartbeat.run)
        yield heartbeat
        tasks.cancel_scope.cancel()


def most_s() -> float:
    """Return `MOST_S` in proportion to this machine."""
    before, total = time.thread_time(), 0
    for number in range(1_000_000):
        total += number
    return MOST_S * max(1.0, (time.thread_time() - before) / ADDITIONS_S)


def text_of(unit: str, chars: int) -> str:
    return (unit * (chars // len(unit) + 1))[:chars]


BODIES: Final[Mapping[str, Any]] = {
    "/chat": lambda unit: {"message": f"{text_of(unit, 199_998)}.x"},
    "/memory/context": lambda unit: {"queries": [text_of(unit, 20_000)] * 20},
}


@pytest.mark.parametrize("path", BODIES)
async def test_long_text_of_any_shape_leaves_the_loop_free(tmp_path: Path, path: str) -> None:
    took: dict[str, float] = {}
    async with one_client(tmp_path) as client:
        await client.post(path, json=BODIES[path]("warm "))
        for name, unit in UNITS.items():
            async with beating() as heartbeat:
                await client.post(path, json=BODIES[path](unit))
            took[name] = heartbeat.longest_s
    bound_s = most_s()
    assert {name: took_s for name, took_s in took.items() if took_s > bound_s} == {}, bound_s
