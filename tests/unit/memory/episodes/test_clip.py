"""Texts of episodes: what is clipped and what stays."""

import base64
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.episodes.clipping.clip import (
    MAX_EPISODE_CHARS,
    MAX_SECTION_CHARS,
    clip_sections,
    clip_text,
)
from memory.episodes.episode import Sections

PYTHON_TRACE = """Traceback (most recent call last):
  File "/srv/app/main.py", line 10, in <module>
    run()
  File "/srv/app/jobs.py", line 44, in run
    pay(order)
ValueError: 金额不能为负"""
JAVA_TRACE = """java.lang.IllegalStateException: pool is closed
    at com.shop.Pool.take(Pool.java:88)
    at com.shop.Order.pay(Order.java:17)
Caused by: java.io.IOException: broken pipe
    at com.shop.Net.write(Net.java:9)
    ... 12 more"""
NODE_TRACE = """TypeError: Cannot read properties of undefined (reading 'id')
    at handler (/srv/app/routes.js:17:22)
    at Layer.handle [as handle_request] (/srv/app/node_modules/express/lib/router/layer.js:95:5)"""
GO_TRACE = """panic: runtime error: index out of range [5] with length 3

goroutine 1 [running]:
main.total(0xc000012345)
\t/srv/app/main.go:12 +0x1d
main.main()
\t/srv/app/main.go:22 +0x45"""
DIFF = """diff --git a/app/pay.py b/app/pay.py
index 83db48f..bf269f4 100644
--- a/app/pay.py
+++ b/app/pay.py
@@ -1,5 +1,6 @@ def pay
 import os
-old_line = 1
+new_line = 1
+another = 2

 tail = 3
 last = 4
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
index 1..0
--- a/gone.txt
+++ /dev/null
@@ -1,2 +0,0 @@
-one
-two"""

BARE_HUNKS = """@@ -1,90 +7 @@ def pay
 import os
-old_line = 1
+new_line = 1
+another = 2

 - a context line
@@ -40 +1,2 @@
-one line with some more text
+the other line"""
"""No header says the file, and the counts are wrong."""
HEADLESS = """--- a/app/pay.py
+++ b/app/pay.py
-old_line = 1
+new_line = 1
+another = 2
 tail = 3"""
"""As models write them: without a head of the hunk."""
LIKE_A_DIFF = """- a list
- of things
@@ -1,2 +1,2 @@
stands in the head of a hunk; in a mail, @@ is a mark.
```yaml
- name: pay
- name: order
```
```diff
nothing changed
```"""


PIECES = [
    PYTHON_TRACE, JAVA_TRACE, NODE_TRACE, GO_TRACE, DIFF, "plain text", "错误：失败", "\r50%\r100%", "",
    "2026-11-20 10:00:00 INFO same", "Downloading 5%", "Downloading 50%", "row 1", "row 2", "}", "\x00\x01\x02",
    "QUJD" * 60, "x" * 2500, "[3 times]", "[… 4 lines like these]", "    at x.y(z:1)", "goroutine 7 [running]:",
    "@@ -1,2 +1,2 @@", "-gone", "```diff", "```", "--- a", "+++ b", " [… 9 characters …] ", "⠋ going", "\x1b[1mbold",
]  # fmt: skip


def noise(size: int, seed: int = 7) -> bytes:
    return random.Random(seed).randbytes(size)


BAR = "".join(f"\rDownloading model [{'=' * (n // 5):<20}] {n}%" for n in range(0, 101, 5))
FILE_BAR = "\n".join(f"正在下载 模型.bin  {n}%" for n in range(1, 101))
LAYERS = "\n".join(
    f"{n:012x}: {state}"
    for state in ("Pulling fs layer", "Downloading", "Pull complete")
    for n in range(9)
)
SPINNER = "\n".join(f"{'⠋⠙⠹⠸⠼⠴⠦⠧'[n % 8]} Installing packages" for n in range(40))
WARNING = "WARN pool: connection lost, retrying"
WARNINGS = "\n".join(f"2026-11-20T10:00:{n % 60:02d}Z {WARNING}" for n in range(200))
ERRORS = "\n".join(f"2026-11-20 10:00:{n % 60:02d} [错误] 连接 数据库 失败" for n in range(90))
CODE = "if a:\n    return x\nelif b:\n    return x\nelif c:\n    return x\nelse:\n    return x"
PROSE = (
    "我们决定用 SQLite,因为一个文件就够了。\n\nThe retry limit is 5; backoff doubles.\n\n- a\n- b\n"
)
CLIPPED = {
    f"修复支付:\n{DIFF}\nThen the tests passed.": (
        "修复支付:\n[diff left out: app/pay.py +2 -1, gone.txt +0 -2]\nThen the tests passed."
    ),
    f"修复支付:\n{BARE_HUNKS}\nThen the tests passed.": (
        "修复支付:\n[diff left out: +3 -2]\nThen the tests passed."
    ),
    f"修复支付:\n```diff\n{BARE_HUNKS}\n```\n完成": "修复支付:\n```diff\n[diff left out: +3 -2]\n```\n完成",
    f"1.\n```diff\n{HEADLESS}\n```\n2.\n~~~patch\n{DIFF}\n~~~\nend": (
        "1.\n```diff\n[diff left out: app/pay.py +2 -1]\n```\n"
        "2.\n~~~patch\n[diff left out: app/pay.py +2 -1, gone.txt +0 -2]\n~~~\nend"
    ),
    f"--- /dev/null\n+++ /dev/null\n{BARE_HUNKS}": "[diff left out: /dev/null +3 -2]",
    LIKE_A_DIFF: LIKE_A_DIFF,
    f"start\n{BAR}\ndone": f"start\nDownloading model [{'=' * 20}] 100%\ndone",
    f"{FILE_BAR}\n完成": "正在下载 模型.bin  100%\n完成",
    f"{LAYERS}\nDigest: sha256:1\n{SPINNER}\nStatus: Downloaded": (
        f"{8:012x}: Pull complete\nDigest: sha256:1\n⠧ Installing packages\nStatus: Downloaded"
    ),
    WARNINGS: f"2026-11-20T10:00:00Z {WARNING} [200 times]",
    ERRORS: "2026-11-20 10:00:00 [错误] 连接 数据库 失败 [90 times]",
    CODE: CODE,
    PROSE: PROSE,
}


def test_diffs_progress_and_repeated_lines_are_summed_up_and_code_and_prose_stay() -> None:
    assert {text: clip_text(text) for text in CLIPPED} == CLIPPED


BINARY = "\n".join("zcmV?" + "x{|}~-;<=>?@^_`" * 4 for _ in range(9))
PATCH = (
    "diff --git a/logo.png b/logo.png\nindex 1..2 100644\nGIT binary patch\n"
    f"literal 900\n{BINARY}\n\nliteral 0\nHcmV?d00001\n"
)
BASE64 = base64.b64encode(noise(300)).decode()
COLOURED = "\x1b[0m".join(BASE64[at : at + 50] for at in range(0, 400, 50))
DUMP = "\n".join(
    f"{at:08x}: 4865 6c6c 6f20 576f 726c 6421 0a00 0000  Hello World!...."
    for at in range(0, 640, 16)
)
DATA = {
    PATCH: r"\[diff left out: logo\.png \+0 -0\]",
    base64.b64encode(noise(600)).decode(): r"\[\d+ characters of encoded data\]",
    base64.encodebytes(noise(600)).decode(): r"\[\d+ characters of encoded data\]\s*",
    COLOURED: r"\[400 characters of encoded data\]",
    noise(400).decode("utf-8", "replace").replace("\n", ""): r"\[.*of binary\]",
    DUMP: r"[^\n]{1,80}",
    "word " * 1000: r"(word ){9,}.*characters …\].*(word ){9,}",
}


def test_data_becomes_its_size_and_what_stands_around_it_stays() -> None:
    """Colours within encoded data: only without them it is known as that."""
    wrong = {}
    for data, pattern in DATA.items():
        clipped = clip_text(f"head\n{data}\ntail")
        if not re.fullmatch(f"head\n{pattern}\ntail", clipped) or len(clipped) > 1700:
            wrong[data[:30]] = clipped[:200]
    assert not wrong


@pytest.mark.parametrize(
    "trace", [PYTHON_TRACE, JAVA_TRACE, NODE_TRACE, GO_TRACE], ids=["python", "java", "node", "go"]
)
def test_of_repeated_stack_traces_the_first_stays_with_the_count(trace: str) -> None:
    text = "\n".join(f"attempt {word}\n{trace}\n" for word in ("one", "two", "three", "four"))
    clipped = clip_text(text)
    assert clipped.count(trace.splitlines()[-1]) == 1
    assert trace in clipped
    assert "[this stack trace came 4 times]" in clipped
    assert "attempt four" in clipped


def test_long_command_output_keeps_head_error_and_conclusion() -> None:
    passing = "\n".join(
        f"tests/test_{chr(97 + n % 26)}{n}.py::test_case PASSED" for n in range(900)
    )
    text = (
        f"============ test session starts ============\ncollected 901 items\n{passing[:20_000]}\n"
        "tests/test_pay.py::test_refund FAILED\nE   AssertionError: 3 != 4\n"
        f"{passing[20_000:]}\n=========== 1 failed, 900 passed in 12.3s ==========="
    )
    clipped = clip_text(text, 1500)
    assert len(clipped) <= 1500
    assert clipped.startswith("============ test session starts")
    assert "tests/test_pay.py::test_refund FAILED" in clipped
    assert "AssertionError: 3 != 4" in clipped
    assert clipped.endswith("1 failed, 900 passed in 12.3s ===========")


def test_sections_tell_what_went_and_hold_together() -> None:
    words = " ".join(f"w{n}" for n in range(8_000))
    long = "\n".join(words[at : at + 90] for at in range(0, 40_000, 90))
    sections = Sections(context="short", actions=long, decisions=long, pitfalls=long, recipe=long)
    clipped, told = clip_sections(sections)
    assert clipped.context == "short"
    assert [text.section for text in told] == ["actions", "decisions", "pitfalls", "recipe"]
    for text in told:
        name = text.section
        assert text.chars == len(getattr(sections, name)) - len(getattr(clipped, name))
        assert len(getattr(clipped, name)) <= MAX_SECTION_CHARS
    assert sum(map(len, clipped.named().values())) <= MAX_EPISODE_CHARS
    assert clip_sections(clipped) == (clipped, ())


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=40), max_size=60),
    st.integers(min_value=200, max_value=3000),
)
def test_clipping_never_lengthens_and_twice_is_once(pieces: list[str], limit: int) -> None:
    text = "\n".join(pieces)
    clipped = clip_text(text, limit)
    assert len(clipped) <= min(len(text), limit)
    assert clip_text(clipped, limit) == clipped
    assert clip_text(text, limit) == clipped
