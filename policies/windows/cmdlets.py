"""The parameters of each cmdlet (`cmdlets.toml`), and the binding of arguments to them.

Abbreviations and aliases of parameters are refused: a newer PowerShell may resolve them to something else.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from policies.denials import denied
from policies.visible_text import show
from policies.windows.powershell_words import Argument

_PATHS = frozenset({"path", "literalpath"})


@dataclass(frozen=True, slots=True)
class Cmdlet:
    """The parameters of one cmdlet, in lower case."""

    name: str
    positional: tuple[str, ...]
    values: Mapping[str, re.Pattern[str]]
    """Parameters that take one value, and what that may be."""
    switches: frozenset[str]
    lists: frozenset[str]
    """Parameters that take one or several values."""


_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _read_cmdlet(told: Mapping[str, str]) -> Cmdlet:
    return Cmdlet(
        name=told["name"],
        positional=tuple(told["positional"].split()),
        values={name: re.compile(_TOLD["values"][name]) for name in told["values"].split()},
        switches=frozenset(told["switches"].split()),
        lists=frozenset(told["lists"].split()),
    )


CMDLETS: Mapping[str, Cmdlet] = {
    name: _read_cmdlet(told) for name, told in _TOLD["cmdlets"].items()
}


@dataclass(frozen=True, slots=True)
class Bound:
    """One cmdlet with its parameters."""

    cmdlet: Cmdlet
    values: Mapping[str, tuple[str, ...]]
    switches: Mapping[str, bool]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the values of a parameter; empty: it is not given."""
        return self.values.get(name, ())

    def text(self, name: str) -> str | None:
        """Return the one value of a parameter; `None`: it is not given."""
        return next(iter(self.texts(name)), None)


def bind(cmdlet: Cmdlet, arguments: Sequence[Argument]) -> Bound:
    """Bind the arguments as PowerShell would, or refuse them."""
    values: dict[str, tuple[str, ...]] = {}
    switches: dict[str, bool] = {}
    loose: list[tuple[str, ...]] = []
    awaiting: str | None = None  # a parameter whose value is the next argument
    for argument in arguments:
        name = argument.parameter
        if awaiting is not None and name is None:
            values[awaiting] = _check_value(cmdlet, awaiting, argument.elements)
            awaiting = None
        elif awaiting is not None:
            break
        elif name is None:
            loose.append(argument.elements)
        elif name in values or name in switches:
            raise denied("parameter_twice.bind", name)
        elif name in cmdlet.switches:
            switches[name] = argument.constant is not False
        else:
            _check_parameter(cmdlet, argument, name)
            awaiting = name
    if awaiting is not None:
        raise denied("value_missing", awaiting)
    _bind_loose(cmdlet, values, loose)
    return Bound(cmdlet, values, switches)


def _check_parameter(cmdlet: Cmdlet, argument: Argument, name: str) -> None:
    if name not in cmdlet.lists and name not in cmdlet.values:
        known = sorted({*cmdlet.lists, *cmdlet.values, *cmdlet.switches})
        raise denied("parameter_not_allowed", cmdlet.name, show(name), ", -".join(known))
    if argument.constant is not None:
        raise denied("variable_dollar")


def _check_value(cmdlet: Cmdlet, name: str, elements: tuple[str, ...]) -> tuple[str, ...]:
    allowed = cmdlet.values.get(name)
    if any(not element for element in elements):
        raise denied("value_empty", name)
    if allowed is not None and (len(elements) > 1 or not allowed.fullmatch(elements[0])):
        key = "item_type" if name == "itemtype" else "parameter_value.other"
        hint = _TOLD["hints"].get(name, "Give it one plain value.")
        raise denied(key, name, show(elements[0]), hint)
    return elements


def _bind_loose(
    cmdlet: Cmdlet, values: dict[str, tuple[str, ...]], loose: Sequence[tuple[str, ...]]
) -> None:
    """Bind the values without a name to the positional parameters that are left."""
    taken = values.keys() | ({"path"} if "literalpath" in values else set())
    free = [name for name in cmdlet.positional if name not in taken]
    if len(loose) > len(free):
        raise denied("operands.loose", cmdlet.name)
    for name, elements in zip(free, loose, strict=False):
        values[name] = _check_value(cmdlet, name, elements)
    if values.keys() >= _PATHS:
        raise denied("parameter_twice")
