"""The commands that are understood on Windows, and the binding of words to their parameters.

Abbreviations of parameters are refused: a newer PowerShell may resolve them to something else. So
are parameters that write variables, reach other machines, or make or follow links.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.denials import denied
from policies.visible_text import show
from policies.windows.words import Word

_SPELLED = {
    name.lower(): name
    for name in "Path LiteralPath Destination Filter ItemType Value Depth ErrorAction "
    "Recurse Force Name File Directory Hidden".split()
}
"""Every parameter that is understood, as it is written."""

_ALLOWED = {
    "Filter": re.compile(r"(?!.*\.\.)[^\\/:~]+"),  # a pattern of names, not a path
    "ItemType": re.compile(r"file|directory", re.IGNORECASE),  # no links
    "Depth": re.compile(r"\d{1,4}"),
    "ErrorAction": re.compile(r"silentlycontinue|stop|continue|ignore", re.IGNORECASE),
}
"""What the value of a parameter may be; others take any text."""
_LISTS = frozenset({"Path", "LiteralPath"})


@dataclass(frozen=True, slots=True)
class Command:
    """One command: the cmdlet that runs for it, and what that takes here."""

    cmdlet: str
    values: str
    """Parameters with a value, separated by spaces."""
    switches: str = ""
    positional: tuple[str, ...] = ("Path",)
    """What values without a parameter's name are for, in order."""
    slashes: Mapping[str, str] = field(default_factory=dict)
    """The switches of cmd, in lower case, and what they are in PowerShell; empty: nothing."""


_TRANSFER = "Path LiteralPath Destination ErrorAction"
_TO = ("Path", "Destination")
COMMANDS: Mapping[str, Command] = {
    "Remove-Item": Command("Remove-Item", "Path LiteralPath ErrorAction", "Recurse Force"),
    "Move-Item": Command("Move-Item", _TRANSFER, "Force", _TO),
    "Copy-Item": Command("Copy-Item", _TRANSFER, "Recurse Force", _TO),
    "New-Item": Command("New-Item", "Path ItemType Value ErrorAction", "Force"),
    "Get-ChildItem": Command(
        "Get-ChildItem",
        "Path LiteralPath Filter Depth ErrorAction",
        "Recurse Force Name File Directory Hidden",
        ("Path", "Filter"),
    ),
    "del": Command("Remove-Item", "", slashes={"/f": "Force", "/q": ""}),
    "move": Command("Move-Item", "", "", _TO, {"/y": "Force"}),
    "copy": Command("Copy-Item", "", "", _TO, {"/y": "Force"}),
    "ren": Command("Move-Item", "", "", _TO),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One command with its parameters, as PowerShell spells them."""

    name: str
    cmdlet: str
    values: Mapping[str, tuple[str, ...]]
    switches: Sequence[str]


def bind(name: str, words: Sequence[Word]) -> Call:
    """Bind the words after a command's name to its parameters, or refuse them."""
    command = COMMANDS[name]
    values: dict[str, tuple[str, ...]] = {}
    switches: list[str] = []
    loose: list[Word] = []
    rest = iter(words)
    for word in rest:
        parameter = _SPELLED.get(word.flag.removeprefix("-"), "")
        once = _LISTS if parameter in _LISTS else {parameter}
        if not word.flag:
            loose.append(word)
        elif word.flag in command.slashes:
            switches += filter(None, [command.slashes[word.flag]])
        elif parameter in command.switches.split():
            switches.append(parameter)
        elif parameter in command.values.split() and once.isdisjoint(values):
            values[parameter] = _read_value(parameter, next(rest, None))
        else:
            allowed = " ".join((*command.slashes, command.values, command.switches)).strip()
            raise denied("parameter_not_allowed", name, show(word.flag), allowed or "no parameter")
    if name == "del" and loose:  # a list of names, as in cmd
        loose = [Word(tuple(text for word in loose for text in word.texts), is_quoted=True)]
    taken = {"Path", *values} if "LiteralPath" in values else values
    free = [parameter for parameter in command.positional if parameter not in taken]
    if len(loose) > len(free):
        raise denied("operands.loose", name)
    for parameter, word in zip(free, loose, strict=False):
        values[parameter] = _read_value(parameter, word)
    return Call(name, command.cmdlet, values, tuple(dict.fromkeys(switches)))


def _read_value(parameter: str, word: Word | None) -> tuple[str, ...]:
    if word is None or word.flag.startswith("-"):
        raise denied("value_missing", parameter)
    allowed = _ALLOWED.get(parameter)
    one = parameter in _LISTS or len(word.texts) == 1
    if not one or (allowed is not None and not allowed.fullmatch(word.texts[0])):
        raise denied("parameter_value", parameter, show(word.texts[0]))
    return word.texts
