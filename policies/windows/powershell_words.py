"""The division of a line for PowerShell into parameters and values; everything else is refused.

A value is a plain word, a quoted one, or several of them with commas between. Strings that PowerShell would
expand are refused, so that a value is what is written.
"""

import re
from dataclasses import dataclass

from policies.denials import denied, refused_signs
from policies.verdict import Refused
from policies.visible_text import BLANK, MAX_WORDS, show
from policies.windows.lines import SMART_DOUBLE, SMART_SINGLE, check_plain

_IN_DOUBLE = refused_signs("powershell_double_quotes")
_IN_SINGLE = refused_signs("powershell_single_quotes")
_CONSTANTS = {":$true": True, ":$false": False, "": None}
_START = re.compile(r"[ \t]*(?=[^ \t])")
_PARAMETER = re.compile(r"-([a-z]+)(:\$true|:\$false)?(?![^ \t])", re.IGNORECASE | re.ASCII)
_QUOTED = re.compile(r"'(?P<single>(?:[^']|'')*+)'|\"(?P<double>[^\"]*)\"")
_COMMA = re.compile(r"[ \t]*,[ \t]*")
_ENDS = {"", ",", *BLANK}


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter, or a value by itself."""

    parameter: str | None
    """In lower case, without the dash; `None`: a value by itself."""
    elements: tuple[str, ...]
    """The plain texts of the value, without quotes; empty: a parameter."""
    constant: bool | None = None
    """The value of `:$true` or `:$false`."""


def split_powershell_words(text: str) -> tuple[Argument, ...]:
    """Split what follows a cmdlet's name, or refuse it; linear in its length."""
    arguments: list[Argument] = []
    at = words = 0
    while start := _START.match(text, at):
        argument, at = _read_argument(text, start.end())
        arguments.append(argument)
        words += 1 + len(argument.elements)
        if words > MAX_WORDS:
            raise denied("too_many_words")
    return tuple(arguments)


def _read_argument(text: str, at: int) -> tuple[Argument, int]:
    """Read the argument that begins at a place; return it and where it ends."""
    if text.startswith("--%", at):
        check_plain(text, at, starts=True)
    if text[at] != "-":
        elements, at = _read_elements(text, at)
        return Argument(None, elements), at
    if named := _PARAMETER.match(text, at):
        return Argument(named[1].lower(), (), _CONSTANTS[(named[2] or "").lower()]), named.end()
    word = text[at:].split(maxsplit=1)[0]
    for place in range(at, at + len(word)):
        check_plain(text, place, starts=False)
    raise denied("parameter_form", show(word))


def _read_elements(text: str, at: int) -> tuple[tuple[str, ...], int]:
    elements: list[str] = []
    while True:
        element, at = _read_quoted(text, at) if text[at] in "'\"" else _read_plain(text, at)
        elements.append(element)
        comma = _COMMA.match(text, at)
        if comma is None:
            return tuple(elements), at
        at = comma.end()
        if text[at : at + 1] in {"", ",", "-"}:
            raise denied("array_form.elements")


def _read_plain(text: str, start: int) -> tuple[str, int]:
    at = start
    while text[at : at + 1] not in _ENDS:
        if text[at] in "'\"":
            raise denied("quote_inside_word")
        check_plain(text, at, starts=at == start)
        at += 1
    if at == start:
        raise denied("array_form")
    return text[start:at], at


def _read_quoted(text: str, at: int) -> tuple[str, int]:
    quoted = _QUOTED.match(text, at)
    if quoted is None:
        raise denied("unclosed_quote.windows")
    inner, rules, smart = quoted["double"], _IN_DOUBLE, SMART_DOUBLE | SMART_SINGLE
    if quoted["single"] is not None:
        inner, rules, smart = quoted["single"].replace("''", "'"), _IN_SINGLE, SMART_SINGLE
    for char in inner:
        if char in rules:
            raise Refused(*rules[char])
        if char in smart:
            check_plain(char, 0, starts=False)
    if text[quoted.end() : quoted.end() + 1] not in _ENDS:
        raise denied("quote_inside_word")
    return inner, quoted.end()


def quote_for_powershell(text: str) -> str:
    """Quote a text so that PowerShell takes it literally, and cmd and bash run nothing of it."""
    if any(char in "&|<>" for char in text):
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"
