"""Unified diffs in bounded time."""

import difflib
from collections.abc import Sequence

import pytest

from gateway.files.line_diff import diff_lines


def paragraphs(word: str, count: int) -> list[str]:
    """Return lines with an empty one after each, as in Markdown."""
    return [line for number in range(count) for line in (f"{word} {number}\n", "\n")]


@pytest.mark.parametrize("around", [[], ["begin\n"] * 9])
def test_a_text_of_which_all_but_the_empty_lines_changed_is_shown_as_replaced_whole(
    around: Sequence[str],
) -> None:
    """To find its empty lines takes the third power of their number."""
    old, new = ("".join((*around, *paragraphs(word, 500), "end\n")) for word in ("heron", "苍鹭"))
    diff = diff_lines(old, new)
    assert (diff.added, diff.removed) == (999, 999)
    first = diff.text.splitlines()[0]
    assert first == ("@@ -7,1004 +7,1004 @@" if around else "@@ -1,1001 +1,1001 @@")


def test_what_is_left_out_of_a_long_comparison_is_the_lines_that_come_often() -> None:
    kept = [f"kept {number}\n" for number in range(40)]
    old, new = ([*paragraphs(word, 480), *kept, f"{word}\n"] for word in ("heron", "苍鹭"))
    diff = diff_lines("".join(old), "".join(new))
    assert (diff.added, diff.removed) == (960, 960)
    assert " kept 0\n" in diff.text


@pytest.mark.parametrize("count", [3, 80])
def test_a_diff_is_the_standard_librarys(count: int) -> None:
    old = ["begin\n"] * 9 + paragraphs("heron", count) + ["end\n"] * 9
    new = ["begin\n"] * 9 + paragraphs("苍鹭", count) + ["end\n"] * 9
    rows = list(difflib.unified_diff(old, new))[2:]
    assert diff_lines("".join(old), "".join(new)).text == "".join(rows)
