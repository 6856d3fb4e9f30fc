"""What a tool returned before it was cut: how long it was, and where the rest of it is."""

from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ToolResultBlock, UserMessage

from gateway.engine.events import MAX_WHOLE_CHARS, ToolReturned, WholeOutput
from gateway.engine.result_text import honest_failure
from gateway.engine.tool_output import shorten, whole_output_blocking
from gateway.engine.translate import translate

SESSION = "7fd21d02-7ec2-4e5c-8741-5dca55e8b3cb"


def saved(config_dir: Path, content: bytes, name: str = "bbuyw0dur.txt") -> Path:
    """Save a result as the agent program does."""
    folder = config_dir / "projects" / "-ws" / SESSION / "tool-results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    return path


def response(path: Path, size: int, begun: str) -> dict[str, Any]:
    fields = {"persistedOutputPath": str(path), "persistedOutputSize": size}
    return {"stdout": begun, "stderr": "", "interrupted": False, **fields}


@pytest.mark.parametrize("letter", ["x", "字", "🦦"])
def test_a_cut_says_how_much_is_missing_of_all_that_a_command_wrote(
    tmp_path: Path, letter: str
) -> None:
    content = (letter * 1_100_000).encode()
    path = saved(tmp_path, content)
    told = response(path, len(content), letter * 30_000)
    whole = whole_output_blocking("Bash", told, tmp_path)
    assert whole == WholeOutput(text=letter * 1_100_000, chars=1_100_000, least_chars=1_100_000)
    cut = shorten(told, whole)
    assert cut["stdout"].startswith(letter * 18_000 + "\n… 1082000 characters left out here.")
    assert "persistedOutputPath" not in cut
    assert not path.exists(), "it holds secrets as they are"


def test_what_is_longer_than_the_bounds_is_counted_as_far_as_it_is_there(tmp_path: Path) -> None:
    content = b"y" * (MAX_WHOLE_CHARS * 5)
    told = response(saved(tmp_path, content), len(content), "y" * 30_000)
    whole = whole_output_blocking("Bash", told, tmp_path)
    assert whole is not None
    assert (len(whole.text), whole.chars) == (MAX_WHOLE_CHARS, len(content))
    told = response(saved(tmp_path, content), len(content) + 1, "y" * 30_000)  # it saved a part
    whole = whole_output_blocking("Bash", told, tmp_path)
    assert whole is not None
    assert whole.chars is None
    assert f"… more than {len(content) - 18_000} characters" in shorten(told, whole)["stdout"]


def test_no_other_file_is_read_or_deleted_whatever_a_tool_says(tmp_path: Path) -> None:
    config_dir = tmp_path / "sessions"
    right = saved(config_dir, b"saved " * 9_000)
    outside = tmp_path / "id_rsa"
    outside.write_bytes(b"key " * 9_000)
    link = right.with_name("link.txt")
    link.symlink_to(outside)
    folder = config_dir / "projects" / "-ws" / "other" / "tool-results"
    folder.parent.mkdir()
    folder.symlink_to(tmp_path)
    elsewhere = (
        *(outside, link, folder / "id_rsa", right.parent / ".." / "x.txt"),
        *(right.parent.parent / "x.txt", Path("relative.txt"), config_dir / "missing.txt"),
    )
    for path in elsewhere:
        told = response(path, 36_000, "begun " * 5_000)
        whole = whole_output_blocking("Bash", told, config_dir)
        begun = told["stdout"]
        assert whole == WholeOutput(text=begun, chars=None, least_chars=len(begun)), path
        assert "more than 12000 characters" in shorten(told, whole)["stdout"]
        assert whole_output_blocking("Bash", told, None) == whole
    assert outside.exists()
    told = response(right, 54_000, "x" * 30_000)
    whole = whole_output_blocking("mcp__notes__read", told, config_dir)
    assert whole is None or "saved" not in whole.text, "another tool's field"
    assert right.exists()


OTHERS: list[tuple[str, Any, str]] = [
    ("Bash", {"stdout": "out", "stderr": "err"}, "out\nerr"),
    ("Grep", {"mode": "content", "content": "1:x\n" * 9_000, "filenames": []}, "1:x\n" * 9_000),
    ("Grep", {"mode": "files_with_matches", "filenames": ["a.py", "b.py"]}, "a.py\nb.py"),
    ("mcp__a__b", [{"type": "text", "text": "one"}, {"type": "image"}], "one"),
    ("mcp__a__b", "plain", "plain"),
]


@pytest.mark.parametrize(("tool", "told", "text"), OTHERS)
def test_the_text_of_other_results_is_the_whole_of_it(tool: str, told: Any, text: str) -> None:
    assert whole_output_blocking(tool, told, None) == WholeOutput(text=text, chars=len(text))
    nothings: list[Any] = [None, 7, {}, [], {"stdout": 7}, {"content": []}]
    for nothing in nothings:
        assert whole_output_blocking(tool, nothing, None) is None


def test_a_failed_call_does_not_say_how_much_the_agent_program_has_dropped() -> None:
    """It counts what it held of the output, not the output."""
    raw = "Exit code 1\nbegin\n\n... [20012 characters truncated] ...\n\nend"
    told = "Exit code 1\nbegin\n\n… at least 20012 characters left out …\n\nend"
    assert honest_failure(raw) == (told, True)
    assert honest_failure("Exit code 1") == ("Exit code 1", False)
    block = ToolResultBlock(tool_use_id="t1", content=raw, is_error=True)
    (failed,) = translate(UserMessage(content=[block]))
    assert failed == ToolReturned(
        tool_use_id="t1", is_error=True, text=told, whole=WholeOutput(text=told, chars=None)
    )
    block = ToolResultBlock(tool_use_id="t1", content=raw, is_error=False)
    assert list(translate(UserMessage(content=[block]))) == [
        ToolReturned(tool_use_id="t1", is_error=False, text=raw)
    ]
