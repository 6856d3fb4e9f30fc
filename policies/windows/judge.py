"""The judgement of one command line on Windows: `judge_windows_command`.

The first word decides which rules apply: `del`, `move`, `copy` and `ren` are cmd's, a name such as
`Remove-Item` is PowerShell's. Whichever shell runs the line must do exactly what was judged.
"""

import re
from collections.abc import Collection, Mapping
from typing import Literal, NoReturn

from policies.verdict import CommandApproval, Refused
from policies.visible_text import BLANK, ONE_COMMAND, show
from policies.windows.cmd import SWITCHES, judge_cmd
from policies.windows.cmdlets import CMDLETS
from policies.windows.lines import check_line, check_plain
from policies.windows.powershell import judge_powershell
from policies.windows.workspace import WindowsWorkspace

Shell = Literal["any", "powershell"]

_NAMES = {**{verb: verb for verb in SWITCHES}, **{k: v.name for k, v in CMDLETS.items()}}
KNOWN_COMMANDS = frozenset(_NAMES.values())

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


def _refuse_verb(word: str, commands: Collection[str]) -> NoReturn:
    """Say what the first word is, and what would work instead."""
    name = word.casefold().removesuffix(".exe")
    if name in _SHELLS:
        raise Refused("wrapper", f"{show(word)} starts another shell or program.", _hint(commands))
    if name.startswith(("cd.", "cd\\", "cd/")) or name in _MOVING:
        raise Refused(
            "change_folder",
            "Changing the folder is not allowed.",
            "Give each path in full, relative to the workspace.",
        )
    if name.partition("(")[0] in _LOOPS:
        raise Refused("loop", f"{show(word)} runs other commands.", ONE_COMMAND)
    _check_signs(word)
    if "=" in word:
        raise Refused(
            "assignment", "Setting variables is not allowed.", "Run the command by itself."
        )
    if "\\" in word or "/" in word:
        raise Refused(
            "command_qualified",
            "A command must be named without a module, a path or a switch.",
            "Write its name alone, with a space after it.",
        )
    hint = _INSTEAD.get(name, _hint(commands))
    raise Refused("command_not_allowed", f"The command {show(word)} is not allowed.", hint)


def _check_signs(word: str) -> None:
    for at, char in enumerate(word):
        if char in "\"'":
            raise Refused("command_quoted", "The command's name must be written plainly.", None)
        if char == "@" and at == 0 and word[1:2].isalpha():
            raise Refused("echo_prefix", "@ before a command is not allowed.", "Leave it out.")
        if char == "[" and at == 0:
            raise Refused("type_literal", "Calls of .NET are not allowed.", "Use a listed command.")
        check_plain(word, at, starts=at == 0)


def _read_verb(line: str, shell: Shell, commands: Collection[str]) -> str:
    word = re.split("[ \t]", line, maxsplit=1)[0]
    if not word:
        raise Refused("command_empty", "The command is empty.", _hint(commands))
    verb = word.casefold()
    if not word.isascii() or _NAMES.get(verb) not in commands:
        _refuse_verb(word, commands)
    if verb in SWITCHES and shell == "powershell":
        raise Refused(
            "alias",
            f"{show(word)} stands for another command in PowerShell.",
            "Write the command's full name, such as Remove-Item.",
        )
    return verb


def judge_windows_command(
    command: str, workspace: WindowsWorkspace, commands: Collection[str], *, shell: Shell = "any"
) -> CommandApproval:
    """Judge a command line for cmd or PowerShell; `commands` may run, spelled as in `KNOWN_COMMANDS`.

    `shell` is `powershell` where PowerShell alone gets the line; the names of cmd are aliases there.
    """
    check_line(command)
    line = command.strip(BLANK)
    verb = _read_verb(line, shell, commands)
    workspace.check_cwd()
    judge = judge_cmd if verb in SWITCHES else judge_powershell
    return judge(verb, line[len(verb) :], workspace)
