"""Judges one POSIX command line: `validate_bash_command`.

Six commands, literal words, listed options, paths inside. What comes out of an allowed command is a line
quoted anew from the judged words, globs already expanded, so that the shell has nothing left to interpret:
what was approved is what runs.
"""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from policies.effects import CHANGING, judge_effects
from policies.globs import Budget, Expansion, expand
from policies.options import GRAMMARS, Invocation, divide
from policies.paths import Workspace, show
from policies.verdict import Allow, Deny, Verdict
from policies.words import Word, split_words

MAX_RUN_CHARS = 30_000

_ASSIGNMENT = re.compile(r"\w+\+?=")
_COMMANDS = ", ".join(sorted(GRAMMARS))
_INSTEAD = {
    **dict.fromkeys(("find", "fd", "tree", "du", "stat"), "Use the Glob tool to find files."),
    **dict.fromkeys(
        ("grep", "egrep", "fgrep", "rg", "ag"), "Use the Grep tool to search in files."
    ),
    **dict.fromkeys(("head", "tail", "less", "more", "sed", "awk", "wc"), "Use the Read tool."),
    **dict.fromkeys(("echo", "printf", "tee", "touch", "dd"), "Use the Write tool."),
    **dict.fromkeys(("cd", "pushd", "popd"), "Give each path in full, relative to the workspace."),
    "rmdir": "Use rm -d for an empty folder.",
    "pwd": "Paths are relative to the workspace; use . for it.",
}
_NEEDS_OPERAND = {"rm", "mkdir", "cat", "mv", "cp"}


def _read_command_word(words: Sequence[Word]) -> str | Deny:
    if not words:
        return Deny("command_empty", "The command is empty.", f"Allowed are {_COMMANDS}.")
    word = words[0]
    if _ASSIGNMENT.match(word.text):
        return Deny(
            "assignment",
            "Setting variables, also before a command, is not allowed.",
            "Run the command by itself.",
        )
    if word.text not in GRAMMARS:
        hint = _INSTEAD.get(word.text, f"Allowed are {_COMMANDS}.")
        return Deny("command_not_allowed", f"The command {show(word.text)} is not allowed.", hint)
    if not word.bare:
        return Deny(
            "command_quoted",
            "The command's name must be written plainly.",
            f"Write {word.text} without quotes.",
        )
    return word.text


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
    swept = expansion.names_nothing or _sweeps_all(expansion, workspace)
    if not swept:
        return None
    return Deny(
        "glob_root",
        f"The pattern would make {command} take everything there is.",
        "Name the files and folders one by one, or the folder before the pattern.",
    )


def _sweeps_all(expansion: Expansion, workspace: Workspace) -> bool:
    visible = {p.name for p in Path(workspace.real_root).iterdir() if not p.name.startswith(".")}
    hit = {name.rstrip("/").rpartition("/")[2] for name in expansion.names}
    return len(visible) > 1 and visible <= hit


def _expand_all(command: str, words: Sequence[Word], workspace: Workspace) -> list[str] | Deny:
    budget = Budget()
    names: list[str] = []
    for word in words:
        if word.is_glob and word.text.startswith("-"):
            return Deny("option_glob", "An option must not hold a pattern.", "Write it out.")
        expansion = expand(word, workspace, budget)
        if isinstance(expansion, Deny):
            return expansion
        fault = _find_sweep(command, expansion, workspace)
        if fault is not None:
            return fault
        names += expansion.names
    return names


def _find_operand_fault(invocation: Invocation) -> Deny | None:
    if not invocation.operands and invocation.command in _NEEDS_OPERAND:
        return Deny("operands", f"{invocation.command} needs a path.", "Name the file or folder.")
    for operand in (*invocation.operands, *invocation.meanings.values()):
        if operand == "-":
            return Deny("operand_dash", "- means the standard input.", "Name a file.")
        if operand.startswith("="):
            return Deny("equals", "A name must not begin with =.", "Put ./ before it.")
    return None


def _validate(command: str, workspace: Workspace) -> Verdict:
    words = split_words(command)
    if isinstance(words, Deny):
        return words
    name = _read_command_word(words)
    if isinstance(name, Deny):
        return name
    fault = workspace.find_cwd_fault()
    if fault is not None:
        return fault
    expanded = _expand_all(name, words[1:], workspace)
    if isinstance(expanded, Deny):
        return expanded
    invocation = divide(name, expanded)
    if isinstance(invocation, Deny):
        return invocation
    fault = _find_operand_fault(invocation) or judge_effects(invocation, workspace)
    return fault or _approve(invocation)


def _approve(invocation: Invocation) -> Verdict:
    line = shlex.join([invocation.command, *invocation.options, "--", *invocation.operands])
    if len(line) > MAX_RUN_CHARS:
        return Deny("command_too_long", "The pattern makes the command too long.", "Narrow it.")
    return Allow(
        f"bash_{invocation.command}",
        "A listed command with every path inside the workspace.",
        {"command": line},
        changes=invocation.command in CHANGING,
    )


def validate_bash_command(command: str, *, root: Path, cwd: Path | str) -> Verdict:
    """Judge a command line; never raises.

    Relative paths start from `cwd`, which must be inside `root`. An `Allow` carries
    `{"command": line}`: the same command quoted anew, which is what has to run.
    """
    try:
        return _validate(command, Workspace(root, cwd))
    except Exception as fault:  # noqa: BLE001 - whatever goes wrong in a gate must close it
        return Deny("policy_error", f"The policy failed on this command ({type(fault).__name__}).")
