"""Judges one POSIX command line: `judge_command`.

One allowed command, literal words, listed options, paths inside. What comes out of an allowed command is a
line quoted anew from the judged words, globs already expanded, so that the shell has nothing left to
interpret: what was approved is what runs.
"""

import os
import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from policies.paths.workspace import Workspace
from policies.shell.commands import GRAMMARS
from policies.shell.effects import CHANGING, judge_effects
from policies.shell.globs import Budget, Expansion, expand
from policies.shell.grammar import read_words
from policies.shell.options import Invocation, divide
from policies.shell.searches import divide_find, divide_grep
from policies.shell.unknown_commands import refuse_command
from policies.shell.words import Word, split_words
from policies.verdict import Allow, Deny

MAX_RUN_CHARS = 30_000

_ASSIGNMENT = re.compile(r"\w+\+?=")


@dataclass(frozen=True, slots=True)
class Approval:
    """A command that may run."""

    invocation: Invocation
    line: str
    """What has to run: the judged words, quoted anew."""


def _read_command_word(words: Sequence[Word], commands: Collection[str]) -> str | Deny:
    if not words:
        allowed = f"Allowed are {', '.join(sorted(commands))}."
        return Deny("command_empty", "The command is empty.", allowed)
    word = words[0]
    if _ASSIGNMENT.match(word.text):
        return Deny(
            "assignment",
            "Setting variables, also before a command, is not allowed.",
            "Run the command by itself.",
        )
    if word.text not in GRAMMARS or word.text not in commands:
        return refuse_command(word.text, commands)
    if not word.bare:
        return Deny(
            "command_quoted",
            "The command's name must be written plainly.",
            f"Write {word.text} without quotes.",
        )
    return word.text


def _find_disagreement(command: str, words: Sequence[Word]) -> Deny | None:
    if read_words(command) == tuple(word.text for word in words):
        return None
    return Deny(
        "parsers_disagree",
        "Two readings of the command find different words in it.",
        "Write every name in single quotes, with one space between the words.",
    )


def _find_sweep(command: str, expansion: Expansion, workspace: Workspace) -> Deny | None:
    """Refuse taking everything from the root, or from wherever the command happens to run."""
    if command not in {"rm", "mv"} or expansion.base is None:
        return None
    base = workspace.locate(expansion.base)
    if isinstance(base, Deny):
        return base
    here = base.is_root or os.path.normpath(expansion.base) == "."
    if not here:
        return None
    root = base.real if base.is_root else workspace.real_root
    swept = expansion.names_nothing or _sweeps_all(expansion, root)
    if not swept:
        return None
    return Deny(
        "glob_root",
        f"The pattern would make {command} take everything there is.",
        "Name the files and folders one by one, or the folder before the pattern.",
    )


def _sweeps_all(expansion: Expansion, root: str) -> bool:
    visible = {p.name for p in Path(root).iterdir() if not p.name.startswith(".")}
    hit = {name.rstrip("/").rpartition("/")[2] for name in expansion.names}
    return len(visible) > 1 and visible <= hit


def _expand_all(command: str, words: Sequence[Word], workspace: Workspace) -> list[str] | Deny:
    budget = Budget()
    names: list[str] = []
    for word in words:
        expansion = expand(word, workspace, budget)
        if isinstance(expansion, Deny):
            return expansion
        fault = _find_sweep(command, expansion, workspace)
        if fault is not None:
            return fault
        names += expansion.names
    return names


def _divide(command: str, words: Sequence[str]) -> Invocation | Deny:
    match command:
        case "find":
            return divide_find(words)
        case "grep":
            return divide_grep(words)
        case _:
            return divide(command, words)


def _find_operand_fault(invocation: Invocation) -> Deny | None:
    grammar, count = GRAMMARS[invocation.command], len(invocation.operands)
    if count < grammar.least:
        needs = "a path" if grammar.least == 1 else f"{grammar.least} paths"
        return Deny("operands", f"{invocation.command} needs {needs}.", "Name the file or folder.")
    if grammar.most is not None and count > grammar.most:
        return Deny(
            "operands", f"{invocation.command} takes at most {grammar.most} paths.", "Name fewer."
        )
    for path in invocation.paths:
        if path == "-":
            return Deny("operand_dash", "- means the standard input.", "Name a file.")
        if path.startswith("="):
            return Deny("equals", "A name must not begin with =.", "Put ./ before it.")
    return None


def _quote(word: str) -> str:
    """Quote for bash, and for zsh, which takes a bare `=` at a word's start for a program's path."""
    return f"'{word}'" if word.startswith("=") and "'" not in word else shlex.quote(word)


def judge_command(command: str, workspace: Workspace, commands: Collection[str]) -> Approval | Deny:
    """Judge a command line by the commands that are allowed."""
    words = split_words(command)
    if isinstance(words, Deny):
        return words
    name = _read_command_word(words, commands)
    if isinstance(name, Deny):
        return name
    fault = _find_disagreement(command, words) or workspace.find_cwd_fault()
    if fault is not None:
        return fault
    expanded = _expand_all(name, words[1:], workspace)
    invocation = expanded if isinstance(expanded, Deny) else _divide(name, expanded)
    if isinstance(invocation, Deny):
        return invocation
    fault = _find_operand_fault(invocation) or judge_effects(invocation, workspace)
    return fault or _approve(invocation)


def _approve(invocation: Invocation) -> Approval | Deny:
    line = " ".join(_quote(word) for word in invocation.words)
    if len(line) > MAX_RUN_CHARS:
        return Deny("command_too_long", "The pattern makes the command too long.", "Narrow it.")
    return Approval(invocation, line)


def describe_approval(approval: Approval) -> Allow:
    """Give the verdict on an approved command."""
    name = approval.invocation.command
    return Allow(
        f"bash_{name}",
        "A listed command with every path inside the workspace.",
        {"command": approval.line},
        changes=name in CHANGING,
    )
