"""Which options each allowed command may carry, and how a command's words divide into options and operands.

By allow-list, with exact long names: programs accept abbreviations, bundles and options after operands, so
every word is read the way GNU's do and handed on in one plain form. Options that make links, follow links,
keep backups or take values not listed here are refused.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.paths import show
from policies.verdict import Deny

_WORD = re.compile(r"[^-].*", re.DOTALL)
_MODE = re.compile(r"0?[0-7]{3}|[ugoa]*[-+=][rwxX]*(?:,[ugoa]*[-+=][rwxX]*)*")
_NUMBER = re.compile(r"\d{1,9}")
_WHEN = re.compile("always|auto|never")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The options of one command."""

    flags: str
    """Short options without a value."""
    long_flags: frozenset[str]
    short_values: Mapping[str, re.Pattern[str]]
    """Short options with a value, and what the value may be."""
    long_values: Mapping[str, re.Pattern[str]]
    aliases: Mapping[str, str]
    """Short options that the policy must understand, by their long name."""


def _grammar(
    flags: str,
    long_flags: str,
    *,
    aliases: Mapping[str, str],
    short_values: Mapping[str, re.Pattern[str]] | None = None,
    long_values: Mapping[str, re.Pattern[str]] | None = None,
) -> Grammar:
    return Grammar(
        flags, frozenset(long_flags.split()), short_values or {}, long_values or {}, aliases
    )


GRAMMARS: Mapping[str, Grammar] = {
    "ls": _grammar(
        "1aABcCdfFghiklmnNopqQrRsStuUvxX",
        "all almost-all author ignore-backups directory classify color file-type full-time human-readable inode "
        "group-directories-first kibibytes literal no-group numeric-uid-gid quote-name recursive reverse si size "
        "hide-control-chars show-control-chars escape",
        aliases={},
        short_values={"I": _WORD, "T": _NUMBER, "w": _NUMBER},
        long_values={
            "block-size": re.compile(r"\d{0,9}[KMGTkmgt]?B?|human-readable|si"),
            "color": _WHEN,
            "hide": _WORD,
            "ignore": _WORD,
            "tabsize": _NUMBER,
            "width": _NUMBER,
            "classify": _WHEN,
            "format": re.compile("across|commas|horizontal|long|single-column|verbose|vertical"),
            "sort": re.compile("none|size|time|version|extension|width|name"),
            "time": re.compile("atime|access|use|ctime|status|birth|creation|mtime|modification"),
            "time-style": re.compile("full-iso|long-iso|iso|locale"),
            "indicator-style": re.compile("none|slash|file-type|classify"),
        },
    ),
    "cat": _grammar(
        "AbeEnstTuv",
        "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
        aliases={},
    ),
    "rm": _grammar(
        "dfiIrRv",
        "dir force interactive one-file-system preserve-root recursive verbose",
        aliases={"r": "recursive", "R": "recursive"},
        long_values={
            "interactive": re.compile("always|never|no|none|once|yes"),
            "preserve-root": re.compile("all"),
        },
    ),
    "mv": _grammar(
        "finTuv",
        "force interactive no-clobber no-target-directory update verbose",
        aliases={"T": "no-target-directory", "t": "target-directory"},
        short_values={"t": _WORD},
        long_values={
            "target-directory": _WORD,
            "update": re.compile("all|none|none-fail|older"),
        },
    ),
    "cp": _grammar(
        "adfinpPrRTuvx",
        "archive attributes-only force interactive no-clobber no-dereference no-target-directory one-file-system "
        "preserve recursive remove-destination update verbose",
        aliases={
            "a": "recursive",
            "archive": "recursive",
            "r": "recursive",
            "R": "recursive",
            "T": "no-target-directory",
            "t": "target-directory",
        },
        short_values={"t": _WORD},
        long_values={
            "target-directory": _WORD,
            "preserve": re.compile(
                "(?:mode|ownership|timestamps|all)(?:,(?:mode|ownership|timestamps|all))*"
            ),
            "reflink": _WHEN,
            "sparse": _WHEN,
            "update": re.compile("all|none|none-fail|older"),
        },
    ),
    "mkdir": _grammar(
        "pv",
        "parents verbose",
        aliases={},
        short_values={"m": _MODE},
        long_values={"mode": _MODE},
    ),
}


@dataclass(frozen=True, slots=True)
class Invocation:
    """One command, divided."""

    command: str
    options: tuple[str, ...]
    """As they will run, one word each."""
    meanings: Mapping[str, str]
    """The options that matter to the policy by their long name, with their value or nothing."""
    operands: tuple[str, ...]

    def has(self, name: str) -> bool:
        """Say whether an option is given, in whichever spelling."""
        return name in self.meanings


class _Divider:
    """Reads the words of one command after its name."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.grammar = GRAMMARS[command]
        self.options: list[str] = []
        self.meanings: dict[str, str] = {}
        self.operands: list[str] = []
        self.awaiting: str | None = None

    def read(self, words: Sequence[str]) -> Deny | None:
        for i, word in enumerate(words):
            if self.awaiting is not None:
                fault = self._take_value(self.awaiting, word)
            elif word == "--":
                self.operands += words[i + 1 :]
                return None
            elif word.startswith("--"):
                fault = self._take_long(word[2:])
            elif word.startswith("-") and word != "-":
                fault = self._take_bundle(word[1:])
            else:
                fault = None
                self.operands.append(word)
            if fault is not None:
                return fault
        return None if self.awaiting is None else self._refuse(f"-{self.awaiting}")

    def _take_long(self, text: str) -> Deny | None:
        name, equals, value = text.partition("=")
        if not equals and name in self.grammar.long_flags:
            self.options.append(f"--{name}")
            return self._mean(name, "")
        if not equals and name == "target-directory" and name in self.grammar.long_values:
            self.awaiting = "t"
            return None
        allowed = self.grammar.long_values.get(name)
        if not equals or allowed is None or not allowed.fullmatch(value):
            return self._refuse(f"--{text}")
        self.options.append(f"--{text}")
        return self._mean(name, value)

    def _take_bundle(self, letters: str) -> Deny | None:
        for i, letter in enumerate(letters):
            if letter in self.grammar.short_values:
                rest = letters[i + 1 :]
                self.awaiting = letter
                return self._take_value(letter, rest) if rest else None
            if letter not in self.grammar.flags:
                return self._refuse(f"-{letter}")
            self.options.append(f"-{letter}")
            fault = self._mean(letter, "")
            if fault is not None:
                return fault
        return None

    def _take_value(self, letter: str, value: str) -> Deny | None:
        self.awaiting = None
        if not self.grammar.short_values[letter].fullmatch(value):
            return self._refuse(f"-{letter} {value}")
        self.options += [f"-{letter}", value]
        return self._mean(letter, value)

    def _mean(self, name: str, value: str) -> Deny | None:
        meaning = self.grammar.aliases.get(name, name)
        if meaning == "target-directory" and meaning in self.meanings:
            return self._refuse("a second --target-directory")
        self.meanings[meaning] = value
        return None

    def _refuse(self, option: str) -> Deny:
        return Deny(
            "option_not_allowed",
            f"{self.command} does not take {show(option)} here.",
            "Leave the option out, or write a listed one in full.",
        )


def divide(command: str, words: Sequence[str]) -> Invocation | Deny:
    """Divide the words after an allowed command's name into options and operands, or refuse them."""
    divider = _Divider(command)
    fault = divider.read(words)
    if fault is not None:
        return fault
    return Invocation(command, tuple(divider.options), divider.meanings, tuple(divider.operands))
