"""Which inputs each tool may carry, and of which sort.

An input that is not listed is refused: a newer tool may mean something by it that nobody judged.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from policies.paths.workspace import show

MAX_DEPTH = 32
"""How deep a tool's input may be nested."""

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


_INPUTS: Mapping[str, _Inputs] = {
    "Read": _Inputs(
        {"file_path": _is_text}, {"offset": _is_count, "limit": _is_count, "pages": _is_text}
    ),
    "Write": _Inputs({"file_path": _is_text, "content": _is_text}),
    "Edit": _Inputs(
        {"file_path": _is_text, "old_string": _is_text, "new_string": _is_text},
        {"replace_all": _is_flag},
    ),
    "NotebookEdit": _Inputs(
        {"notebook_path": _is_text, "new_source": _is_text},
        {
            **dict.fromkeys(("cell_id", "cell_type", "edit_mode"), _is_text),
            "cell_number": _is_count,
        },
    ),
    "Glob": _Inputs({"pattern": _is_text}, {"path": _is_text}),
    "Grep": _Inputs(
        {"pattern": _is_text},
        {
            **dict.fromkeys(("path", "glob", "type", "output_mode"), _is_text),
            **dict.fromkeys(("-A", "-B", "-C", "context", "head_limit", "offset"), _is_count),
            **dict.fromkeys(("-n", "-i", "-o", "multiline"), _is_flag),
        },
    ),
    "Bash": _Inputs(
        {"command": _is_text},
        {
            "description": _is_text,
            "timeout": _is_count,
            **dict.fromkeys(("run_in_background", "dangerouslyDisableSandbox"), _is_anything),
        },
    ),
    "PowerShell": _Inputs(
        {"command": _is_text},
        {
            "description": _is_text,
            "timeout": _is_count,
            **dict.fromkeys(("run_in_background", "dangerouslyDisableSandbox"), _is_anything),
        },
    ),
    "Skill": _Inputs({"skill": _is_text}, {"args": _is_text}),
    "TodoWrite": _Inputs({"todos": _is_anything}),
    "ToolSearch": _Inputs({"query": _is_text}, {"max_results": _is_count}),
    "AskUserQuestion": _Inputs(
        {"questions": _is_anything},
        dict.fromkeys(("answers", "annotations", "metadata"), _is_anything),
    ),
    "WebFetch": _Inputs({"url": _is_text, "prompt": _is_text}),
}

KNOWN_TOOLS = frozenset(_INPUTS)
"""Every built-in tool that the policy can judge, by its exact name."""


def is_too_deep(given: object) -> bool:
    """Return whether an input is nested deeper than any tool needs; an engine may have cut what lies below."""
    level = [given]
    for _ in range(MAX_DEPTH):
        containers = [one for one in level if isinstance(one, Mapping | list)]
        level = [
            inner
            for one in containers
            for inner in (one.values() if isinstance(one, Mapping) else one)
        ]
    return any(isinstance(one, Mapping | list) for one in level)


def find_input_fault(tool: str, given: object) -> str | None:
    """Say what is wrong with a tool's input, to follow "was called"; `None`: nothing is."""
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
