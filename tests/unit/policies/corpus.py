"""The policy cases, and a workspace like those that they presume."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from policies.rules import Rules, shipped_rules
from policies.tools import Platform
from policies.web import read_listed_host

CORPUS = Path(__file__).parents[2] / "corpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of a corpus file."""

    id: str
    tool: str
    input: Any
    cls: str
    setup: tuple[str, ...]
    hook_cwd: str
    platform: Platform
    any_platform: bool
    rules: Rules


def read_told(name: str) -> list[dict[str, Any]]:
    """Return the cases of a file complete: with an id, and with what is said of their class."""
    cases: list[dict[str, Any]] = []
    letter = "D" if "deny" in name else "A"
    usual: dict[str, Any] = {}
    number = 0
    for line in (CORPUS / name).read_text(encoding="utf-8").split("\n"):
        told = json.loads(line) if line else {"class": ""}
        if "class" in told:
            usual, number = {"tool": "Bash", "platform": "posix"} | told, 0
        else:
            number += 1
            case_id = f"{letter}-{usual['class']}-{number:03}"
            cases.append(_complete({"id": case_id} | usual | told))
    return cases


def _complete(case: dict[str, Any]) -> dict[str, Any]:
    """Put in the input of a plain shell command, and a long text."""
    if "command" in case:
        case["input"] = {"command": case.pop("command")}
    if "long" in case:
        text, times = case.pop("long")
        case["input"] = _replace(case["input"], "{LONG}", text * times)
    return case


def _read_case(told: Mapping[str, Any]) -> Case:
    return Case(
        id=told["id"],
        tool=told["tool"],
        input=told["input"],
        cls=told["class"],
        setup=tuple(told.get("setup", ())),
        hook_cwd=told.get("hook_cwd", "{WS}"),
        platform="windows" if told["platform"] == "windows" else "posix",
        any_platform=told["platform"] == "any",
        rules=_read_config(told.get("config", {})),
    )


def _read_config(config: Mapping[str, Any]) -> Rules:
    """Return the shipped rules with what a case presumes."""
    unknown = set(config) - {"mcp_allow", "webfetch_allow"}
    assert not unknown, unknown
    shipped = shipped_rules()
    hosts = config.get("webfetch_allow")
    return replace(
        shipped,
        own_changing_tools=frozenset(config.get("mcp_allow", ())),
        web_hosts=shipped.web_hosts
        if hosts is None
        else frozenset(read_listed_host(host) or host for host in hosts),
    )


def read_cases(name: str) -> list[Case]:
    return [_read_case(told) for told in read_told(name)]


def fill(value: Any, workspace: Path) -> Any:
    """Put the workspace's path where a case has `{WS}`."""
    return _replace(value, "{WS}", str(workspace))


def _replace(value: Any, mark: str, text: str) -> Any:
    if isinstance(value, str):
        return value.replace(mark, text)
    if isinstance(value, list):
        return [_replace(item, mark, text) for item in value]
    if isinstance(value, dict):
        return {key: _replace(item, mark, text) for key, item in value.items()}
    return value


def run_shell(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a script in bash with a bare environment."""
    return subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def build_workspace(parent: Path, setup: tuple[str, ...] = ()) -> Path:
    """Make `parent/ws` with the base files, the things outside beside it, then run `setup`."""
    workspace = parent / "ws"
    for folder in ("ws", "outdir", "ws-evil"):
        (parent / folder).mkdir(parents=True)
    (parent / "outside.txt").write_text("outside", encoding="utf-8")
    (parent / "outdir" / "keep.txt").write_text("keep", encoding="utf-8")
    (parent / "ws-evil" / "secret.txt").write_text("secret", encoding="utf-8")
    base = (CORPUS / "workspace.sh").read_text(encoding="utf-8")
    run_shell(fill(base, workspace), workspace)
    for step in setup:
        run_shell(fill(step, workspace), workspace)
    return workspace
