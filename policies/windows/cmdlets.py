"""The parameters of each cmdlet, and the binding of arguments to them.

Abbreviations and aliases of parameters are refused: a newer PowerShell may resolve them to something else.
Parameters that write variables, reach other machines, follow or make links are not listed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.verdict import Deny
from policies.visible_text import show
from policies.windows.powershell_words import Argument

_PATHS = frozenset({"path", "literalpath"})
_PATTERNS = frozenset({"include", "exclude"})
_ANY_TEXT = re.compile(r".+", re.DOTALL)
_SAFE = {
    "filter": _ANY_TEXT,
    "erroraction": re.compile("silentlycontinue|stop|continue|ignore", re.IGNORECASE),
}
_COMMON = frozenset({"verbose", "whatif", "confirm"})


@dataclass(frozen=True, slots=True)
class Cmdlet:
    """The parameters of one cmdlet, in lower case."""

    name: str
    positional: tuple[str, ...]
    lists: frozenset[str]
    """Parameters that take one or several values."""
    values: Mapping[str, re.Pattern[str]]
    """Parameters that take one value, and what that may be."""
    switches: frozenset[str]


def _cmdlet(
    name: str,
    *switches: str,
    values: Mapping[str, re.Pattern[str]],
    positional: tuple[str, ...] = ("path",),
    lists: frozenset[str] = _PATHS | _PATTERNS,
) -> Cmdlet:
    return Cmdlet(name, positional, lists, {**_SAFE, **values}, _COMMON | set(switches))


_TO_TARGET = {"destination": _ANY_TEXT}
CMDLETS: Mapping[str, Cmdlet] = {
    "remove-item": _cmdlet("Remove-Item", "recurse", "force", values={}),
    "move-item": _cmdlet(
        "Move-Item", "force", "passthru", values=_TO_TARGET, positional=("path", "destination")
    ),
    "copy-item": _cmdlet(
        "Copy-Item",
        *("recurse", "force", "passthru"),
        values=_TO_TARGET,
        positional=("path", "destination"),
    ),
    "new-item": Cmdlet(
        "New-Item",
        ("path",),
        frozenset({"path"}),
        {
            "name": _ANY_TEXT,
            "value": _ANY_TEXT,
            "itemtype": re.compile("file|directory", re.IGNORECASE),
            "erroraction": _SAFE["erroraction"],
        },
        _COMMON | {"force"},
    ),
    "get-childitem": Cmdlet(
        "Get-ChildItem",
        ("path", "filter"),
        _PATHS | _PATTERNS,
        {**_SAFE, "depth": re.compile(r"\d{1,4}")},
        frozenset({"recurse", "force", "name", "file", "directory", "hidden", "readonly"})
        | {"system", "verbose"},
    ),
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


class _Binder:
    """The arguments of one cmdlet, bound one after the other."""

    def __init__(self, cmdlet: Cmdlet) -> None:
        self.cmdlet = cmdlet
        self.values: dict[str, tuple[str, ...]] = {}
        self.switches: dict[str, bool] = {}
        self.loose: list[tuple[str, ...]] = []
        self.awaiting: str | None = None
        """A parameter whose value is the next argument."""

    def take(self, argument: Argument) -> Deny | None:
        name = argument.parameter
        if self.awaiting is not None:
            awaiting, self.awaiting = self.awaiting, None
            if name is not None:
                return _refuse_missing(awaiting)
            return self._bind(awaiting, argument.elements)
        if name is None:
            self.loose.append(argument.elements)
            return None
        if name in self.values or name in self.switches:
            return Deny("parameter_twice", f"-{name} is given twice.", "Give it once.")
        is_switch = name in self.cmdlet.switches
        return self._switch(name, argument) if is_switch else self._take_value(name, argument)

    def _switch(self, name: str, argument: Argument) -> Deny | None:
        if argument.elements:
            return Deny(
                "switch_value", f"-{name} takes no such value.", "Write the switch by itself."
            )
        self.switches[name] = argument.constant is not False
        return None

    def _take_value(self, name: str, argument: Argument) -> Deny | None:
        if name not in self.cmdlet.lists and name not in self.cmdlet.values:
            known = sorted({*self.cmdlet.lists, *self.cmdlet.values, *self.cmdlet.switches})
            return Deny(
                "parameter_not_allowed",
                f"{self.cmdlet.name} does not take -{show(name)} here.",
                f"Write a listed parameter in full: -{', -'.join(known)}.",
            )
        if argument.constant is not None:
            return Deny("variable_dollar", "Variables are not expanded here.", "Write the value.")
        if argument.elements:
            return self._bind(name, argument.elements)
        self.awaiting = name
        return None

    def _bind(self, name: str, elements: tuple[str, ...]) -> Deny | None:
        allowed = self.cmdlet.values.get(name)
        if any(not element for element in elements):
            return Deny("value_empty", f"-{name} has an empty value.", "Write the value out.")
        if allowed is not None and (len(elements) > 1 or not allowed.fullmatch(elements[0])):
            return Deny(
                "item_type" if name == "itemtype" else "parameter_value",
                f"-{name} does not take {show(elements[0])} here.",
                _VALUE_HINTS.get(name, "Give it one plain value."),
            )
        self.values[name] = elements
        return None

    def finish(self) -> Deny | None:
        """Bind the values without a name to the positional parameters that are left."""
        if self.awaiting is not None:
            return _refuse_missing(self.awaiting)
        taken = self.values.keys() | ({"path"} if "literalpath" in self.values else set())
        free = [name for name in self.cmdlet.positional if name not in taken]
        if len(self.loose) > len(free):
            return Deny(
                "operands",
                f"{self.cmdlet.name} takes fewer values without a parameter's name.",
                "Put commas between several names, as in 'a','b'.",
            )
        for name, elements in zip(free, self.loose, strict=False):
            fault = self._bind(name, elements)
            if fault is not None:
                return fault
        if self.values.keys() >= _PATHS:
            return Deny("parameter_twice", "Give -Path or -LiteralPath, not both.", None)
        return None


def _refuse_missing(name: str) -> Deny:
    return Deny("value_missing", f"-{name} has no value.", "Write the value after it.")


_VALUE_HINTS = {
    "itemtype": "Allowed are File and Directory; links are not made here.",
    "erroraction": "Allowed are SilentlyContinue, Stop, Continue and Ignore.",
    "depth": "Give a number.",
}


def bind(cmdlet: Cmdlet, arguments: Sequence[Argument]) -> Bound | Deny:
    """Bind the arguments as PowerShell would, or refuse them."""
    binder = _Binder(cmdlet)
    for argument in arguments:
        fault = binder.take(argument)
        if fault is not None:
            return fault
    return binder.finish() or Bound(cmdlet, binder.values, binder.switches)
