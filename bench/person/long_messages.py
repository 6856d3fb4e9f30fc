"""Long messages: a question before or after 20,000 characters of log, code or prose."""

import argparse
import inspect
import random
from collections.abc import Iterator
from pydoc_data.topics import topics
from typing import Final

CHARS: Final = 20_000
_LEVELS: Final = ("INFO", "DEBUG", "WARN", "ERROR")
_PARTS: Final = ("http", "pool", "queue", "auth", "cache", "mailer", "scheduler", "storage")
_EVENTS: Final = (
    "request finished status=200 bytes={n} duration_ms={m}",
    "connection acquired id={n} waited_ms={m}",
    "retrying in {m} ms, attempt {n} failed: timeout while reading from peer",
    "evicted {n} entries, {m} MiB free",
    "job {n} started by worker-{m}",
    "token refreshed for session {n}",
)
_CHINESE: Final = (
    "清晨的雾还没有散去，茶园里已经有人在采摘新芽|制茶的师傅说，火候差一点，香气就会完全不同|古道沿着山脊向西延伸，马帮曾在这里走了上百年"
    "|村口的老榕树下，几位老人正在下棋|博物馆里保存着一批明代的瓷器，釉色温润|这种釉料需要在高温中保持很长时间，冷却也要缓慢"
    "|研究者用显微镜观察了碎片的断面，发现了三层结构|河流在这里转了一个大弯，形成了肥沃的冲积平原|每到雨季，水位会上涨两米，渔民便把船拖上岸"
    "|当地的建筑多用青砖，屋顶铺着小瓦|檐下的木雕刻着花鸟，至今仍然清晰|音乐学院的学生来这里采集民歌，录下了许多快要失传的调子"
    "|歌词讲的是远行的人如何思念家乡|第二天我们翻过垭口，看见了雪山|向导提醒大家放慢脚步，注意呼吸|山谷里开满了杜鹃，颜色从白到深红"
    "|蜜蜂在花间飞来飞去，空气里有淡淡的甜味|傍晚的集市很热闹，摊主们大声招呼客人|有人卖竹编的篮子，有人卖新磨的豆腐|灯笼一盏一盏亮起来，倒映在水面上"
)


def long_messages(question: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each long message of a question; the same in each run."""
    for number, (name, text) in enumerate(_fillers(question).items()):
        gap = "\n" if number % 2 else "\n\n"
        yield f"{name}, question first", f"{question}{gap}{text}"
        yield f"{name}, question last", f"{text}{gap}{question}"


def _fillers(seed: str) -> dict[str, str]:
    drawn = random.Random(seed)
    return {
        "log": _until(_log_line(drawn, number) for number in range(CHARS)),
        "code": _from(drawn, inspect.getsource(argparse)),
        "English": _from(drawn, "\n\n".join(topics[name] for name in sorted(topics))),
        "Chinese": _until(_paragraph(drawn) for _ in range(CHARS)),
    }


def _log_line(drawn: random.Random, number: int) -> str:
    event = drawn.choice(_EVENTS).format(n=drawn.randrange(10**5), m=drawn.randrange(900))
    clock = f"2026-11-22T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    return f"{clock} {drawn.choice(_LEVELS)} {drawn.choice(_PARTS)}: {event}\n"


def _paragraph(drawn: random.Random) -> str:
    sentences = drawn.sample(_CHINESE.split("|"), k=drawn.randint(3, 8))
    return f"{'。'.join(sentences)}。\n\n"


def _from(drawn: random.Random, text: str) -> str:
    """Return a part of a text, from the beginning of a line on."""
    start = text.index("\n", drawn.randrange(len(text) - 2 * CHARS)) + 1
    return text[start : start + CHARS]


def _until(parts: Iterator[str]) -> str:
    text = ""
    while len(text) < CHARS:
        text += next(parts)
    return text.rstrip()
