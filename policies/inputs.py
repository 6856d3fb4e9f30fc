"""The inputs that each tool may carry, and their types.

An input that is not listed is refused, because a newer tool may give it a meaning that nobody
judged.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policies.visible_text import show

MAX_DEPTH = 32
"""The deepest nesting of a tool's input."""

_DIGITS = re.compile(r"\d{1,9}(?:\.\d+)?")


def _is_count(value: object) -> bool:
    if isinstance(value, str):
        return _DIGITS.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


_Check = Callable[[object], bool]
_CHECKS: Mapping[str, _Check] = {
    "text": lambda value: isinstance(value, str),
    "count": _is_count,
    "flag": lambda value: isinstance(value, bool) or value in {"true", "false"},
    "anything": lambda _value: True,
}


@dataclass(frozen=True, slots=True)
class _Inputs:
    required: tuple[str, ...]
    checks: Mapping[str, _Check]


def _read_inputs(told: Mapping[str, str]) -> _Inputs:
    named = [(name, kind) for kind, names in told.items() for name in names.split()]
    return _Inputs(
        required=tuple(name.removesuffix("*") for name, _ in named if name.endswith("*")),
        checks={name.removesuffix("*"): _CHECKS[kind] for name, kind in named},
    )


_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_INPUTS = {tool: _read_inputs(told) for tool, told in _TOLD.items()}

KNOWN_TOOLS = frozenset(_INPUTS)
"""Every built-in tool that the policy can judge, by its exact name."""
PARAMETERS = {tool: tuple(inputs.checks) for tool, inputs in _INPUTS.items()}
"""The names of the inputs of each of them."""


def is_too_deep(given: object) -> bool:
    """Return whether an input is nested deeper than any tool needs; an engine may have cut what
    lies below.
    """
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
    for key, value in given.items():
        if key not in inputs.checks:
            return f"with the unknown input {show(str(key))}"
        if not inputs.checks[key](value):
            return f"with a wrong value for {key}"
    return None
