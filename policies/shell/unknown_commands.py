"""The denial of a first word that is not an allowed command: why, and what would work instead."""

from collections.abc import Collection, Mapping

from policies.verdict import Deny
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


def refuse_command(name: str, allowed: Collection[str]) -> Deny:
    """Return the denial of a command that is not in `allowed`."""
    shown, listed = show(name), f"Allowed are {', '.join(sorted(allowed))}."
    if name in _KEYWORDS:
        reason = f"{shown} belongs to the shell's own language; only plain commands are allowed."
        return Deny("keyword", reason, _ONE_COMMAND)
    if name in _RUNNERS:
        reason = f"{shown} would run something else that was not looked at."
        return Deny("command_runner", reason, _ONE_COMMAND)
    if name in _STATE:
        reason = f"{shown} changes the shell itself, which later commands would share."
        return Deny("shell_state", reason, _ONE_COMMAND)
    if "/" in name:
        reason = f"A program is not started by its path, as in {shown}."
        return Deny("command_path", reason, listed)
    hint = _INSTEAD.get(name, listed)
    return Deny("command_not_allowed", f"The command {shown} is not allowed.", hint)
