"""The decision on one tool call: `ToolGate`.

Each tool is known by its exact name and the inputs that it may carry; everything else is denied. The gate
resolves paths but has no state and no other effect, and it never raises.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from policies.ask_rules import asks_about, locate_touched
from policies.inputs import find_input_fault, is_too_deep
from policies.paths.patterns import find_grep_glob_fault, find_pattern_fault
from policies.paths.protected import may_hold_secret, secret_exclusions
from policies.paths.workspace import Place, Workspace
from policies.rules import Rules, shipped_rules
from policies.shell.judge import judge_command
from policies.verdict import Allow, Ask, Deny, Verdict
from policies.visible_text import has_hidden_character, show
from policies.web import find_url_fault
from policies.windows.judge import Shell, judge_windows_command
from policies.windows.workspace import WindowsWorkspace

Platform = Literal["posix", "windows"]

_UNREADABLE = Deny(
    "path_unreadable", "Something on the way cannot be looked at.", "Name files that can be read."
)
OFFERED_TOOLS: tuple[str, ...] = tuple(sorted(shipped_rules().offered_tools))
"""The tools that an engine should offer; the gate judges a few more, in case one is called."""

MAX_TIMEOUT_MS = 600_000
MAX_SKILL_ARGS_CHARS = 2000

_SKILL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SKILL_ARGS = re.compile(r"[^`$!@\\]*")
_TYPE_NAME = re.compile(r"[a-z0-9_+-]{1,32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool, as the agent's process reported it before running it."""

    name: str
    input: Mapping[str, Any]
    cwd: str
    """The working directory that relative paths start from, absolute."""
    tool_use_id: str = ""
    agent_id: str | None = None
    """The calling subagent; `None`: the main agent. Both are judged alike."""
    index: int = 0
    """The call's number in its turn, from 1; 0 while it has none. `tool_use_id` may repeat."""


def _refuse_input(name: str, wrong: str) -> Deny:
    return Deny("tool_input", f"{name} was called {wrong}.", "Call it as its description says.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passed:
    """A call that may run as far as paths, options and inputs go."""

    verdict: Allow
    command: str | None = None
    """The shell command in it."""
    paths: tuple[str, ...] | None = ()
    """What it touches; `None`: unknown."""


_Judged = Deny | _Passed
_Judge = Callable[["ToolGate", ToolCall, Workspace], _Judged]


def _pass(call: ToolCall, *paths: str, changes: bool = False) -> _Passed:
    allow = Allow(f"{call.name.lower()}_allowed", "The tool is allowed.", changes=changes)
    return _Passed(verdict=allow, paths=paths)


def _locate_file(call: ToolCall, workspace: Workspace, key: str) -> Place | Deny:
    place = workspace.locate(call.input[key])
    if isinstance(place, Deny):
        return place
    real = Path(place.real)
    if place.given.endswith("/") or (real.exists() and not real.is_file()):
        return Deny(
            "not_a_file", f"{show(place.given)} is not a file.", "Name a file; Glob lists folders."
        )
    return place


def _judge_file(key: str, *, changes: bool) -> _Judge:
    """Return the judge of a tool that reads or changes the file that the input `key` names."""

    def judge(_gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Judged:
        place = _locate_file(call, workspace, key)
        if isinstance(place, Deny):
            return place
        fault = place.find_change_fault() if changes else place.find_read_fault()
        if fault is not None:
            return fault
        # absolute, so that it cannot depend on a working directory
        updated = None if place.given == place.absolute else {**call.input, key: place.absolute}
        reason = "The file is inside the workspace."
        allow = Allow(f"{call.name.lower()}_inside", reason, updated, changes=changes)
        return _Passed(verdict=allow, paths=(place.absolute,))

    return judge


_judge_changed_notebook = _judge_file("notebook_path", changes=True)


def _judge_notebook(gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Judged:
    if not call.input["notebook_path"].endswith(".ipynb"):
        return _refuse_input(call.name, "on a file that is no notebook")
    return _judge_changed_notebook(gate, call, workspace)


def _locate_search(call: ToolCall, workspace: Workspace) -> Place | Deny:
    fault = workspace.find_cwd_fault()
    if fault is not None:
        return fault
    place = workspace.locate(call.input.get("path", "."))
    return place if isinstance(place, Deny) else place.find_read_fault() or place


def _judge_glob(_gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Judged:
    place = _locate_search(call, workspace)
    if isinstance(place, Deny):
        return place
    fault = find_pattern_fault(call.input["pattern"], workspace.enter(place))
    return fault or _pass(call, place.absolute)


def _find_start_fault(workspace: Workspace, place: Place) -> Deny | None:
    """Refuse starting in a folder that makes names in it secrets: ripgrep does not match its name."""
    for start in (workspace.locate(workspace.cwd), place):
        if isinstance(start, Place) and may_hold_secret(start.real_parts):
            return Deny(
                "search_start",
                f"A search that starts in {show(start.real_parts[-1])} cannot leave out the secrets there.",
                "Read the files that are needed.",
            )
    return None


def _judge_grep(_gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Judged:
    place = _locate_search(call, workspace)
    if isinstance(place, Deny):
        return place
    if "type" in call.input and not _TYPE_NAME.fullmatch(call.input["type"]):
        return _refuse_input(call.name, "with an unknown file type")
    glob = call.input.get("glob", "")
    fault = _find_start_fault(workspace, place) or find_grep_glob_fault(
        glob, workspace.enter(place)
    )
    if fault is not None:
        return fault
    allow = Allow(
        "grep_inside",
        "The search stays inside the workspace and leaves out files that hold secrets.",
        {**call.input, "glob": f"{glob} {secret_exclusions()}".lstrip()},
        changes=False,
    )
    return _Passed(verdict=allow, paths=(place.absolute,))


def _find_mode_fault(call: ToolCall) -> Deny | None:
    for key in ("run_in_background", "dangerouslyDisableSandbox"):
        if call.input.get(key, False) is not False:
            return Deny("bash_mode", f"{key} is not allowed.", "Run the command by itself.")
    if float(call.input.get("timeout", 1)) > MAX_TIMEOUT_MS:
        return _refuse_input(call.name, "with too long a timeout")
    return None


def _judge_shell(gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Judged:
    fault = _find_mode_fault(call)
    if fault is not None:
        return fault
    command, rules = call.input["command"], gate.rules
    if isinstance(workspace, WindowsWorkspace):
        shell: Shell = "powershell" if call.name == "PowerShell" else "any"
        approval = judge_windows_command(command, workspace, rules.windows_commands, shell=shell)
    else:
        approval = judge_command(command, workspace, rules.commands)
    if isinstance(approval, Deny):
        return approval
    kept = {key: call.input[key] for key in ("description", "timeout") if key in call.input}
    allow = Allow(
        approval.rule,
        "A listed command with every path inside the workspace.",
        {"command": approval.line, **kept},
        changes=approval.changes,
    )
    return _Passed(verdict=allow, command=approval.command, paths=approval.paths)


def _is_workspace_skill(workspace: Workspace, name: str) -> bool:
    """Return whether a skill or a command of this name stands in the workspace's own `.claude`.

    The agent program brings skills of its own, and so do plugins; none of those can be launched.
    """
    files = (f".claude/skills/{name}/SKILL.md", f".claude/commands/{name}.md")
    places = (workspace.locate(f"{workspace.root}/{file}") for file in files)
    return any(isinstance(place, Place) and Path(place.real).is_file() for place in places)


def _judge_skill(_gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Judged:
    args = call.input.get("args", "")
    if not _SKILL_NAME.fullmatch(call.input["skill"]):
        return _refuse_input(call.name, "with a name that no skill has")
    if not _is_workspace_skill(workspace, call.input["skill"]):
        return Deny(
            "unknown_skill",
            f"The workspace has no skill {show(call.input['skill'])}.",
            "Launch a skill of .claude/skills, or do the work without one.",
        )
    if (
        len(args) > MAX_SKILL_ARGS_CHARS
        or not _SKILL_ARGS.fullmatch(args)
        or has_hidden_character(args)
    ):
        return _refuse_input(call.name, "with arguments other than one line of plain text")
    return _pass(call)


def _judge_web_fetch(gate: "ToolGate", call: ToolCall, _workspace: Workspace) -> _Judged:
    return find_url_fault(call.input["url"], gate.rules.web_hosts) or _pass(call)


def _judge_question(gate: "ToolGate", call: ToolCall, _workspace: Workspace) -> _Judged:
    if gate.can_ask_user:
        return _pass(call)
    return Deny(
        "nobody_to_ask",
        "Nobody can answer questions of this tool here.",
        "Ask in the text of the reply instead.",
    )


def _judge_harmless(_gate: "ToolGate", call: ToolCall, _workspace: Workspace) -> _Judged:
    return _pass(call)


_JUDGES: Mapping[str, _Judge] = {
    "Read": _judge_file("file_path", changes=False),
    "Write": _judge_file("file_path", changes=True),
    "Edit": _judge_file("file_path", changes=True),
    "NotebookEdit": _judge_notebook,
    "Glob": _judge_glob,
    "Grep": _judge_grep,
    "Bash": _judge_shell,
    "Skill": _judge_skill,
    "TodoWrite": _judge_harmless,
    "ToolSearch": _judge_harmless,
    "AskUserQuestion": _judge_question,
    "WebFetch": _judge_web_fetch,
}
_WINDOWS_JUDGES = {**_JUDGES, "PowerShell": _judge_shell}


class ToolGate:
    """Decides on the tool calls of one workspace, and denies what it does not know."""

    def __init__(
        self,
        workspace_root: Path,
        *,
        rules: Rules | None = None,
        can_ask_user: bool = False,
        platform: Platform = "posix",
    ) -> None:
        """Take the rules of one gateway.

        Args:
            workspace_root: the folder that every path must lie in.
            rules: the allowed commands, tools, hosts and further directories; `None`: the shipped rules.
            can_ask_user: whether a person can answer `AskUserQuestion`.
            platform: the system whose commands and paths are expected.
        """
        self.root = workspace_root
        self.rules = shipped_rules() if rules is None else rules
        self.can_ask_user = can_ask_user
        self.platform: Platform = platform

    def judge(self, call: ToolCall) -> Verdict:
        """Decide on one call. Never raises; a call that cannot be understood is denied."""
        try:
            form = WindowsWorkspace if self.platform == "windows" else Workspace
            workspace = form(self.root, call.cwd, self.rules.directories)
            judged = self._judge(call, workspace)
            return judged if isinstance(judged, Deny) else self._settle(call, judged, workspace)
        except OSError:
            return _UNREADABLE
        except Exception as fault:  # noqa: BLE001 - a gate that fails must close
            kind = type(fault).__name__
            return Deny("policy_error", f"The policy failed on this call ({kind}).")

    def _judge(self, call: ToolCall, workspace: Workspace) -> _Judged:
        rules = self.rules
        if is_too_deep(call.input):
            return _refuse_input(call.name, "with an input that is nested too deep")
        if call.name in rules.own_changing_tools or call.name in rules.own_reading_tools:
            changes = call.name in rules.own_changing_tools
            allow = Allow("own_tool", "The tool is one of the gateway's own.", changes=changes)
            return _Passed(verdict=allow, paths=None)
        judges = _WINDOWS_JUDGES if self.platform == "windows" else _JUDGES
        if call.name not in rules.tools or call.name not in judges:
            return Deny(
                "unknown_tool",
                f"The tool {show(call.name)} is not allowed here.",
                f"Allowed are {', '.join(sorted(rules.offered_tools))}.",
            )
        wrong = find_input_fault(call.name, call.input)
        if wrong is not None:
            return _refuse_input(call.name, wrong)
        return judges[call.name](self, call, workspace)

    def _settle(self, call: ToolCall, passed: _Passed, workspace: Workspace) -> Allow | Ask:
        """Turn an allowed call into a question where a rule says so."""
        allow = passed.verdict
        if not self.rules.ask:
            return allow
        paths = passed.paths
        places = None if paths is None else locate_touched(paths, workspace)
        if not asks_about(self.rules, call.name, passed.command, places):
            return allow
        what = passed.command or call.name
        reason = f"A rule of this gateway wants a person to be asked about {show(what)}."
        return Ask("ask_rule", reason, allow.updated_input, allow.changes)


def validate_bash_command(
    command: str, *, root: Path, cwd: Path | str, rules: Rules | None = None
) -> Verdict:
    """Judge one POSIX command line.

    Relative paths start from `cwd`, which must be inside `root`. An `Allow` carries
    `{"command": line}`: the same command quoted anew, which is what has to run.
    """
    call = ToolCall(name="Bash", input={"command": command}, cwd=str(cwd))
    return ToolGate(root, rules=rules).judge(call)
