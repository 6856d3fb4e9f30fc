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


class _Splitter:
    """One pass over the words of one line."""

    def __init__(self, text: str, workspace: WindowsWorkspace) -> None:
        self.text = text
        self.at = 0
        self.workspace = workspace
        self.switches: list[str] = []
        self.names: list[str] = []

    def run(self) -> CmdWords | Deny:
        while self.at < len(self.text):
            if self.text[self.at] in BLANK:
                self.at += 1
                continue
            fault = self._take_quoted() if self.text[self.at] == '"' else self._take_plain()
            if fault is not None:
                return fault
            if len(self.names) + len(self.switches) > MAX_WORDS:
                return TOO_MANY_WORDS
        return CmdWords(tuple(self.switches), tuple(self.names))

    def _take_quoted(self) -> Deny | None:
        end = self.text.find('"', self.at + 1)
        if end < 0:
            return UNCLOSED_QUOTE
        inner = self.text[self.at + 1 : end]
        for char in inner:
            if char in _QUOTED:
                return Deny(*_QUOTED[char])
            if char in SMART_DOUBLE or char in SMART_SINGLE:
                return find_plain_fault(char, 0, starts=False)
        if self.text[end + 1 : end + 2] not in {"", *BLANK}:
            return INNER_QUOTE
        self.at = end + 1
        self.names.append(inner)
        return None

    def _take_plain(self) -> Deny | None:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in BLANK:
            char = self.text[self.at]
            if char == '"':
                return INNER_QUOTE
            fault = find_plain_fault(self.text, self.at, starts=self.at == start)
            if fault is not None:
                return fault
            if char in _PLAIN:
                return Deny(*_PLAIN[char])
            self.at += 1
        return self._sort(self.text[start : self.at])

    def _sort(self, word: str) -> Deny | None:
        if word.startswith("-"):
            return Deny(
                "dash",
                "A name that begins with - is a parameter to PowerShell.",
                "Put .\\ before it.",
            )
        if _SWITCHES.fullmatch(word):
            self.switches += (switch.lower() for switch in _SWITCH.findall(word))
            return None
        below = self.workspace.strip_root(word)
        if "/" not in (word if below is None else word[len(word) - len(below) :]):
            self.names.append(word)
            return None
        if word.startswith("/") and "\\" not in word:
            return Deny(
                "switch_not_allowed", f"{show(word)} is no switch allowed here.", "Leave it out."
            )
        return Deny(
            "slash_in_name", "/ begins a switch in cmd.", "Separate folders with a backslash."
        )


def split_cmd_words(text: str, workspace: WindowsWorkspace) -> CmdWords | Deny:
    """Split what follows a verb of cmd, or refuse it; linear in its length."""
    return _Splitter(text, workspace).run()
