"""The decision on one tool call: `ToolGate`.

Each tool is known by its exact name and the inputs that it may carry; everything else is denied.
The gate resolves paths but has no state and no other effect, and it never raises.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from policies.ask_rules import asks_about, locate_touched, parts_inside
from policies.calls import SUBAGENT_TYPE, TASK_LIST_TOOLS, FindOwnToolRule, OwnToolRule, ToolCall
from policies.denials import denied
from policies.inputs import find_input_fault, is_too_deep
from policies.paths.patterns import check_grep_glob, check_pattern
from policies.paths.protected import may_hold_secret, secret_exclusions
from policies.paths.workspace import Place, Workspace
from policies.permits import Effect, effect_of_input
from policies.rules import Rules, shipped_rules
from policies.shell.judge import judge_command
from policies.unlisted import UNKNOWN_RULES, ask_about
from policies.verdict import Allow, Ask, Deny, Refused, Verdict
from policies.visible_text import has_hidden_character, show
from policies.web import check_url
from policies.windows.judge import judge_windows_command
from policies.windows.workspace import WindowsWorkspace

Platform = Literal["posix", "windows"]
"""Which shell agents get: a POSIX shell, or PowerShell."""
HERE: Platform = "windows" if os.name == "nt" else "posix"

OFFERED_TOOLS: tuple[str, ...] = tuple(sorted(shipped_rules().offered_tools))
"""The tools that an engine should offer; the gate judges a few more, in case they are called."""

PLANS = ".plans"
"""The folder in the workspace for the plans that agents show to a person."""

MAX_TIMEOUT_MS = 600_000
MAX_SKILL_ARGS_CHARS = 2000

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SKILL_NAME = re.compile(rf"(?:{_PLAIN_NAME.pattern}:){{0,3}}{_PLAIN_NAME.pattern}")
_SKILL_ARGS = re.compile(r"[^`$!@\\]*")
_TYPE_NAME = re.compile(r"[a-z0-9_+-]{1,32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passed:
    """A call that may run as far as paths, options and inputs go."""

    verdict: Allow
    command: str | None = None
    """The shell command in it."""
    options: tuple[str, ...] | None = ()
    """The command's options; `None`: not known one by one."""
    is_unread: bool = False
    """True if the shell command was not read: it may do anything in the workspace."""
    is_file: bool = False
    """True if the call is about one file, whatever it writes there."""
    paths: tuple[str, ...] | None = ()
    """What it touches; `None`: unknown."""
    asks: bool = False
    """A person is asked, whatever the rules say."""


FindInstructions = Callable[[Literal["Skill", "Agent"]], Collection[str]]
"""Returns the names that a tool may launch now."""
_Judge = Callable[["ToolGate", ToolCall, Workspace], _Passed]


def _pass(call: ToolCall, *paths: str) -> _Passed:
    allow = Allow(f"{call.name.lower()}_allowed", "The tool is allowed.", changes=False)
    return _Passed(verdict=allow, paths=paths)


def _locate_file(call: ToolCall, workspace: Workspace, key: str) -> Place:
    place = workspace.locate(call.input[key])
    real = Path(place.real)
    if place.given.endswith("/") or (real.exists() and not real.is_file()):
        raise denied("not_a_file", show(place.given))
    return place


def _is_plan(place: Place) -> bool:
    """Return whether a file is a plan. Writing one changes nothing yet: a person is asked about the
    plan.
    """
    match place.parts:
        case (folder, name) if place.in_workspace and place.parts == place.real_parts:
            return folder == PLANS and name.endswith(".md")
    return False


def _judge_file(key: str, *, changes: bool) -> _Judge:
    """Return the judge of a tool that reads or changes the file that the input `key` names."""

    def judge(gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Passed:
        place = _locate_file(call, workspace, key)
        is_change = changes and not (gate.can_ask_user and _is_plan(place))
        if changes:
            place.check_change()
        else:
            place.check_read()
        # absolute, so that it cannot depend on a working directory
        updated = None if place.given == place.absolute else {**call.input, key: place.absolute}
        reason = "The file is inside the workspace."
        allow = Allow(f"{call.name.lower()}_inside", reason, updated, changes=is_change)
        return _Passed(verdict=allow, paths=(place.absolute,), is_file=True)

    return judge


_judge_changed_notebook = _judge_file("notebook_path", changes=True)


def _judge_notebook(gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Passed:
    if not call.input["notebook_path"].endswith(".ipynb"):
        raise denied("tool_input", call.name, "on a file that is no notebook")
    return _judge_changed_notebook(gate, call, workspace)


def _locate_search(call: ToolCall, workspace: Workspace) -> Place:
    workspace.check_cwd()
    place = workspace.locate(call.input.get("path", "."))
    place.check_read()
    return place


def _judge_glob(_gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Passed:
    place = _locate_search(call, workspace)
    check_pattern(call.input["pattern"], workspace.enter(place))
    return _pass(call, place.absolute)


def _judge_grep(_gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Passed:
    place = _locate_search(call, workspace)
    if "type" in call.input and not _TYPE_NAME.fullmatch(call.input["type"]):
        raise denied("tool_input", call.name, "with an unknown file type")
    for start in (workspace.find(workspace.cwd), place):
        # a folder may make names in it secrets, and ripgrep does not match the name of where it
        # starts
        if start is not None and may_hold_secret(start.real_parts):
            raise denied("search_start", show(start.real_parts[-1]))
    glob = call.input.get("glob", "")
    check_grep_glob(glob, workspace.enter(place))
    allow = Allow(
        "grep_inside",
        "The search stays inside the workspace and leaves out files that hold secrets.",
        {**call.input, "glob": f"{glob} {secret_exclusions()}".lstrip()},
        changes=False,
    )
    return _Passed(verdict=allow, paths=(place.absolute,))


def _judge_shell(gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Passed:
    for key in ("run_in_background", "dangerouslyDisableSandbox"):
        if call.input.get(key, False) is not False:
            raise denied("bash_mode", key)
    if float(call.input.get("timeout", 1)) > MAX_TIMEOUT_MS:
        raise denied("tool_input", call.name, "with too long a timeout")
    command, rules = call.input["command"], gate.rules
    kept = {key: call.input[key] for key in ("description", "timeout") if key in call.input}
    if gate.sandboxed_shell and call.name == "Bash":
        workspace.check_cwd()
        reason = "The command runs in the sandbox, which keeps it in the workspace."
        return _Passed(
            verdict=Allow("bash_sandboxed", reason, {"command": command, **kept}),
            is_unread=True,
            paths=(str(gate.root),),
        )
    if isinstance(workspace, WindowsWorkspace):
        approval = judge_windows_command(command, workspace, rules.windows_commands)
    else:
        approval = judge_command(command, workspace, rules.commands)
    allow = Allow(
        approval.rule,
        "A listed command with every path inside the workspace.",
        {"command": approval.line, **kept},
        changes=approval.changes,
    )
    return _Passed(
        verdict=allow, command=approval.command, options=approval.options, paths=approval.paths
    )


def _effect(call: ToolCall, passed: _Passed, places: Sequence[Place] | None) -> Effect:
    given = passed.verdict.updated_input or call.input
    whole = effect_of_input(call.name, given, call.cwd)
    shown = str(given.get("command", whole.shown))
    paths = None if passed.is_unread else parts_inside(passed.paths or (), places or ())
    if paths is None or not places:
        return replace(whole, command=passed.command, shown=shown)
    return replace(
        whole,
        command=passed.command,
        options=passed.options,
        what="" if passed.is_file else shown,
        paths=paths,
        shown="/".join(places[0].parts) if passed.is_file else shown,
    )


def is_skill_name(name: str) -> bool:
    """Return whether a skill or command of this name can be launched; a command in a folder has
    that folder's name before its own, with a colon.
    """
    return _SKILL_NAME.fullmatch(name) is not None


def _is_workspace_skill(workspace: Workspace, name: str) -> bool:
    """Return whether a skill or a command of this name stands in the workspace's own `.claude`.

    The agent program brings skills of its own, and so do plugins; none of those can be launched.
    """
    command = name.replace(":", "/")
    files = (f".claude/skills/{name}/SKILL.md", f".claude/commands/{command}.md")
    places = (workspace.find(f"{workspace.root}/{file}") for file in files)
    return any(place is not None and Path(place.real).is_file() for place in places)


def _judge_skill(gate: "ToolGate", call: ToolCall, workspace: Workspace) -> _Passed:
    name, args = call.input["skill"], call.input.get("args", "")
    is_there = is_skill_name(name) and _is_workspace_skill(workspace, name)
    if not is_there and not _PLAIN_NAME.fullmatch(name):
        raise denied("tool_input", call.name, "with a name that no skill has")
    if not is_there:
        raise denied("unknown_skill", show(name))
    if gate.instructions is not None and name not in gate.instructions("Skill"):
        raise denied("skill_not_approved", show(name))
    if (
        len(args) > MAX_SKILL_ARGS_CHARS
        or not _SKILL_ARGS.fullmatch(args)
        or has_hidden_character(args)
    ):
        raise denied("tool_input", call.name, "with arguments other than one line of plain text")
    return _pass(call)


def _judge_web_fetch(gate: "ToolGate", call: ToolCall, _workspace: Workspace) -> _Passed:
    check_url(call.input["url"], gate.rules.web_hosts)
    return _pass(call)


def _judge_question(gate: "ToolGate", call: ToolCall, _workspace: Workspace) -> _Passed:
    if not gate.can_ask_user:
        raise denied("nobody_to_ask")
    if call.name == "ExitPlanMode" and not call.input.get("plan", "").strip():
        raise denied("no_plan")
    return _pass(call)


def _judge_subagent(gate: "ToolGate", call: ToolCall, _workspace: Workspace) -> _Passed:
    kind = call.input.get("subagent_type", SUBAGENT_TYPE)
    kinds = gate.instructions("Agent") if gate.instructions and kind != SUBAGENT_TYPE else ()
    if kind not in {SUBAGENT_TYPE, *kinds}:
        raise denied("unknown_subagent", show(kind), ", ".join((SUBAGENT_TYPE, *kinds)))
    # it works with the model that the conversation has: `model` and `effort` are left out
    runs = {key: call.input[key] for key in ("description", "prompt")}
    allow = Allow(
        "agent_allowed",
        "Each call of the sub-agent is judged by itself.",
        {**runs, "subagent_type": kind},
        changes=False,
    )
    return _Passed(verdict=allow)


def _judge_harmless(_gate: "ToolGate", call: ToolCall, _workspace: Workspace) -> _Passed:
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
    **dict.fromkeys(TASK_LIST_TOOLS, _judge_harmless),
    "Agent": _judge_subagent,
    "ToolSearch": _judge_harmless,
    "AskUserQuestion": _judge_question,
    "EnterPlanMode": _judge_question,
    "ExitPlanMode": _judge_question,
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
        further_tools: FindOwnToolRule = lambda _: None,
        sandboxed_shell: bool = False,
        instructions: FindInstructions | None = None,
    ) -> None:
        """Take the folder that every path must lie in, and the rules of one gateway; `None`: the
        shipped ones.

        With `can_ask_user` a person can answer `AskUserQuestion`; commands and paths are those of
        `platform`. `further_tools` are tools of the gateway that come and go while it runs. With
        `sandboxed_shell` Bash runs in a box, so its command lines are not read. `instructions`
        finds what the workspace has for Skill and Agent that a person approved; `None`: each skill
        may be launched, and no sub-agent of the workspace.
        """
        self.root = workspace_root
        self.rules = shipped_rules() if rules is None else rules
        self.can_ask_user = can_ask_user
        self.platform: Platform = platform
        self._further_tools = further_tools
        self.sandboxed_shell = sandboxed_shell
        self.instructions = instructions

    def judge(self, call: ToolCall) -> Verdict:
        """Decide on one call. Never raises; a call that cannot be understood is denied."""
        try:
            form = WindowsWorkspace if self.platform == "windows" else Workspace
            workspace = form(self.root, call.cwd, self.rules.directories)
            try:
                return self._settle(call, self._judge(call, workspace), workspace)
            except Refused as refused:
                return self._or_question(call, workspace, refused.denial)
        except OSError:
            return Deny(
                "path_unreadable",
                "Something on the way cannot be looked at.",
                "Name files that can be read.",
            )
        except Exception as fault:  # noqa: BLE001 - a gate that fails must close
            kind = type(fault).__name__
            return Deny("policy_error", f"The policy failed on this call ({kind}).")

    def _or_question(self, call: ToolCall, workspace: Workspace, denial: Deny) -> Deny:
        """Add what a person may be asked to the denial of a command that is only unknown."""
        is_posix = call.name == "Bash" and self.platform == "posix"
        if not is_posix or denial.rule not in UNKNOWN_RULES:
            return denial
        try:
            forbidden = self.rules.forbidden_commands
            question = ask_about(denial, call.input, workspace, forbidden)
            return replace(denial, question=question)
        except (Refused, OSError):
            return denial

    def _judge(self, call: ToolCall, workspace: Workspace) -> _Passed:
        rules = self.rules
        if is_too_deep(call.input):
            raise denied("tool_input", call.name, "with an input that is nested too deep")
        if (own := self._own_tool_rule(call.name)) is not None:
            reason, unasked = "The tool is one of the gateway's own.", own.ask == "never"
            allow = Allow("own_tool", reason, changes=own.changes, unasked=unasked)
            return _Passed(verdict=allow, paths=None, asks=own.ask == "always")
        judges = _WINDOWS_JUDGES if self.platform == "windows" else _JUDGES
        if call.name not in rules.tools or call.name not in judges:
            raise denied("unknown_tool", show(call.name), ", ".join(sorted(rules.offered_tools)))
        wrong = find_input_fault(call.name, call.input)
        if wrong is not None:
            raise denied("tool_input", call.name, wrong)
        return judges[call.name](self, call, workspace)

    def _own_tool_rule(self, name: str) -> OwnToolRule | None:
        if (rule := self._further_tools(name)) is not None:
            return rule
        changes = name in self.rules.own_changing_tools
        return (
            OwnToolRule(changes=changes)
            if changes or name in self.rules.own_reading_tools
            else None
        )

    def _settle(self, call: ToolCall, passed: _Passed, workspace: Workspace) -> Allow | Ask:
        """Turn an allowed call into a question where a rule says so."""
        touched = None if passed.paths is None else tuple(map(workspace.join, passed.paths))
        allow = replace(passed.verdict, paths=touched)
        if not self.rules.ask and not allow.changes and not passed.asks:
            return allow
        paths = passed.paths
        places = None if paths is None else locate_touched(paths, workspace)
        effect = _effect(call, passed, places)
        allow = replace(allow, effect=effect)
        if not passed.asks and not asks_about(self.rules, call.name, passed.command, places):
            return allow
        what = passed.command or call.name
        reason = f"A rule of this gateway wants a person to be asked about {show(what)}."
        return Ask("ask_rule", reason, allow.updated_input, allow.changes, effect, allow.paths)


def validate_bash_command(
    command: str, *, root: Path, cwd: Path | str, rules: Rules | None = None
) -> Verdict:
    """Judge one POSIX command line.

    Relative paths start from `cwd`, which must be inside `root`. An `Allow` carries
    `{"command": line}`: the same command quoted anew, which is what has to run.
    """
    call = ToolCall(name="Bash", input={"command": command}, cwd=str(cwd))
    return ToolGate(root, rules=rules).judge(call)
