"""The judgement of one POSIX command line: `judge_command`.

An approved line is one allowed command with literal words, listed options and paths inside. It is quoted
anew from the judged words, with its globs expanded, so that the shell interprets nothing: what was approved
is what runs.
"""

import os
import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from policies.paths.workspace import Workspace
from policies.shell.commands import GRAMMARS
from policies.shell.effects import CHANGING, judge_effects
from policies.shell.globs import Budget, Expansion, expand
from policies.shell.grammar import read_words
from policies.shell.options import Invocation, divide
from policies.shell.unknown_commands import refuse_command
from policies.shell.words import Word, split_words
from policies.verdict import CommandApproval, Deny

MAX_RUN_CHARS = 30_000

_ASSIGNMENT = re.compile(r"\w+\+?=")


def _read_command_name(words: Sequence[Word], commands: Collection[str]) -> str | Deny:
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
    """Refuse removing or moving everything at the root or in the working directory."""
    if command not in {"rm", "mv"} or expansion.base is None:
        return None
    base = workspace.locate(expansion.base)
    if isinstance(base, Deny):
        return base
    if not base.is_root and os.path.normpath(expansion.base) != ".":
        return None
    root = base.real if base.is_root else workspace.real_root
    if not expansion.names_nothing and not _takes_everything(expansion, root):
        return None
    return Deny(
        "glob_root",
        f"The pattern would make {command} take everything there is.",
        "Name the files and folders one by one, or the folder before the pattern.",
    )


def _takes_everything(expansion: Expansion, root: str) -> bool:
    visible = {path.name for path in Path(root).iterdir() if not path.name.startswith(".")}
    taken = {name.rstrip("/").rpartition("/")[2] for name in expansion.names}
    return len(visible) > 1 and visible <= taken


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
    """Quote for bash, and for zsh, which replaces a leading bare `=` by a program's path."""
    return f"'{word}'" if word.startswith("=") and "'" not in word else shlex.quote(word)


def _approve(invocation: Invocation) -> CommandApproval | Deny:
    line = " ".join(_quote(word) for word in invocation.words)
    if len(line) > MAX_RUN_CHARS:
        return Deny("command_too_long", "The pattern makes the command too long.", "Narrow it.")
    return CommandApproval(
        rule=f"bash_{invocation.command}",
        command=invocation.command,
        line=line,
        paths=invocation.paths or (".",),
        changes=invocation.command in CHANGING,
    )


def judge_command(
    command: str, workspace: Workspace, commands: Collection[str]
) -> CommandApproval | Deny:
    """Judge a command line by the commands that are allowed."""
    words = split_words(command)
    if isinstance(words, Deny):
        return words
    name = _read_command_name(words, commands)
    if isinstance(name, Deny):
        return name
    fault = _find_disagreement(command, words) or workspace.find_cwd_fault()
    if fault is not None:
        return fault
    expanded = _expand_all(name, words[1:], workspace)
    invocation = expanded if isinstance(expanded, Deny) else divide(name, expanded)
    if isinstance(invocation, Deny):
        return invocation
    fault = _find_operand_fault(invocation) or judge_effects(invocation, workspace)
    return fault or _approve(invocation)
