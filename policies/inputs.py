"""The inputs that each tool may carry, and their types.

An input that is not listed is refused, because a newer tool may give it a meaning that nobody judged.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from policies.visible_text import show

MAX_DEPTH = 32
"""The deepest nesting of a tool's input."""

_DIGITS = re.compile(r"\d{1,9}(?:\.\d+)?")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    if isinstance(value, str):
        return _DIGITS.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_flag(value: object) -> bool:
    return isinstance(value, bool) or value in {"true", "false"}


def _is_anything(_value: object) -> bool:
    return True


_Check = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class _Inputs:
    required: Mapping[str, _Check]
    optional: Mapping[str, _Check] = field(default_factory=dict)


def _all(check: _Check, names: str) -> dict[str, _Check]:
    return dict.fromkeys(names.split(), check)


_SHELL = _Inputs(
    {"command": _is_text},
    {
        "description": _is_text,
        "timeout": _is_count,
        **_all(_is_anything, "run_in_background dangerouslyDisableSandbox"),
    },
)
_INPUTS: Mapping[str, _Inputs] = {
    "Read": _Inputs(
        {"file_path": _is_text}, {**_all(_is_count, "offset limit"), "pages": _is_text}
    ),
    "Write": _Inputs(_all(_is_text, "file_path content")),
    "Edit": _Inputs(_all(_is_text, "file_path old_string new_string"), {"replace_all": _is_flag}),
    "NotebookEdit": _Inputs(
        _all(_is_text, "notebook_path new_source"),
        {**_all(_is_text, "cell_id cell_type edit_mode"), "cell_number": _is_count},
    ),
    "Glob": _Inputs({"pattern": _is_text}, {"path": _is_text}),
    "Grep": _Inputs(
        {"pattern": _is_text},
        {
            **_all(_is_text, "path glob type output_mode"),
            **_all(_is_count, "-A -B -C context head_limit offset"),
            **_all(_is_flag, "-n -i -o multiline"),
        },
    ),
    "Bash": _SHELL,
    "PowerShell": _SHELL,
    "Skill": _Inputs({"skill": _is_text}, {"args": _is_text}),
    "TodoWrite": _Inputs({"todos": _is_anything}),
    "ToolSearch": _Inputs({"query": _is_text}, {"max_results": _is_count}),
    "AskUserQuestion": _Inputs(
        {"questions": _is_anything}, _all(_is_anything, "answers annotations metadata")
    ),
    "WebFetch": _Inputs(_all(_is_text, "url prompt")),
}

KNOWN_TOOLS = frozenset(_INPUTS)
"""Every built-in tool that the policy can judge, by its exact name."""


def is_too_deep(given: object) -> bool:
    """Return whether an input is nested deeper than any tool needs; an engine may have cut what lies below."""
    level: list[Any] = [given]
    for _ in range(MAX_DEPTH + 1):
        level = [value for value in level if isinstance(value, Mapping | list)]
        if not level:
            return False
        level = [
            inner
            for container in level
            for inner in (container.values() if isinstance(container, Mapping) else container)
        ]
    return True


def find_input_fault(tool: str, given: object) -> str | None:
    """Return what is wrong with a tool's input, to follow "was called"; `None` if nothing is."""
    if not isinstance(given, Mapping):
        return "without an input object"
    inputs = _INPUTS[tool]
    for key in inputs.required:
        if key not in given:
            return f"without {key}"
    checks = {**inputs.required, **inputs.optional}
    for key, value in given.items():
        if key not in checks:
            return f"with the unknown input {show(str(key))}"
        if not checks[key](value):
            return f"with a wrong value for {key}"
    return None
