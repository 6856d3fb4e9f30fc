"""`python app.py doctor`: is everything here that the server needs, and how is it set?

Checks what a start would check, without starting; prints one line a finding and the settings.
"""

import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Literal, TextIO

from gateway.agents import AgentPlan, find_wall_blocking, make_setup_blocking, plan_agents
from gateway.assemble import load_policy_blocking
from gateway.engine.sdk import find_agent_program
from gateway.errors import StartError
from gateway.http.auth import check_exposure
from gateway.serve import home_of, listen_blocking, prepare_blocking
from gateway.settings import PREFIX, Settings
from gateway.trust import review_blocking

_LEAST_FREE_BYTES = 1_000_000_000

_NOT_TRUSTED = (
    "What acts in the workspace's own configuration is not approved, so no agent starts; look at it "
    "with `python app.py policy trust`."
)

Finding = tuple[Literal["ok", "note", "fault"], str]


def examine(settings: Settings, environ: Mapping[str, str], *, out: TextIO) -> int:
    """Print the findings and the settings; 0 where the server could start, else 1."""
    findings = list(_findings(settings, environ))
    out.writelines(f"{kind:>5}  {sentence}\n" for kind, sentence in findings)
    out.write("\n")
    for one in fields(settings):
        value = getattr(settings, one.name)
        shown = "" if value is None else str(value)
        changed = "" if value == one.default else "   (set)"
        out.write(f"{PREFIX}{one.name.upper()}={shown}{changed}\n")
    return 1 if any(kind == "fault" for kind, _ in findings) else 0


def _findings(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    yield "ok", f"Python {platform.python_version()} on {platform.system()}"
    program = find_agent_program()
    if program is None:
        yield "fault", "No agent program: install claude-agent-sdk again."
    else:
        yield "ok", "The agent program is there."
    plan = plan_agents(settings, environ, home_of(environ))
    if plan.demo:
        yield "note", f"The demo model will answer ({plan.credential.found})."
    else:
        yield "ok", f"The model is reached through {plan.credential.found}."
    yield from _start_findings(settings)
    if program is not None:
        yield from _wall_findings(settings, environ, plan, program)
    free = shutil.disk_usage(settings.data_dir if settings.data_dir.exists() else Path.cwd()).free
    if free < _LEAST_FREE_BYTES:
        yield "note", f"Only {free // 1_000_000} MB are free on the disk of CANDOR_DATA_DIR."


def _start_findings(settings: Settings) -> Iterator[Finding]:
    """Try what a start does first; each trial leaves nothing but the directories."""
    try:
        check_exposure(settings)
        prepare_blocking(settings)
        yield "ok", "The policy's rules can be read, the directories written."
        if not review_blocking(settings).is_trusted:
            yield "fault", _NOT_TRUSTED
        listen_blocking(settings).close()
        yield "ok", f"Port {settings.port} is free." if settings.port else "A free port is taken."
    except StartError as exc:
        yield "fault", str(exc)


def _wall_findings(
    settings: Settings, environ: Mapping[str, str], plan: AgentPlan, program: Path
) -> Iterator[Finding]:
    """Try the kernel's wall as a start does."""
    try:
        rules = load_policy_blocking(settings)
        setup = make_setup_blocking(settings, environ, plan, program, rules)
        wall = find_wall_blocking(settings, environ, plan, setup, rules)
    except StartError as exc:
        yield "fault", str(exc)
        return
    yield "ok" if wall.kind == "landlock" else "note", wall.sentence
