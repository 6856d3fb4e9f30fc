"""The commands that the policy knows, and the options that each of them
may carry: `commands.toml`.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_Values = Mapping[str, re.Pattern[str]]

_KINDS: Mapping[str, str] = {
    "BLOCK_SIZE": r"\d{0,9}[KMGTkmgt]?B?|human-readable|si",
    "COUNT": r"[-+]?\d{1,9}",
    "DATE": r"(?a)[\w :+\-./,]{1,64}",
    "DEPTH": r"\d{1,4}",
    "FILE_SIZE": r"[-+]?\d{1,9}[bcwkMG]?",
    "FILE_TYPES": r"[bcdflps](?:,[bcdflps])*",
    "KEPT": "(?:mode|ownership|timestamps|all)(?:,(?:mode|ownership|timestamps|all))*",
    "LEAST_SIZE": r"-?\d{1,9}[KMGT]?",
    "MODE": "0?[0-7]{3}|[ugoa]{0,4}[-+=][rwxX]*(?:,[ugoa]{0,4}[-+=][rwxX]*)*",
    # not a path: where an option takes no value (`ls -I` on macOS) it would be an operand
    "NAME_PATTERN": "[^-/][^/]*",
    "NUMBER": r"\d{1,9}",
    "SOME_TEXT": "(?s).+",
    "STAMP": r"\d{8,12}(?:\.\d\d)?",
    "TEXT": "(?s).*",
    "UPDATE": "all|none|none-fail|older",
    "WHEN": "always|auto|never",
    "WORD": "(?s)[^-].*",
}
"""What the value of an option may be, by the name that `commands.toml` uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The options of one command, and how many operands it takes."""

    flags: str
    """Short options without a value."""
    long_flags: frozenset[str]
    short_values: _Values = field(default_factory=dict)
    """Short options with a value, and what the value may be."""
    long_values: _Values = field(default_factory=dict)
    """Long options with a value, which is optional if the name is also in `long_flags`."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Options that the policy must understand, by their long name."""
    read_values: frozenset[str] = frozenset()
    """Long names of options whose value is a file to be read."""
    number_option: str | None = None
    """The option that `-5` stands for."""
    least: int = 1
    most: int | None = None
    """The number of operands; `None`: no limit."""


def _read_kind(told: str) -> re.Pattern[str]:
    """Return what a value may be: a kind, or one of the words in the table."""
    return re.compile(_KINDS.get(told, told))


def _read_grammar(told: Mapping[str, Any]) -> Grammar:
    def values(key: str) -> _Values:
        texts: Mapping[str, str] = told.get(key, {})
        return {name: _read_kind(text) for name, text in texts.items()}

    return Grammar(
        flags=told.get("flags", ""),
        long_flags=frozenset(told.get("long_flags", "").split()),
        short_values=values("short_values"),
        long_values=values("long_values"),
        aliases=told.get("aliases", {}),
        read_values=frozenset(told.get("read_values", "").split()),
        number_option=told.get("number_option"),
        least=told.get("least", 1),
        most=told.get("most"),
    )


_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
GRAMMARS: Mapping[str, Grammar] = {
    name: _read_grammar(told) for name, told in _TOLD["commands"].items()
}
"""Every command that the policy knows."""
FIND_WORDS = frozenset(_TOLD["find"]["words"].split())
"""The parts of an expression of `find` that stand alone."""
FIND_VALUES: Mapping[str, re.Pattern[str]] = {
    word: _read_kind(kind)
    for kind, words in _TOLD["find"]["values"].items()
    for word in words.split()
}
"""Those that take a value, and what it may be."""
