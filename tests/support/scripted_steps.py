"""The script language and the few tools of the scripted engine; see `scripted_engine`."""

import json
import re
import shlex
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"```candor-script[^\n]*\n(?P<body>.*?)```", re.DOTALL)

_ALLOWED = re.compile(r"```tool-call\n(?P<body>[^\n]+)\n```")
"""The call that a person allowed after its run had ended."""

Step = Mapping[str, Any]


@dataclass(slots=True)
class Session:
    """What a session remembers."""

    prompts: list[str] = field(default_factory=list)
    uuids: list[str] = field(default_factory=list)
    """The last message of each prompt's run."""
    followups: list[Step] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call of a step."""

    tool_use_id: str
    name: str
    input: dict[str, Any]


def steps_of(text: str, session: Session) -> Sequence[Step]:
    """List the steps that a prompt asks for; one without a script takes the session's next one.

    That may stand for several: `{"steps": [...]}`.
    """
    fence, allowed = _FENCE.search(text), _ALLOWED.search(text)
    if fence is None:
        if session.followups:
            step = session.followups.pop(0)
            steps: Sequence[Step] = step.get("steps", [step])
            return steps
        if allowed is not None:
            call = json.loads(allowed["body"])
            return [{"tool": call["name"], "input": call["input"]}, {"text": "Made."}]
        return [{"text": f"You said: {text}"}]
    parsed: list[Step] = []
    for step in json.loads(fence["body"]):
        if "on_followup" in step:
            session.followups = list(step["on_followup"])
        else:
            parsed += [step] * (step.get("times", 1) if "repeat" in step else 1)
    return parsed


def calls_of(step: Step) -> list[ScriptedCall]:
    """List the tool calls of a step."""
    step = step.get("repeat", step)
    calls = [*step.get("tools", []), *([step] if "tool" in step else [])]
    return [
        ScriptedCall(
            tool_use_id=call.get("id") or f"toolu_{uuid.uuid4().hex}",
            name=call.get("name") or call["tool"],
            input=call.get("input", {}),
        )
        for call in calls
    ]


def run_tool_blocking(workspace: Path, name: str, tool_input: Mapping[str, Any]) -> str:
    """Run one tool call and return its output; raise `OSError`, `ValueError` or `KeyError` if it failed."""
    if name in {"Read", "Skill"}:
        return (workspace / str(tool_input.get("file_path", ""))).read_text(encoding="utf-8")
    if name == "Write":
        (workspace / tool_input["file_path"]).write_text(tool_input["content"], encoding="utf-8")
        return "written"
    if name == "Edit":
        path = workspace / tool_input["file_path"]
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace(tool_input["old_string"], tool_input["new_string"]), encoding="utf-8"
        )
        return "edited"
    return _run_command(workspace, tool_input["command"])


def _run_command(workspace: Path, command: str) -> str:
    words = [part for part in shlex.split(command) if not part.startswith("-")]
    paths = [workspace / word for word in words[1:]]
    output = ""
    match words[0]:
        case "ls":
            output = "\n".join(sorted(entry.name for entry in (paths or [workspace])[0].iterdir()))
        case "cat":
            output = "".join(path.read_text(encoding="utf-8") for path in paths)
        case "rm":
            for path in paths:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        case "cp":
            shutil.copy(*paths)
        case "mv":
            shutil.move(str(paths[0]), str(paths[1]))
        case "mkdir":
            paths[0].mkdir()
        case other:
            raise ValueError(f"the scripted engine has no {other}")
    return output
