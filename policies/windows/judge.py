"""The judgement of one command line on Windows: `judge_windows_command`.

The first word decides which rules apply: `del`, `move`, `copy` and `ren` are cmd's, a name such as
`Remove-Item` is PowerShell's. Whichever shell runs the line must do exactly what was judged.
"""

import re
from collections.abc import Collection, Mapping
from typing import Literal

from policies.verdict import CommandApproval, Deny
from policies.visible_text import BLANK, ONE_COMMAND, show
from policies.windows.cmd import SWITCHES, judge_cmd
from policies.windows.cmdlets import CMDLETS
from policies.windows.lines import find_line_fault, find_plain_fault
from policies.windows.powershell import judge_powershell
from policies.windows.workspace import WindowsWorkspace

Shell = Literal["any", "powershell"]

_NAMES = {**{verb: verb for verb in SWITCHES}, **{k: v.name for k, v in CMDLETS.items()}}
KNOWN_COMMANDS = frozenset(_NAMES.values())
_FIRST = re.compile(r"[^ \t]*")

_SHELLS = ("cmd", "command", "powershell", "pwsh", "bash", "sh", "wsl", "call", "start", "runas")
_MOVING = ("cd", "chdir", "pushd", "popd", "set-location", "push-location", "pop-location", "sl")
_LOOPS = ("for", "foreach", "foreach-object", "if", "while", "do", "switch", "forfiles", "param")
_INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(
        ("rm", "rd", "rmdir", "erase", "ri", "unlink", "clear-item"), "Use Remove-Item."
    ),
    **dict.fromkeys(("mv", "mi", "rename-item", "rni", "rename"), "Use Move-Item."),
    **dict.fromkeys(("cp", "cpi", "xcopy", "robocopy"), "Use Copy-Item."),
    **dict.fromkeys(("md", "mkdir", "ni", "touch"), "Use New-Item."),
    **dict.fromkeys(("dir", "ls", "gci", "tree", "where"), "Use Get-ChildItem."),
    **dict.fromkeys(("type", "cat", "gc", "more", "get-content"), "Use the Read tool."),
    **dict.fromkeys(("echo", "set-content", "add-content", "out-file"), "Use the Write tool."),
    **dict.fromkeys(("find", "findstr", "grep", "select-string"), "Use the Grep tool."),
}


def _hint(commands: Collection[str]) -> str:
    return f"Allowed are {', '.join(sorted(commands, key=str.lower)) or 'none'}."


def _refuse_verb(word: str, commands: Collection[str]) -> Deny:
    """Return what the first word is, and what would work instead."""
    name = word.casefold().removesuffix(".exe")
    if name in _SHELLS:
        return Deny("wrapper", f"{show(word)} starts another shell or program.", _hint(commands))
    if name.startswith(("cd.", "cd\\", "cd/")) or name in _MOVING:
        return Deny(
            "change_folder",
            "Changing the folder is not allowed.",
            "Give each path in full, relative to the workspace.",
        )
    if name.partition("(")[0] in _LOOPS:
        return Deny("loop", f"{show(word)} runs other commands.", ONE_COMMAND)
    fault = _find_sign_fault(word) or _find_form_fault(word)
    if fault is not None:
        return fault
    hint = _INSTEAD.get(name, _hint(commands))
    return Deny("command_not_allowed", f"The command {show(word)} is not allowed.", hint)


def _find_sign_fault(word: str) -> Deny | None:
    for at, char in enumerate(word):
        if char in "\"'":
            return Deny("command_quoted", "The command's name must be written plainly.", None)
        if char == "@" and at == 0 and word[1:2].isalpha():
            return Deny("echo_prefix", "@ before a command is not allowed.", "Leave it out.")
        if char == "[" and at == 0:
            return Deny("type_literal", "Calls of .NET are not allowed.", "Use a listed command.")
        fault = find_plain_fault(word, at, starts=at == 0)
        if fault is not None:
            return fault
    return None


def _find_form_fault(word: str) -> Deny | None:
    if "=" in word:
        return Deny("assignment", "Setting variables is not allowed.", "Run the command by itself.")
    if "\\" in word or "/" in word:
        return Deny(
            "command_qualified",
            "A command must be named without a module, a path or a switch.",
            "Write its name alone, with a space after it.",
        )
    return None


def _read_verb(line: str, shell: Shell, commands: Collection[str]) -> str | Deny:
    match = _FIRST.match(line)
    word = "" if match is None else match.group()
    if not word:
        return Deny("command_empty", "The command is empty.", _hint(commands))
    verb = word.casefold()
    if not word.isascii() or _NAMES.get(verb) not in commands:
        return _refuse_verb(word, commands)
    if verb in SWITCHES and shell == "powershell":
        return Deny(
            "alias",
            f"{show(word)} stands for another command in PowerShell.",
            "Write the command's full name, such as Remove-Item.",
        )
    return verb


def judge_windows_command(
    command: str, workspace: WindowsWorkspace, commands: Collection[str], *, shell: Shell = "any"
) -> CommandApproval | Deny:
    """Judge a command line for cmd or PowerShell; `commands` may run, spelled as in `KNOWN_COMMANDS`.

    `shell` is `powershell` where PowerShell alone gets the line; the names of cmd are aliases there.
    """
    fault = find_line_fault(command)
    if fault is not None:
        return fault
    line = command.strip(BLANK)
    verb = _read_verb(line, shell, commands)
    if isinstance(verb, Deny):
        return verb
    fault = workspace.find_cwd_fault()
    if fault is not None:
        return fault
    judge = judge_cmd if verb in SWITCHES else judge_powershell
    return judge(verb, line[len(verb) :], workspace)
