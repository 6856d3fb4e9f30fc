"""Commands that the policy does not know, so that a person may be asked about them.

The person is asked about one program with literal words, exactly as it would run. A word that may
name something outside, a secret or configuration that acts keeps the command forbidden, and so do
the shell's operators. What the program does with its words nobody here knows: where a kernel's wall
stands, that is what confines it.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from policies.denials import denied
from policies.paths.workspace import Workspace
from policies.shell.commands import GRAMMARS
from policies.shell.grammar import read_words
from policies.shell.judge import expand_all, is_refused, quote_line, refuse_command
from policies.shell.words import split_words

UNKNOWN_RULES = frozenset({"command_not_allowed", "option_not_allowed"})
"""The rules of denials that say no more than that something is not on a list."""

_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _names(key: str) -> frozenset[str]:
    return frozenset(_TOLD[key].split())


_NEVER = _names("never")
_ONCE = _names("interpreters") | _names("network")
_UNKNOWN_OPTIONS = frozenset({"cat", "diff", "file", "head", "pwd", "stat", "tail", "wc"})
"""Known commands whose unknown options may be asked about: they read what they name. Others change
something, or follow links where an option says so."""

_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*", re.ASCII)
_VERSION = "0123456789.-"
"""What the name of a program may end in, as `python3.12`."""
_FILE = re.compile(r"(?!-)[^:=]*[^:=][/.][^:=]*|\./[^:=]*")
"""A word that is plainly a file argument: it holds a slash or a dot behind its first character, and
is neither an option, an address nor an assignment. Words such as `publish` never are, whatever
files there may be: else the agent could choose a sub-command by making a file of its name."""
_SHORT_OPTION = re.compile(r"-[A-Za-z0-9](.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownCommand:
    """A command that a person may be asked about."""

    command: str
    line: str
    """What would run: the judged words, quoted anew."""
    fixed: tuple[str, ...]
    """The words behind the name, up to the file arguments at the end."""
    files: tuple[str, ...]
    """The file arguments at the end."""
    may_be_remembered: bool
    """A yes may stand for the same words with other files, too."""
    is_ordinary: bool
    """A yes to the policy's rule may stand for it."""


@dataclass(frozen=True, slots=True)
class _Ordinary:
    """A program whose words start nothing and reach nothing, as far as they are listed."""

    subcommands: frozenset[str]
    """What its first word must be; empty: anything."""
    options: frozenset[str]

    def takes(self, words: Sequence[str]) -> bool:
        """Return whether all words are listed, or are no options; an assignment is neither."""
        if self.subcommands and self.subcommands.isdisjoint(words[:1]):
            return False
        return all(
            word in self.options if word.startswith("-") else "=" not in word for word in words
        )


def _read_ordinary(told: Mapping[str, str]) -> _Ordinary:
    subcommands, options = told.get("subcommands", ""), told.get("options", "")
    return _Ordinary(frozenset(subcommands.split()), frozenset(options.split()))


_ORDINARY = {name: _read_ordinary(told) for name, told in _TOLD["ordinary"].items()}


def judge_unknown(command: str, workspace: Workspace) -> UnknownCommand:
    """Return a command that is only unknown, or refuse it as forbidden."""
    words = split_words(command)
    if read_words(command) != tuple(word.text for word in words):
        raise denied("parsers_disagree")
    name = words[0].text
    plain = name.casefold()  # some systems find `sudo` under the name `Sudo`
    unversioned = plain.rstrip(_VERSION)
    if not words[0].bare or not _NAME.fullmatch(name) or plain in _NEVER:
        raise refuse_command(name, ())
    if is_refused(plain) or (plain in GRAMMARS and name not in _UNKNOWN_OPTIONS):
        raise refuse_command(plain, ())
    if is_refused(unversioned):
        raise refuse_command(unversioned, ())
    workspace.check_cwd()
    given = expand_all(name, words[1:], workspace)
    for word in given:
        for path in _possible_paths(word):
            workspace.locate(path).check_change()
    count = len(tuple(takewhile(_FILE.fullmatch, reversed(given))))
    fixed, files = given[: len(given) - count], given[len(given) - count :]
    known = _ORDINARY.get(plain)
    is_ordinary = name == plain and known is not None and known.takes(given)
    has_subcommands = known is not None and bool(known.subcommands)
    return UnknownCommand(
        command=name,
        line=quote_line([name, *given]),
        fixed=tuple(fixed),
        files=tuple(files),
        may_be_remembered=(
            is_ordinary if has_subcommands else _ONCE.isdisjoint({plain, unversioned})
        ),
        is_ordinary=is_ordinary,
    )


def _possible_paths(word: str) -> Iterator[str]:
    """Yield whatever of a word a program may take for a path."""
    if not word.startswith("-"):
        yield word
    elif attached := _SHORT_OPTION.fullmatch(word):
        yield attached[1].lstrip("=")
    for sign in "=:,@":
        yield from filter(None, word.split(sign)[1:])
