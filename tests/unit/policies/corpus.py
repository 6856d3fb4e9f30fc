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


def _read_case(line: str) -> Case:
    told: Mapping[str, Any] = json.loads(line)
    return Case(
        id=told["id"],
        tool=told["tool"],
        input=told["input"],
        cls=told["class"],
        setup=tuple(told.get("setup", ())),
        hook_cwd=told.get("hook_cwd", "{WS}"),
        platform="windows" if told.get("platform") == "windows" else "posix",
        any_platform=told.get("platform") == "any",
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
    lines = (CORPUS / name).read_text(encoding="utf-8").split("\n")
    return [_read_case(line) for line in lines if line]


def fill(value: Any, workspace: Path) -> Any:
    """Put the workspace's path where a case has `{WS}`."""
    if isinstance(value, str):
        return value.replace("{WS}", str(workspace))
    if isinstance(value, list):
        return [fill(item, workspace) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, workspace) for key, item in value.items()}
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
