"""One tool call in, one verdict out: `ToolGate`.

Every tool that may be called is known here by its exact name, with the inputs that it may carry; whatever
is not known is denied. The gate is pure but for resolving paths, holds no state, and never raises.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from policies.bash import validate_bash_command
from policies.inputs import find_input_fault
from policies.paths import Place, Workspace, has_hidden_character, show
from policies.patterns import find_grep_glob_fault, find_pattern_fault
from policies.protected import secret_exclusions
from policies.verdict import Allow, Deny, Verdict
from policies.web import find_url_fault

Platform = Literal["posix", "windows"]

OFFERED_TOOLS: tuple[str, ...] = (
    "Read",
    "Write",
    "Edit",
    "NotebookEdit",
    "Glob",
    "Grep",
    "Bash",
    "Skill",
    "TodoWrite",
)
"""What an engine should offer; the gate judges a few more, in case they turn up."""

MAX_TIMEOUT_MS = 600_000
MAX_SKILL_ARGS_CHARS = 2000

_SKILL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?::[A-Za-z0-9][A-Za-z0-9_-]{0,63})?")
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
    """The subagent that calls; `None`: the main agent. Both are judged alike."""


def _refuse_input(name: str, wrong: str) -> Deny:
    return Deny("tool_input", f"{name} was called {wrong}.", "Call it as its description says.")


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


def _allow_file(call: ToolCall, place: Place, key: str, *, changes: bool) -> Allow:
    """Allow with the path made absolute, so that it cannot depend on a working directory."""
    updated = None if place.given == place.absolute else {**call.input, key: place.absolute}
    return Allow(
        f"{call.name.lower()}_inside",
        "The file is inside the workspace.",
        updated,
        changes=changes,
    )


def _judge_read(_gate: "ToolGate", call: ToolCall, workspace: Workspace) -> Verdict:
    place = _locate_file(call, workspace, "file_path")
    fault = place if isinstance(place, Deny) else place.find_read_fault()
    if fault is not None:
        return fault
    assert isinstance(place, Place)
    return _allow_file(call, place, "file_path", changes=False)


def _judge_change(call: ToolCall, workspace: Workspace, key: str) -> Verdict:
    place = _locate_file(call, workspace, key)
    if isinstance(place, Deny):
        return place
    return place.find_write_fault() or _allow_file(call, place, key, changes=True)


def _judge_write(_gate: "ToolGate", call: ToolCall, workspace: Workspace) -> Verdict:
    return _judge_change(call, workspace, "file_path")


def _judge_notebook(_gate: "ToolGate", call: ToolCall, workspace: Workspace) -> Verdict:
    if not call.input["notebook_path"].endswith(".ipynb"):
        return _refuse_input(call.name, "on a file that is no notebook")
    return _judge_change(call, workspace, "notebook_path")


def _locate_search(call: ToolCall, workspace: Workspace) -> Place | Deny:
    fault = workspace.find_cwd_fault()
    if fault is not None:
        return fault
    place = workspace.locate(call.input.get("path", "."))
    return place if isinstance(place, Deny) else place.find_read_fault() or place


def _judge_glob(gate: "ToolGate", call: ToolCall, workspace: Workspace) -> Verdict | None:
    place = _locate_search(call, workspace)
    if isinstance(place, Deny):
        return place
    return find_pattern_fault(call.input["pattern"], Workspace(gate.root, place.absolute))


def _judge_grep(gate: "ToolGate", call: ToolCall, workspace: Workspace) -> Verdict:
    place = _locate_search(call, workspace)
    if isinstance(place, Deny):
        return place
    if "type" in call.input and not _TYPE_NAME.fullmatch(call.input["type"]):
        return _refuse_input(call.name, "with an unknown file type")
    glob = call.input.get("glob", "")
    fault = find_grep_glob_fault(glob, Workspace(gate.root, place.absolute))
    if fault is not None:
        return fault
    return Allow(
        "grep_inside",
        "The search stays inside the workspace and leaves out files that hold secrets.",
        {**call.input, "glob": f"{glob} {secret_exclusions()}".lstrip()},
        changes=False,
    )


def _judge_bash(gate: "ToolGate", call: ToolCall, _workspace: Workspace) -> Verdict:
    for key in ("run_in_background", "dangerouslyDisableSandbox"):
        if call.input.get(key, False) is not False:
            return Deny("bash_mode", f"{key} is not allowed.", "Run the command by itself.")
    timeout = call.input.get("timeout", 1)
    if float(timeout) > MAX_TIMEOUT_MS:
        return _refuse_input(call.name, "with too long a timeout")
    verdict = validate_bash_command(call.input["command"], root=gate.root, cwd=call.cwd)
    if not isinstance(verdict, Allow) or verdict.updated_input is None:
        return verdict
    kept = {k: v for k, v in call.input.items() if k in {"description", "timeout"}}
    return Allow(
        verdict.rule, verdict.reason, {**verdict.updated_input, **kept}, changes=verdict.changes
    )


def _judge_skill(_gate: "ToolGate", call: ToolCall, _workspace: Workspace) -> Verdict | None:
    args = call.input.get("args", "")
    if not _SKILL_NAME.fullmatch(call.input["skill"]):
        return _refuse_input(call.name, "with a name that no skill has")
    if (
        len(args) > MAX_SKILL_ARGS_CHARS
        or not _SKILL_ARGS.fullmatch(args)
        or has_hidden_character(args)
    ):
        return _refuse_input(call.name, "with arguments other than one line of plain text")
    return None


def _judge_web_fetch(gate: "ToolGate", call: ToolCall, _workspace: Workspace) -> Verdict | None:
    return find_url_fault(call.input["url"], gate.web_hosts)


def _judge_question(gate: "ToolGate", _call: ToolCall, _workspace: Workspace) -> Verdict | None:
    if gate.can_ask_user:
        return None
    return Deny(
        "nobody_to_ask",
        "Nobody can answer questions of this tool here.",
        "Ask in the text of the reply instead.",
    )


def _judge_nothing(_gate: "ToolGate", _call: ToolCall, _workspace: Workspace) -> None:
    return None


@dataclass(frozen=True, slots=True)
class _Tool:
    """What one tool does."""

    changes: bool
    judge: Callable[["ToolGate", ToolCall, Workspace], Verdict | None]
    """Gives `None` where the call may run as it came."""


_TOOLS: Mapping[str, _Tool] = {
    "Read": _Tool(changes=False, judge=_judge_read),
    "Write": _Tool(changes=True, judge=_judge_write),
    "Edit": _Tool(changes=True, judge=_judge_write),
    "NotebookEdit": _Tool(changes=True, judge=_judge_notebook),
    "Glob": _Tool(changes=False, judge=_judge_glob),
    "Grep": _Tool(changes=False, judge=_judge_grep),
    "Bash": _Tool(changes=True, judge=_judge_bash),
    "Skill": _Tool(changes=False, judge=_judge_skill),
    "TodoWrite": _Tool(changes=False, judge=_judge_nothing),
    "ToolSearch": _Tool(changes=False, judge=_judge_nothing),
    "AskUserQuestion": _Tool(changes=False, judge=_judge_question),
    "WebFetch": _Tool(changes=False, judge=_judge_web_fetch),
}
_TOUCHES_FILES = frozenset({"Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep", "Bash"})


class ToolGate:
    """Decides on the tool calls of one workspace; what it does not know, it denies."""

    def __init__(
        self,
        workspace_root: Path,
        *,
        extra_tools: Collection[str] = frozenset(),
        extra_reading_tools: Collection[str] = frozenset(),
        web_hosts: Collection[str] = frozenset(),
        can_ask_user: bool = False,
        platform: Platform = "posix",
    ) -> None:
        """Take the rules of one gateway.

        Args:
            workspace_root: the folder that every path must lie in.
            extra_tools: the gateway's own tools by exact name, allowed with any input.
            extra_reading_tools: the same for those that change nothing.
            web_hosts: exact hosts that WebFetch may open; `*`: every public name.
            can_ask_user: whether somebody can answer `AskUserQuestion`.
            platform: whose commands and paths to expect; on `windows` this edition denies both.
        """
        self.root = workspace_root
        self.extra_tools = frozenset(extra_tools)
        self.extra_reading_tools = frozenset(extra_reading_tools)
        self.web_hosts = frozenset(web_hosts)
        self.can_ask_user = can_ask_user
        self.platform: Platform = platform

    def judge(self, call: ToolCall) -> Verdict:
        """Decide on one call; never raises, and denies whatever it cannot understand."""
        try:
            return self._judge(call)
        except Exception as fault:  # noqa: BLE001 - whatever goes wrong in a gate must close it
            kind = type(fault).__name__
            return Deny("policy_error", f"The policy failed on this call ({kind}).")

    def _judge(self, call: ToolCall) -> Verdict:
        if call.name in self.extra_tools or call.name in self.extra_reading_tools:
            changes = call.name not in self.extra_reading_tools
            return Allow("own_tool", "The tool is one of the gateway's own.", changes=changes)
        tool = _TOOLS.get(call.name)
        if tool is None:
            return Deny(
                "unknown_tool",
                f"The tool {show(call.name)} is not allowed here.",
                f"Allowed are {', '.join(OFFERED_TOOLS)}.",
            )
        if self.platform != "posix" and call.name in _TOUCHES_FILES:
            return Deny(
                "platform", "Files are not judged on this platform yet, so they stay closed."
            )
        wrong = find_input_fault(call.name, call.input)
        if wrong is not None:
            return _refuse_input(call.name, wrong)
        verdict = tool.judge(self, call, Workspace(self.root, call.cwd))
        if verdict is not None:
            return verdict
        return Allow(f"{call.name.lower()}_allowed", "The tool is allowed.", changes=tool.changes)
