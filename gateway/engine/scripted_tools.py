"""The few tools of the scripted engine: they touch real files below the workspace."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run_tool_blocking(workspace: Path, name: str, tool_input: Mapping[str, Any]) -> str:
    """Run one tool call and give its output.

    Raises:
        OSError, ValueError, KeyError: it failed.
    """
    if name in {"Read", "Skill"}:
        return (workspace / str(tool_input.get("file_path", ""))).read_text(encoding="utf-8")
    if name == "Write":
        (workspace / tool_input["file_path"]).write_text(tool_input["content"], encoding="utf-8")
        return "written"
    words = [one for one in shlex.split(tool_input["command"]) if not one.startswith("-")]
    paths = [workspace / one for one in words[1:]]
    match words[0]:
        case "ls":
            return "\n".join(sorted(one.name for one in (paths or [workspace])[0].iterdir()))
        case "cat":
            return "".join(one.read_text(encoding="utf-8") for one in paths)
        case "rm":
            for one in paths:
                one.unlink()
            return ""
        case other:
            raise ValueError(f"the scripted engine has no {other}")
