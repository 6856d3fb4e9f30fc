"""Commands that the policy does not know, so that a person may be asked about them.

The person is asked about one program with literal words, exactly as it would run. A word that may
name something outside, a secret or configuration that acts keeps the command forbidden, and so do
the shell's operators. What the program does with its words nobody here knows: where a kernel's wall
stands, that is what confines it.
"""

import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
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
_GIT_NETWORK = _names("git_network")
_UNKNOWN_OPTIONS = frozenset({"cat", "diff", "file", "head", "pwd", "stat", "tail", "wc"})
"""Known commands whose unknown options may be asked about: they read what they name. Others change
something, or follow links where an option says so."""

_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]*", re.ASCII)
_VERSION = "0123456789."
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


def judge_unknown(command: str, workspace: Workspace) -> UnknownCommand:
    """Return a command that is only unknown, or refuse it as forbidden."""
    words = split_words(command)
    if read_words(command) != tuple(word.text for word in words):
        raise denied("parsers_disagree")
    name = words[0].text
    plain = name.casefold()  # some systems find `sudo` under the name `Sudo`
    if not words[0].bare or not _NAME.fullmatch(name) or plain in _NEVER:
        raise refuse_command(name, ())
    if is_refused(plain) or (plain in GRAMMARS and name not in _UNKNOWN_OPTIONS):
        raise refuse_command(plain, ())
    workspace.check_cwd()
    given = expand_all(name, words[1:], workspace)
    for word in given:
        for path in _possible_paths(word):
            workspace.locate(path).check_change()
    count = len(tuple(takewhile(_FILE.fullmatch, reversed(given))))
    fixed, files = given[: len(given) - count], given[len(given) - count :]
    return UnknownCommand(
        command=name,
        line=quote_line([name, *given]),
        fixed=tuple(fixed),
        files=tuple(files),
        may_be_remembered=_may_be_remembered(plain, fixed),
    )


def _possible_paths(word: str) -> Iterator[str]:
    """Yield whatever of a word a program may take for a path."""
    if not word.startswith("-"):
        yield word
    elif attached := _SHORT_OPTION.fullmatch(word):
        yield attached[1].lstrip("=")
    for sign in "=:,@":
        yield from filter(None, word.split(sign)[1:])


def _may_be_remembered(name: str, fixed: Sequence[str]) -> bool:
    if not _ONCE.isdisjoint({name, name.rstrip(_VERSION)}):
        return False
    return name != "git" or _is_plain_git(fixed)


def _is_plain_git(fixed: Collection[str]) -> bool:
    """Return whether git's words reach no other machine and set no configuration."""
    first = next(iter(fixed), "-")
    if first.startswith("-") or first in _GIT_NETWORK:
        return False
    return not any(word.startswith(("-c", "--config", "--exec", "--upload")) for word in fixed)
