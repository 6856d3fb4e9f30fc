"""The denials of the policy by name; `denials.toml` holds their rules, reasons and hints."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from policies.verdict import Refused

_TOLD = tomllib.loads(Path(__file__).with_name("denials.toml").read_text(encoding="utf-8"))


def denied(key: str, *shown: object, interrupt: bool = False) -> Refused:
    """Return the denial of a key, with the values of `shown` in its reason and its hint."""
    reason, *hint = (text.format(*shown) for text in _TOLD[key])
    return Refused(key.partition(".")[0], reason, *hint, interrupt=interrupt)


def refused_signs(table: str) -> Mapping[str, tuple[str, ...]]:
    """Return the signs of one table, each with the arguments of its `Refused`, the longer signs
    first.
    """
    found = {
        sign: (key.partition(".")[0], reason, hint)
        for hint, rules in _TOLD["signs"][table].items()
        for key, (signs, reason) in rules.items()
        for sign in signs
    }
    return {sign: found[sign] for sign in sorted(found, key=len, reverse=True)}


def refused_commands(shell: str) -> Mapping[str, str]:
    """Return the key of the denial of each command that a shell knows and the
    policy never allows.
    """
    return {name: key for key, names in _TOLD["commands"][shell].items() for name in names.split()}


def alternatives(shell: str) -> Mapping[str, str]:
    """Return what to use in place of a command that is not allowed."""
    return {name: hint for hint, names in _TOLD["instead"][shell].items() for name in names.split()}
