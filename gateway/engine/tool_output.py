"""Shortens the results of tools for the model, and keeps the whole of what was cut.

The agent program saves a result longer than its limit to a file in its own data folder and gives
the model that path, which the gate denies. So long results are cut before the agent program checks
their length; for that the tools of MCP servers state a limit (`options`). Of a command's output it
hands over the beginning alone; the rest is read from that file, which is deleted then.
"""

import os
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gateway.engine.events import MAX_WHOLE_CHARS, WholeOutput

SHORTENED_TOOLS = "Bash|Grep|mcp__.*"
"""The tools whose results are cut here; Read bounds its own results."""

_MAX_CHARS = 18_000
"""Below the smallest of the agent program's limits, 20,000 for Grep."""
_SAVED_AT: Final = "persistedOutputPath"
_SAVED_BYTES: Final = "persistedOutputSize"
_WITHOUT = frozenset({_SAVED_AT, _SAVED_BYTES})
"""The fields in which the agent program names the file with the whole output."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}\.[a-z]{1,8}")
_BLOCK_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 4 * MAX_WHOLE_CHARS
"""Of UTF-8, of so many characters."""
_FOLLOWING: Final = bytes(range(0x80, 0xC0))
"""The bytes of a character after its first one, in UTF-8."""


def whole_output_blocking(tool: str, response: Any, config_dir: Path | None) -> WholeOutput | None:
    """Return what a tool returned, before it is cut; None if that is not a text.

    The file with a command's whole output is deleted when it is read. A path that is not in the
    agent program's folder for such files is not opened.
    """
    if tool == "Bash" and isinstance(response, Mapping):
        begun = _joined([response.get("stdout"), response.get("stderr")])
        if _SAVED_AT not in response:
            return _kept(begun)
        saved = _saved_blocking(response, config_dir)
        return saved or WholeOutput(text=begun, chars=None, least_chars=len(begun))
    if tool == "Grep" and isinstance(response, Mapping):
        names = response.get("filenames")
        listed = names if isinstance(names, list) else []
        return _kept(_joined([response.get("content") or _joined(listed)]))
    blocks = response if isinstance(response, list) else [response]
    texts = [block.get("text") if isinstance(block, Mapping) else block for block in blocks]
    return _kept(_joined(texts))


def _joined(texts: list[Any]) -> str:
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def _kept(text: str) -> WholeOutput | None:
    return WholeOutput(text=text[:MAX_WHOLE_CHARS], chars=len(text)) if text else None


def _saved_blocking(response: Mapping[str, Any], config_dir: Path | None) -> WholeOutput | None:
    """Read the file with a command's output; None if there is none, or it cannot be read."""
    path, size = response.get(_SAVED_AT), response.get(_SAVED_BYTES)
    if not isinstance(path, str) or config_dir is None:
        return None
    if not _is_result_file(Path(path), config_dir):
        return None
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            first, total, following = file.read(_MOST_BYTES), 0, 0
            block = first
            while block:
                total += len(block)
                following += len(block) - len(block.translate(None, _FOLLOWING))
                block = file.read(_BLOCK_BYTES)
    except OSError:
        return None
    with suppress(OSError):
        Path(path).unlink()
    text = first.decode("utf-8", "replace")[:MAX_WHOLE_CHARS]
    # the agent program saves 64 MiB and counts what it has seen
    chars = total - following if not isinstance(size, int) or size <= total else None
    return WholeOutput(text=text, chars=chars, least_chars=total - following)


def _is_result_file(path: Path, config_dir: Path) -> bool:
    """Return whether a path is `projects/<folder>/<session>/tool-results/<name>` of the agent's
    folder.
    """
    folder = path.parent
    projects = config_dir / "projects"
    return (
        _NAME.fullmatch(path.name) is not None
        and folder.name == "tool-results"
        and folder.parent.parent.parent == projects
        and os.path.realpath(folder) == os.path.realpath(projects / folder.relative_to(projects))
        and ".." not in path.parts
    )


def shorten(response: Any, whole: WholeOutput | None = None) -> Any:
    """Return a result of the same shape with texts of about `_MAX_CHARS` in total.

    `whole` is the whole output where the result holds its beginning alone.
    """
    return _Shortener(whole).cut(response)


class _Shortener:
    def __init__(self, whole: WholeOutput | None) -> None:
        self._left = _MAX_CHARS
        self._whole = whole

    def cut(self, value: Any) -> Any:
        match value:
            case str():
                return self._cut_text(value)
            case {"type": "image" | "resource_link"}:
                return value
            case {"persistedOutputPath": _, "stdout": str() as begun} if self._whole is not None:
                rest = {key: part for key, part in value.items() if key not in _WITHOUT}
                return {**self.cut(rest), "stdout": self._cut_begun(begun, self._whole)}
            case Mapping():
                return {key: self.cut(part) for key, part in value.items() if key not in _WITHOUT}
            case list():
                return self._cut_list(value)
            case _:
                return value

    def _cut_begun(self, begun: str, whole: WholeOutput) -> str:
        kept = begun[:_MAX_CHARS]
        if whole.chars is not None:
            return f"{kept}\n{_more(whole.chars - len(kept), 'characters')}"
        return f"{kept}\n{_more(whole.least_chars - len(kept), 'characters', 'more than ')}"

    def _cut_text(self, text: str) -> str:
        kept, self._left = text[: self._left], self._left - min(len(text), self._left)
        if len(kept) == len(text):
            return text
        return f"{kept}\n{_more(len(text) - len(kept), 'characters')}"

    def _cut_list(self, items: list[Any]) -> list[Any]:
        """Cut a list; a list of texts, such as file names, keeps the first ones whole."""
        if not all(isinstance(item, str) for item in items):
            return [self.cut(item) for item in items]
        kept: list[Any] = []
        for item in items:
            if len(item) >= self._left:
                return [*kept, _more(len(items) - len(kept), "lines")]
            kept.append(item)
            self._left -= len(item) + 1
        return kept


def _more(count: int, what: str, about: str = "") -> str:
    return (
        f"… {about}{count} {what} left out here. Ask for less: Read with offset and limit, or Grep."
    )
