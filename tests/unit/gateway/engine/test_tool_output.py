"""What of a tool's result reaches the model and people."""

from typing import Any

import pytest

from gateway.engine.result_text import plain_result
from gateway.engine.tool_output import shorten


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("<tool_use_error>File does not exist.</tool_use_error>", "File does not exist."),
        ("PreToolUse:Bash hook error: Pipes are not allowed.", "Pipes are not allowed."),
        (
            (
                "<persisted-output>\nOutput too large (9KB). Full output saved to: /data/x y.txt\n\n"
                "Preview (first 2KB):\nline\n...\n</persisted-output>"
            ),
            "Output too large (9KB).\n\nPreview (first 2KB):\nline\n...\n",
        ),
        ("a <b> hook error: 报告 saved to: x", "a <b> hook error: 报告 saved to: x"),
    ],
)
def test_what_the_agent_program_wraps_around_a_result_is_taken_off(raw: str, shown: str) -> None:
    assert plain_result(raw) == shown


def test_a_short_result_stays_as_it_is() -> None:
    response = {"stdout": "行\n" * 3_000, "stderr": "", "interrupted": False}
    assert shorten(response) == response


@pytest.mark.parametrize(
    "response",
    [
        {"stdout": "x" * 30_000, "stderr": "", "persistedOutputPath": "/data/x.txt"},
        {"stdout": "字" * 17_999, "stderr": "e" * 9_000},
        {"mode": "content", "content": "1:x\n" * 90_000},
        {"mode": "files_with_matches", "filenames": [f"src/{i}.py" for i in range(9_000)]},
        [{"type": "text", "text": "x" * 60_000}],
    ],
)
def test_a_long_result_is_cut_and_says_so(response: Any) -> None:
    told = "\n".join(strings(shorten(response)))
    assert len(told) < 19_000
    assert "left out here" in told
    assert "/data/x.txt" not in told


def strings(value: Any) -> list[str]:
    """List the texts in a result."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for part in parts for text in strings(part)]


def test_an_image_is_not_cut() -> None:
    image = [{"type": "image", "source": {"data": "x" * 90_000}}]
    assert shorten(image) == image
