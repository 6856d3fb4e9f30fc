"""What would run, for the person who is asked about it: whole, but for the secrets that the server
knows.

A person's own eyes are no leak, and a mask that goes by the look of a text could hide what the call
does. So only known values are hidden, each place is marked, and how long it was is told.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import PurePath
from typing import Any, Final

from gateway.jsonsafe import json_safe, json_text
from gateway.observability.masking import clip
from gateway.turns.guards import without_comments
from policies.calls import ToolCall
from policies.secrets import known_spans

HIDDEN: Final = "[{chars} characters hidden]"
_PATHS: Final = ("file_path", "notebook_path", "path")
"""Inputs whose value is one path, which is shown from the workspace."""
_LISTED_CHARS: Final = 200_000
"""The most of one input in a list; the whole is a download."""
_CUT_CHARS: Final = (50_000, 8_000, 200)
"""What is left of each text of an input that is longer, as much as fits."""


@dataclass(frozen=True, slots=True)
class AskedInput:
    """An input without the secrets that the server knows."""

    input: dict[str, Any]
    hidden: list[dict[str, Any]] = field(default_factory=list)
    """Where something is hidden: `path`, such as `edits.0.new_string`, and `chars`."""


def show_input(
    tool_input: Mapping[str, Any], *, secrets: Sequence[str], workspace: PurePath
) -> AskedInput:
    """Return an input as the person who is asked sees it."""
    hidden: list[dict[str, Any]] = []
    safe: dict[str, Any] = json_safe(tool_input)
    for name in _PATHS:
        if isinstance(safe.get(name), str):
            safe[name] = _from_workspace(safe[name], workspace)
    return AskedInput(_hide(safe, "", partial(_hide_text, secrets, hidden)), hidden)


def _from_workspace(path: str, workspace: PurePath) -> str:
    folder = f"{workspace}{os.sep}"
    return path.removeprefix(folder) or path


def _hide(value: Any, path: str, hide: Any) -> Any:
    match value:
        case str():
            return hide(value, path)
        case list():
            return [_hide(item, _join(path, str(at)), hide) for at, item in enumerate(value)]
        case dict():
            return {
                hide(key, _join(path, key)): _hide(item, _join(path, key), hide)
                for key, item in value.items()
            }
        case _:
            return value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _hide_text(secrets: Sequence[str], hidden: list[dict[str, Any]], text: str, path: str) -> str:
    parts: list[str] = []
    copied = 0
    for start, end in known_spans(text, secrets):
        parts += [text[copied:start], HIDDEN.format(chars=end - start)]
        copied = end
        hidden.append({"path": path, "chars": end - start})
    return "".join([*parts, text[copied:]])


def cut_input(tool_input: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return an input as a list holds it, its long texts cut in the middle, and how long the whole
    is.
    """
    chars = len(json_text(tool_input))
    cut, left = tool_input, chars
    for limit in _CUT_CHARS:
        if left <= _LISTED_CHARS:
            break
        cut = _clip(tool_input, limit)
        left = len(json_text(cut))
    return cut, chars


def _clip(value: Any, limit: int) -> Any:
    match value:
        case str():
            return clip(value, limit)
        case list():
            return [_clip(item, limit) for item in value]
        case dict():
            return {key: _clip(item, limit) for key, item in value.items()}
        case _:
            return value


def fingerprint_of(call: ToolCall, workspace: PurePath) -> str:
    """Identify what a call does, and where in the workspace: equal calls do the same.

    The same file is the same, whether its path is absolute or starts from the working directory.
    """
    given = dict(without_comments(call.name, call.input))
    for name in _PATHS:
        if isinstance(given.get(name), str):
            path = os.path.join(call.cwd, given[name])  # noqa: PTH118  follows no link
            given[name] = _from_workspace(os.path.normpath(path), workspace)
    cwd = "" if call.cwd == str(workspace) else _from_workspace(call.cwd, workspace)
    text = json.dumps([call.name, cwd, given], sort_keys=True, default=str)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
