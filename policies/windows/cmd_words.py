"""The division of a line for cmd into switches and names; everything else is refused.

PowerShell knows `del`, `move`, `copy` and `ren` too, so a name must mean the same to both: in PowerShell
brackets are a pattern and - begins a parameter, in cmd / begins a switch.
"""

import re
from dataclasses import dataclass

from policies.verdict import Deny
from policies.visible_text import BLANK, MAX_WORDS, TOO_MANY_WORDS, DenialText, show
from policies.windows.lines import (
    INNER_QUOTE,
    SMART_DOUBLE,
    SMART_SINGLE,
    UNCLOSED_QUOTE,
    find_plain_fault,
)
from policies.windows.workspace import WindowsWorkspace

_QUOTE = "Put the name in double quotes."
_RENAME = "Use Remove-Item, Move-Item or Copy-Item with the name in single quotes."

_PLAIN: dict[str, DenialText] = {
    "'": ("single_quote", "cmd does not quote with single quotes.", _QUOTE),
    ",": ("delimiter_comma", "A comma separates names in cmd.", _QUOTE),
    "=": ("delimiter_equals", "An equals sign separates names in cmd.", _QUOTE),
    "+": ("concatenation", "A plus sign joins files in cmd.", _QUOTE),
    "[": ("bracket", "PowerShell would read a bracket as a pattern.", _RENAME),
    "]": ("bracket", "PowerShell would read a bracket as a pattern.", _RENAME),
}
_QUOTED: dict[str, DenialText] = {
    "%": ("variable_percent", "cmd expands %X% also in quotes.", _RENAME),
    "!": ("variable_delayed", "cmd may expand !X! also in quotes.", _RENAME),
    "^": ("caret", "^ may escape characters in cmd.", _RENAME),
    "$": ("variable_dollar", "PowerShell expands $ in double quotes.", _RENAME),
    "`": ("backtick", "A backtick escapes characters in PowerShell.", _RENAME),
    "[": _PLAIN["["],
    "]": _PLAIN["]"],
}
_SWITCHES = re.compile(r"(?:/-?[A-Za-z])+")
_SWITCH = re.compile(r"/-?[A-Za-z]")


@dataclass(frozen=True, slots=True)
class CmdWords:
    """The words of one line after its verb."""

    switches: tuple[str, ...]
    """In lower case, one each, with the slash."""
    names: tuple[str, ...]
    """Paths and patterns without their quotes."""


_WORD = re.compile(r'[ \t]*(?:"(?P<quoted>[^"]*)(?P<end>"?)|(?P<plain>[^ \t"]+))(?P<next>[^ \t]?)')


def _find_quoted_fault(inner: str) -> Deny | None:
    for char in inner:
        if char in _QUOTED:
            return Deny(*_QUOTED[char])
        if char in SMART_DOUBLE or char in SMART_SINGLE:
            return find_plain_fault(char, 0, starts=False)
    return None


def _find_plain_fault(match: re.Match[str]) -> Deny | None:
    start, end = match.span("plain")
    for at in range(start, end):
        fault = find_plain_fault(match.string, at, starts=at == start)
        if fault is not None or match.string[at] in _PLAIN:
            return fault or Deny(*_PLAIN[match.string[at]])
    return None


def _find_name_fault(word: str, workspace: WindowsWorkspace) -> Deny | None:
    """Refuse a plain word that is neither a switch nor a name."""
    if word.startswith("-"):
        return Deny(
            "dash", "A name that begins with - is a parameter to PowerShell.", "Put .\\ before it."
        )
    below = workspace.strip_root(word)
    if "/" not in (word if below is None else word[len(word) - len(below) :]):
        return None
    if word.startswith("/") and "\\" not in word:
        return Deny(
            "switch_not_allowed", f"{show(word)} is no switch allowed here.", "Leave it out."
        )
    return Deny("slash_in_name", "/ begins a switch in cmd.", "Separate folders with a backslash.")


def _read_word(match: re.Match[str], workspace: WindowsWorkspace) -> str | Deny:
    """Return a name or a group of switches."""
    word = match["plain"]
    if word is None:
        if not match["end"]:
            return UNCLOSED_QUOTE
        fault = _find_quoted_fault(match["quoted"])
        return fault or (INNER_QUOTE if match["next"] else match["quoted"])
    fault = _find_plain_fault(match) or (INNER_QUOTE if match["next"] else None)
    if fault is not None or _SWITCHES.fullmatch(word):
        return fault or word
    return _find_name_fault(word, workspace) or word


def split_cmd_words(text: str, workspace: WindowsWorkspace) -> CmdWords | Deny:
    """Split what follows a verb of cmd, or refuse it; linear in its length."""
    switches: list[str] = []
    names: list[str] = []
    for match in _WORD.finditer(text.rstrip(BLANK)):
        word = _read_word(match, workspace)
        if isinstance(word, Deny):
            return word
        if match["plain"] is not None and _SWITCHES.fullmatch(word):
            switches += (switch.lower() for switch in _SWITCH.findall(word))
        else:
            names.append(word)
        if len(names) + len(switches) > MAX_WORDS:
            return TOO_MANY_WORDS
    return CmdWords(tuple(switches), tuple(names))
