"""The judgement of one command line on Windows: `judge_windows_command`.

The first word decides which rules apply: `del`, `move`, `copy` and `ren` are cmd's, a name such as
`Remove-Item` is PowerShell's. Whichever shell runs the line must do exactly what was judged.
"""

import re
from collections.abc import Collection
from typing import Literal, NoReturn

from policies.denials import alternatives, denied, refused_commands
from policies.verdict import CommandApproval
from policies.visible_text import BLANK, show
from policies.windows.cmd import SWITCHES, judge_cmd
from policies.windows.cmdlets import CMDLETS
from policies.windows.lines import check_line, check_plain
from policies.windows.powershell import judge_powershell
from policies.windows.workspace import WindowsWorkspace

Shell = Literal["any", "powershell"]

_NAMES = {**{verb: verb for verb in SWITCHES}, **{k: v.name for k, v in CMDLETS.items()}}
KNOWN_COMMANDS = frozenset(_NAMES.values())

_REFUSED = refused_commands("windows")
_INSTEAD = alternatives("windows")


def _hint(commands: Collection[str]) -> str:
    return f"Allowed are {', '.join(sorted(commands, key=str.lower)) or 'none'}."


def _refuse_verb(word: str, commands: Collection[str]) -> NoReturn:
    """Raise a denial that names the first word and what would work instead."""
    name = word.casefold().removesuffix(".exe")
    key = _REFUSED.get(name) or _REFUSED.get(name.partition("(")[0])
    if name.startswith(("cd.", "cd\\", "cd/")):
        key = "change_folder"
    if key is not None:
        raise denied(key, show(word), _hint(commands))
    _check_signs(word)
    if "=" in word:
        raise denied("assignment.verb")
    if "\\" in word or "/" in word:
        raise denied("command_qualified")
    raise denied("command_not_allowed", show(word), _INSTEAD.get(name, _hint(commands)))


def _check_signs(word: str) -> None:
    for at, char in enumerate(word):
        if char in "\"'":
            raise denied("command_quoted.signs")
        if char == "@" and at == 0 and word[1:2].isalpha():
            raise denied("echo_prefix")
        if char == "[" and at == 0:
            raise denied("type_literal")
        check_plain(word, at, starts=at == 0)


def _read_verb(line: str, shell: Shell, commands: Collection[str]) -> str:
    word = re.split("[ \t]", line, maxsplit=1)[0]
    if not word:
        raise denied("command_empty", _hint(commands))
    verb = word.casefold()
    if not word.isascii() or _NAMES.get(verb) not in commands:
        _refuse_verb(word, commands)
    if verb in SWITCHES and shell == "powershell":
        raise denied("alias", show(word))
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
