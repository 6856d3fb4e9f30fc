"""Divides a command's words into options and operands, or refuses them.

Programs accept abbreviations, bundles and options after operands, so every word is read the way GNU's do
and handed on in one plain form. Which options there are stands in `commands`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.paths.workspace import show
from policies.shell.commands import GRAMMARS
from policies.verdict import Deny

_SHORTHAND = re.compile(r"-\d{1,9}")
_ONCE = frozenset({"target-directory", "reference"})
"""Options of which the last one would win."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One command, divided."""

    command: str
    options: tuple[str, ...]
    """As they will run, one word each."""
    meanings: Mapping[str, str]
    """The options that matter to the policy by their long name, with their value or nothing."""
    operands: tuple[str, ...]
    """Paths, every one."""
    reads: tuple[str, ...] = ()
    """Further paths that options name, to be read."""
    expression: tuple[str, ...] = ()
    """What follows the operands (`find` alone)."""

    def has(self, name: str) -> bool:
        """Say whether an option is given, in whichever spelling."""
        return name in self.meanings

    @property
    def words(self) -> tuple[str, ...]:
        """Give the whole command as it will run."""
        end = () if self.command in {"find", "pwd"} else ("--",)
        return (self.command, *self.options, *end, *self.operands, *self.expression)

    @property
    def paths(self) -> tuple[str, ...]:
        """Give every path in it."""
        target = self.meanings.get("target-directory")
        return (*self.operands, *self.reads, *(() if target is None else (target,)))


class _Divider:
    """Reads the words of one command after its name."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.grammar = GRAMMARS[command]
        self.options: list[str] = []
        self.meanings: dict[str, str] = {}
        self.operands: list[str] = []
        self.reads: list[str] = []
        self.awaiting: str | None = None
        """An option, dashes included, whose value is the next word."""

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
        return None if self.awaiting is None else self._refuse(self.awaiting)

    def _take_long(self, text: str) -> Deny | None:
        name, equals, value = text.partition("=")
        if not equals and name in self.grammar.long_flags:
            self.options.append(f"--{name}")
            return self._mean(name, "")
        if not equals and name in self.grammar.long_values:
            self.awaiting = f"--{name}"
            return None
        allowed = self.grammar.long_values.get(name)
        if not equals or allowed is None or not allowed.fullmatch(value):
            return self._refuse(f"--{text}")
        self.options.append(f"--{text}")
        return self._mean(name, value)

    def _take_bundle(self, letters: str) -> Deny | None:
        if self.grammar.number_option is not None and _SHORTHAND.fullmatch(f"-{letters}"):
            self.options += [self.grammar.number_option, letters]
            return None
        for i, letter in enumerate(letters):
            if letter in self.grammar.short_values:
                rest = letters[i + 1 :]
                self.awaiting = f"-{letter}"
                return self._take_value(self.awaiting, rest) if rest else None
            if letter not in self.grammar.flags:
                return self._refuse(f"-{letter}")
            self.options.append(f"-{letter}")
            fault = self._mean(letter, "")
            if fault is not None:
                return fault
        return None

    def _take_value(self, option: str, value: str) -> Deny | None:
        self.awaiting = None
        if option.startswith("--"):
            return self._take_long(f"{option[2:]}={value}")
        letter = option[1:]
        if not self.grammar.short_values[letter].fullmatch(value):
            return self._refuse(f"{option} {value}")
        self.options += [option, value]
        return self._mean(letter, value)

    def _mean(self, name: str, value: str) -> Deny | None:
        meaning = self.grammar.aliases.get(name, name)
        if meaning in _ONCE and meaning in self.meanings:
            return self._refuse(f"a second --{meaning}")
        if meaning in self.grammar.read_values:
            self.reads.append(value)
        self.meanings[meaning] = value
        return None

    def _refuse(self, option: str) -> Deny:
        return Deny(
            "option_not_allowed",
            f"{self.command} does not take {show(option)} here.",
            "Leave the option out, or write a listed one in full.",
        )


def divide(command: str, words: Sequence[str]) -> Invocation | Deny:
    """Divide the words after a known command's name into options and operands, or refuse them."""
    divider = _Divider(command)
    fault = divider.read(words)
    if fault is not None:
        return fault
    return Invocation(
        command,
        tuple(divider.options),
        divider.meanings,
        tuple(divider.operands),
        tuple(divider.reads),
    )
