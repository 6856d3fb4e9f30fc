"""The division of a command's words into options and operands.

Programs accept abbreviations, bundles and options after operands, so every word is read as GNU's
programs read it and handed on in one plain form. `commands` lists the options.

Two commands are read differently. Of `find` only tests and printing are known: whatever runs,
writes, deletes or follows links is refused. `grep` takes a pattern before its paths, and gets
options that leave out files with secrets in every folder.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from policies.denials import denied
from policies.paths.protected import secret_folders_any_case, secret_patterns_any_case
from policies.shell.commands import FIND_VALUES, FIND_WORDS, GRAMMARS
from policies.verdict import Refused
from policies.visible_text import show

_SHORTHAND = re.compile(r"-\d{1,9}")
_ONCE = frozenset({"target-directory", "reference"})
"""Options of which the last one would win."""
MAX_EXPRESSION_WORDS = 100


@dataclass(frozen=True, slots=True)
class Invocation:
    """One command, divided."""

    command: str
    options: tuple[str, ...]
    """As they will run, one word each."""
    meanings: Mapping[str, str]
    """The options that matter to the policy by their long name, with their value or nothing."""
    operands: tuple[str, ...]
    """All of them are paths."""
    reads: tuple[str, ...] = ()
    """Further paths that options name, to be read."""
    expression: tuple[str, ...] = ()
    """What follows the operands (`find` alone)."""

    def has(self, name: str) -> bool:
        """Return whether an option is given, in whichever spelling."""
        return name in self.meanings

    @property
    def words(self) -> tuple[str, ...]:
        """Return the whole command as it will run."""
        end = () if self.command in {"find", "pwd"} else ("--",)
        return (self.command, *self.options, *end, *self.operands, *self.expression)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return every path in it."""
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

    def read(self, words: Sequence[str]) -> Invocation:
        for i, word in enumerate(words):
            if self.awaiting is not None:
                self._take_value(self.awaiting, word)
            elif word == "--":
                self.operands += words[i + 1 :]
                break
            elif word.startswith("--"):
                self._take_long(word[2:])
            elif word.startswith("-") and word != "-":
                self._take_bundle(word[1:])
            else:
                self.operands.append(word)
        if self.awaiting is not None:
            raise self._refusal(self.awaiting)
        given = tuple(self.options), self.meanings, tuple(self.operands), tuple(self.reads)
        return Invocation(self.command, *given)

    def _take_long(self, text: str) -> None:
        name, equals, value = text.partition("=")
        allowed = self.grammar.long_values.get(name)
        if not equals and name in self.grammar.long_flags:
            pass
        elif not equals and allowed is not None:
            self.awaiting = f"--{name}"
            return
        elif not equals or allowed is None or not allowed.fullmatch(value):
            raise self._refusal(f"--{text}")
        self.options.append(f"--{text}")
        self._mean(name, value)

    def _take_bundle(self, letters: str) -> None:
        if self.grammar.number_option is not None and _SHORTHAND.fullmatch(f"-{letters}"):
            self.options += [self.grammar.number_option, letters]
            return
        for i, letter in enumerate(letters):
            if letter in self.grammar.short_values:
                self.awaiting = f"-{letter}"
                if rest := letters[i + 1 :]:
                    self._take_value(self.awaiting, rest)
                return
            if letter not in self.grammar.flags:
                raise self._refusal(f"-{letter}")
            self.options.append(f"-{letter}")
            self._mean(letter, "")

    def _take_value(self, option: str, value: str) -> None:
        self.awaiting = None
        if option.startswith("--"):
            self._take_long(f"{option[2:]}={value}")
            return
        if not self.grammar.short_values[option[1:]].fullmatch(value):
            raise self._refusal(f"{option} {value}")
        self.options += [option, value]
        self._mean(option[1:], value)

    def _mean(self, name: str, value: str) -> None:
        meaning = self.grammar.aliases.get(name, name)
        if meaning in _ONCE and meaning in self.meanings:
            raise self._refusal(f"a second --{meaning}")
        if meaning in self.grammar.read_values:
            self.reads.append(value)
        self.meanings[meaning] = value

    def _refusal(self, option: str) -> Refused:
        return denied("option_not_allowed", self.command, show(option))


def _divide_find(words: Sequence[str]) -> Invocation:
    """Divide the words after `find` into paths and expression, or refuse them.

    `find` knows no `--`, so a path that could be taken for a part of the expression gets `./`
    before it.
    """
    begins = (
        i for i, word in enumerate(words) if word.startswith("-") or word in {"!", "(", ")", ","}
    )
    end = next(begins, len(words))
    expression = words[end:]
    reads = _read_expression(expression)
    paths = tuple(_plain_path(word) for word in words[:end]) or (".",)
    return Invocation("find", (), {}, paths, reads, tuple(expression))


def _plain_path(word: str) -> str:
    plain = not word or word[0].isalnum() or word[0] in "._/~"
    return word if plain else f"./{word}"


def _read_expression(expression: Sequence[str]) -> tuple[str, ...]:
    """Check every word of an expression; gives the paths in it."""
    if len(expression) > MAX_EXPRESSION_WORDS:
        raise denied("find_expression")
    reads: list[str] = []
    words = iter(expression)
    for word in words:
        if word in FIND_WORDS:
            continue
        allowed = FIND_VALUES.get(word)
        value = "" if allowed is None else next(words, "")
        if allowed is None or not allowed.fullmatch(value):
            shown = word if allowed is None else f"{word} {value}"
            raise denied(
                "option_not_allowed.expression", show(shown.strip()), " ".join(sorted(FIND_VALUES))
            )
        if word == "-newer":
            reads.append(value)
    return tuple(reads)


def _divide_grep(words: Sequence[str]) -> Invocation:
    """Divide the words after `grep`; the pattern becomes an option, so that operands are paths
    alone.
    """
    invocation = _Divider("grep").read(words)
    options, operands = invocation.options, invocation.operands
    if not invocation.has("regexp") and not invocation.has("file"):
        if not operands:
            raise denied("operands.divide_grep")
        options, operands = (*options, "-e", operands[0]), operands[1:]
    if invocation.has("recursive"):
        options, operands = (*options, *_exclusions()), operands or (".",)
    return replace(invocation, options=options, operands=operands)


def _exclusions() -> tuple[str, ...]:
    """Return the options that leave out secrets; they go last, because the last match wins."""
    patterns = secret_patterns_any_case()
    return (
        *(f"--exclude={pattern}" for pattern in patterns),
        *(f"--exclude-dir={pattern}" for pattern in (*patterns, *secret_folders_any_case())),
    )


def divide(command: str, words: Sequence[str]) -> Invocation:
    """Divide the words after a known command's name into options and operands, or refuse them."""
    match command:
        case "find":
            return _divide_find(words)
        case "grep":
            return _divide_grep(words)
        case _:
            return _Divider(command).read(words)
