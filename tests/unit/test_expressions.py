"""Every expression of the program reads a text in time that grows with the text's length alone."""

import re
import time
from collections.abc import Iterator

from tests.support.expressions import attacks, expressions, scans
from tests.support.hostile_text import UNITS
from tests.support.loop_heartbeat import MOST_S, most_s

LENGTHS = (*range(8, 36, 4), 64, 128, 256, 512, 1024, 2048, 4096)
"""From the shortest on: an expression may take twice as long for each further character."""
A_CHAR_S = 5e-6
SLACK_S = 0.002
GROWTH = 2.5
"""How much more a character may cost in a text that is four times as long."""


def seconds(pattern: re.Pattern[str], text: str, *, is_searched: bool) -> float:
    """Return the processor time of reading a text, the least of three where it is much."""
    least_s = 1.0
    for _ in range(3):
        began = time.thread_time()
        if is_searched:
            for _ in pattern.finditer(text):
                pass
        else:
            pattern.match(text)
        least_s = min(least_s, time.thread_time() - began)
        if least_s < SLACK_S:
            break
    return least_s


def slow_texts(name: str, pattern: re.Pattern[str], slowness: float) -> Iterator[str]:
    """Yield what an expression reads too slowly, on a machine that is slower than another by a factor."""
    is_searched = scans(name)
    for before, unit in [*attacks(pattern), *(("", unit) for unit in UNITS.values())]:
        took: dict[int, float] = {}
        for length in LENGTHS:
            text = f"{before}{(unit * (length // len(unit) + 1))[:length]}\0"
            took[length] = seconds(pattern, text, is_searched=is_searched)
            least_s = max(took.get(length // 4, 0.0), SLACK_S * slowness)
            is_slow = took[length] > (SLACK_S + len(text) * A_CHAR_S) * slowness
            if is_slow or (length > 1024 and took[length] > 4 * GROWTH * least_s):
                yield f"{before[:40]!r} and {unit[:40]!r}: {length} characters, {took[length]:.4f} s"
                break


def test_an_expression_takes_time_in_proportion_to_its_text() -> None:
    """The texts are made of the expressions' own repetitions."""
    slowness = most_s() / MOST_S
    found = expressions("gateway", "memory", "policies")
    assert len(found) > 100
    slow = {name: [*slow_texts(name, pattern, slowness)] for name, pattern in found.items()}
    assert {name: texts for name, texts in slow.items() if texts} == {}


def test_what_is_known_to_be_slow_is_found() -> None:
    known = {
        "doubling": r"(?:a|a)*b",
        "square": r"\s+$",
        "behind a beginning": r"key: (?:\w+-?)*;",
        "a cube": r"a*a*a*b",
    }
    for name, text in known.items():
        assert next(slow_texts("tests.support.expressions._NONE", re.compile(text), 1.0), None), (
            name
        )
    assert not [*slow_texts("tests.support.expressions._NONE", re.compile(r"[a-z]++ ?"), 1.0)]
