"""The judgement of one POSIX command line: `judge_command`.

An approved line is one allowed command with literal words, listed options and paths inside. It is
quoted anew from the judged words, with its globs expanded, so that the shell interprets nothing:
what was approved is what runs.
"""

import os
import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from policies.denials import alternatives, denied, refused_commands
from policies.paths.workspace import Workspace
from policies.shell.commands import GRAMMARS
from policies.shell.effects import CHANGING, judge_effects
from policies.shell.globs import Budget, Expansion, expand
from policies.shell.grammar import read_words
from policies.shell.options import Invocation, divide
from policies.shell.words import Word, split_words
from policies.verdict import CommandApproval, Refused
from policies.visible_text import show

_REFUSED = refused_commands("bash")
_INSTEAD = alternatives("bash")


def refuse_command(name: str, allowed: Collection[str]) -> Refused:
    """Return the denial of a command that is not in `allowed`."""
    shown, listed = show(name), f"Allowed are {', '.join(sorted(allowed))}."
    if name in _REFUSED:
        return denied(_REFUSED[name], shown)
    if "/" in name:
        return denied("command_path", shown, listed)
    return denied("command_not_allowed", shown, _INSTEAD.get(name, listed))


def is_refused(name: str) -> bool:
    """Return whether no list can allow a command."""
    return name in _REFUSED


MAX_RUN_CHARS = 30_000

_ASSIGNMENT = re.compile(r"\w+\+?=")


def _read_command_name(words: Sequence[Word], commands: Collection[str]) -> str:
    if not words:
        raise denied("command_empty", f"Allowed are {', '.join(sorted(commands))}.")
    word = words[0]
    if _ASSIGNMENT.match(word.text):
        raise denied("assignment")
    if word.text not in GRAMMARS or word.text not in commands:
        raise refuse_command(word.text, commands)
    if not word.bare:
        raise denied("command_quoted", word.text)
    return word.text


def _check_sweep(command: str, expansion: Expansion, workspace: Workspace) -> None:
    if command not in {"rm", "mv"} or expansion.base is None:
        return
    base = workspace.locate(expansion.base)
    if not base.is_root and os.path.normpath(expansion.base) != ".":
        return
    root = base.real if base.is_root else workspace.real_root
    if expansion.names_nothing or _takes_everything(expansion, root):
        raise denied("glob_root", command)


def _takes_everything(expansion: Expansion, root: str) -> bool:
    visible = {path.name for path in Path(root).iterdir() if not path.name.startswith(".")}
    taken = {name.rstrip("/").rpartition("/")[2] for name in expansion.names}
    return len(visible) > 1 and visible <= taken


def expand_all(command: str, words: Sequence[Word], workspace: Workspace) -> list[str]:
    """Return the words of a command with their patterns expanded."""
    budget = Budget()
    names: list[str] = []
    for word in words:
        expansion = expand(word, workspace, budget)
        _check_sweep(command, expansion, workspace)
        names += expansion.names
    return names


def _check_operands(invocation: Invocation) -> None:
    grammar, count = GRAMMARS[invocation.command], len(invocation.operands)
    if count < grammar.least:
        needs = "a path" if grammar.least == 1 else f"{grammar.least} paths"
        raise denied("operands.operands", invocation.command, needs)
    if grammar.most is not None and count > grammar.most:
        raise denied("operands.operands_2", invocation.command, grammar.most)
    for path in invocation.paths:
        if path == "-":
            raise denied("operand_dash")
        if path.startswith("="):
            raise denied("equals")


def _quote(word: str) -> str:
    """Quote for bash, and for zsh, which replaces a leading bare `=` by a program's path."""
    return f"'{word}'" if word.startswith("=") and "'" not in word else shlex.quote(word)


def quote_line(words: Sequence[str]) -> str:
    """Return words as a line that the shell reads back as they are."""
    line = " ".join(map(_quote, words))
    if len(line) > MAX_RUN_CHARS:
        raise denied("command_too_long")
    return line


def _approve(invocation: Invocation) -> CommandApproval:
    return CommandApproval(
        rule=f"bash_{invocation.command}",
        command=invocation.command,
        line=quote_line(invocation.words),
        paths=invocation.paths or (".",),
        changes=invocation.command in CHANGING,
        options=(*invocation.options, *invocation.expression),
    )


def judge_command(command: str, workspace: Workspace, commands: Collection[str]) -> CommandApproval:
    """Approve a command line by the commands that are allowed, or refuse it."""
    words = split_words(command)
    name = _read_command_name(words, commands)
    if read_words(command) != tuple(word.text for word in words):
        raise denied("parsers_disagree")
    workspace.check_cwd()
    invocation = divide(name, expand_all(name, words[1:], workspace))
    _check_operands(invocation)
    judge_effects(invocation, workspace)
    return _approve(invocation)
