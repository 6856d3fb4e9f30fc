"""The judgement of one POSIX command line: `judge_command`.

An approved line is one allowed command with literal words, listed options and paths inside. It is quoted
anew from the judged words, with its globs expanded, so that the shell interprets nothing: what was approved
is what runs.
"""

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from policies.paths.workspace import Workspace
from policies.shell.commands import GRAMMARS
from policies.shell.effects import CHANGING, judge_effects
from policies.shell.globs import Budget, Expansion, expand
from policies.shell.grammar import read_words
from policies.shell.options import Invocation, divide
from policies.shell.words import Word, split_words
from policies.verdict import CommandApproval, Refused
from policies.visible_text import show

_ONE_COMMAND = "Run one command in each call, by its plain name."

_KEYWORDS = frozenset(
    "if then elif else fi for while until do done in select case esac function time coproc "
    "[[ [ test ]] ! { }".split()
)
_RUNNERS = frozenset(
    "env sudo doas su nohup timeout nice ionice setsid stdbuf watch xargs parallel busybox command "
    "builtin exec eval source . chroot bash sh zsh dash ksh fish pwsh script unshare ssh strace".split()
)
_STATE = frozenset(
    "alias unalias export declare typeset local readonly unset set let shopt enable hash trap umask "
    "ulimit bind complete mapfile read".split()
)
_INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("find", "fd", "tree", "du", "stat"), "Use the Glob tool to find files."),
    **dict.fromkeys(
        ("grep", "egrep", "fgrep", "rg", "ag"), "Use the Grep tool to search in files."
    ),
    **dict.fromkeys(
        ("head", "tail", "less", "more", "sed", "awk", "wc", "file", "diff"), "Use the Read tool."
    ),
    **dict.fromkeys(("echo", "printf", "tee", "touch", "dd"), "Use the Write tool."),
    **dict.fromkeys(("cd", "pushd", "popd"), "Give each path in full, relative to the workspace."),
    "rmdir": "Use rm -d for an empty folder.",
    "pwd": "Paths are relative to the workspace; use . for it.",
}


def refuse_command(name: str, allowed: Collection[str]) -> Refused:
    """Return the denial of a command that is not in `allowed`."""
    shown, listed = show(name), f"Allowed are {', '.join(sorted(allowed))}."
    if name in _KEYWORDS:
        reason = f"{shown} belongs to the shell's own language; only plain commands are allowed."
        return Refused("keyword", reason, _ONE_COMMAND)
    if name in _RUNNERS:
        reason = f"{shown} would run something else that was not looked at."
        return Refused("command_runner", reason, _ONE_COMMAND)
    if name in _STATE:
        reason = f"{shown} changes the shell itself, which later commands would share."
        return Refused("shell_state", reason, _ONE_COMMAND)
    if "/" in name:
        reason = f"A program is not started by its path, as in {shown}."
        return Refused("command_path", reason, listed)
    hint = _INSTEAD.get(name, listed)
    return Refused("command_not_allowed", f"The command {shown} is not allowed.", hint)


MAX_RUN_CHARS = 30_000

_ASSIGNMENT = re.compile(r"\w+\+?=")


def _read_command_name(words: Sequence[Word], commands: Collection[str]) -> str:
    if not words:
        allowed = f"Allowed are {', '.join(sorted(commands))}."
        raise Refused("command_empty", "The command is empty.", allowed)
    word = words[0]
    if _ASSIGNMENT.match(word.text):
        raise Refused(
            "assignment",
            "Setting variables, also before a command, is not allowed.",
            "Run the command by itself.",
        )
    if word.text not in GRAMMARS or word.text not in commands:
        raise refuse_command(word.text, commands)
    if not word.bare:
        raise Refused(
            "command_quoted",
            "The command's name must be written plainly.",
            f"Write {word.text} without quotes.",
        )
    return word.text


def _check_sweep(command: str, expansion: Expansion, workspace: Workspace) -> None:
    """Refuse removing or moving everything at the root or in the working directory."""
    if command not in {"rm", "mv"} or expansion.base is None:
        return
    base = workspace.locate(expansion.base)
    if not base.is_root and os.path.normpath(expansion.base) != ".":
        return
    root = base.real if base.is_root else workspace.real_root
    if expansion.names_nothing or _takes_everything(expansion, root):
        raise Refused(
            "glob_root",
            f"The pattern would make {command} take everything there is.",
            "Name the files and folders one by one, or the folder before the pattern.",
        )


def _takes_everything(expansion: Expansion, root: str) -> bool:
    visible = {path.name for path in Path(root).iterdir() if not path.name.startswith(".")}
    taken = {name.rstrip("/").rpartition("/")[2] for name in expansion.names}
    return len(visible) > 1 and visible <= taken


def _expand_all(command: str, words: Sequence[Word], workspace: Workspace) -> list[str]:
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
        raise Refused(
            "operands", f"{invocation.command} needs {needs}.", "Name the file or folder."
        )
    if grammar.most is not None and count > grammar.most:
        raise Refused(
            "operands", f"{invocation.command} takes at most {grammar.most} paths.", "Name fewer."
        )
    for path in invocation.paths:
        if path == "-":
            raise Refused("operand_dash", "- means the standard input.", "Name a file.")
        if path.startswith("="):
            raise Refused("equals", "A name must not begin with =.", "Put ./ before it.")


def _quote(word: str) -> str:
    """Quote for bash, and for zsh, which replaces a leading bare `=` by a program's path."""
    return f"'{word}'" if word.startswith("=") and "'" not in word else shlex.quote(word)


def _approve(invocation: Invocation) -> CommandApproval:
    line = " ".join(_quote(word) for word in invocation.words)
    if len(line) > MAX_RUN_CHARS:
        raise Refused("command_too_long", "The pattern makes the command too long.", "Narrow it.")
    return CommandApproval(
        rule=f"bash_{invocation.command}",
        command=invocation.command,
        line=line,
        paths=invocation.paths or (".",),
        changes=invocation.command in CHANGING,
        options=(*invocation.options, *invocation.expression),
    )


def judge_command(command: str, workspace: Workspace, commands: Collection[str]) -> CommandApproval:
    """Approve a command line by the commands that are allowed, or refuse it."""
    words = split_words(command)
    name = _read_command_name(words, commands)
    if read_words(command) != tuple(word.text for word in words):
        raise Refused(
            "parsers_disagree",
            "Two readings of the command find different words in it.",
            "Write every name in single quotes, with one space between the words.",
        )
    workspace.check_cwd()
    invocation = divide(name, _expand_all(name, words[1:], workspace))
    _check_operands(invocation)
    judge_effects(invocation, workspace)
    return _approve(invocation)
