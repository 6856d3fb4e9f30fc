"""Which engine a server runs on: real agents on a real model, or on the demo model.

The one place that turns settings and the environment's credentials into an engine.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from gateway.assemble import MakeEngine, ModelAccess
from gateway.credentials import Credential, find_credential, secrets_of
from gateway.demo.server import serve_demo
from gateway.engine import processes
from gateway.engine.options import AgentSetup
from gateway.engine.protocol import Engine, EngineUnavailable
from gateway.engine.sdk import SdkEngine, require_agent_program
from gateway.errors import StartError
from gateway.settings import Settings
from policies.options import GRAMMARS
from policies.tools import OFFERED_TOOLS

DEMO_MODEL = "candor-demo"
_DEMO_KEY = "candor-demo-needs-no-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """What the server will run its agents on."""

    demo: bool
    credential: Credential


def plan_agents(settings: Settings, environ: Mapping[str, str], home: Path) -> AgentPlan:
    """Decide between the demo model and a real one."""
    credential = find_credential(environ, home)
    demo = settings.demo == "on" or (settings.demo == "auto" and credential.kind == "none")
    return AgentPlan(demo=demo, credential=credential)


@asynccontextmanager
async def open_agents(
    settings: Settings, environ: Mapping[str, str], plan: AgentPlan
) -> AsyncIterator[tuple[MakeEngine, ModelAccess]]:
    """Give what makes the engine, and serve the demo model beside it where that is planned.

    Raises:
        StartError: there is no agent program, or the data directory cannot be written.
    """
    try:
        program = require_agent_program()
    except EngineUnavailable as exc:
        raise StartError(str(exc)) from exc
    cli_path = await anyio.to_thread.run_sync(_launch_script_blocking, settings, program)
    secrets = tuple(secrets_of(environ))
    if plan.demo:
        async with serve_demo(cadence_ms=settings.demo_cadence_ms) as url:
            env = _demo_env(url)
            model = settings.model or DEMO_MODEL
            yield (
                _maker(_setup(settings, plan, cli_path, env)),
                ModelAccess(demo=True, model=model, secrets=secrets),
            )
        return
    env = _real_env(environ, plan.credential)
    yield (
        _maker(_setup(settings, plan, cli_path, env)),
        ModelAccess(demo=False, model=settings.model, secrets=secrets),
    )


def _launch_script_blocking(settings: Settings, program: Path) -> Path:
    try:
        return processes.launch_script_blocking(settings.data_dir.resolve(), program)
    except OSError as exc:
        raise StartError(
            f"The data directory {settings.data_dir} cannot be written ({exc.strerror}); "
            "make room there, or set CANDOR_DATA_DIR to another."
        ) from exc


def _maker(setup: AgentSetup) -> MakeEngine:
    def make(tasks: TaskGroup) -> Engine:
        return SdkEngine(setup, tasks)

    return make


def _demo_env(url: str) -> dict[str, str]:
    """Point the agent at the demo model, whatever else the environment holds."""
    cleared = dict.fromkeys(
        (
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ),
        "",
    )
    return {**cleared, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": _DEMO_KEY}


def _real_env(environ: Mapping[str, str], credential: Credential) -> dict[str, str]:
    """Give what must be pinned for a real model; the rest the agent inherits."""
    env = {}
    if url := environ.get("ANTHROPIC_BASE_URL", "").strip():
        env["ANTHROPIC_BASE_URL"] = url
    if credential.kind == "server":  # a server of one's own often asks for no key; the agent does
        env["ANTHROPIC_API_KEY"] = _DEMO_KEY
    return env


def _setup(
    settings: Settings, plan: AgentPlan, cli_path: Path, env: Mapping[str, str]
) -> AgentSetup:
    data_dir = settings.data_dir.resolve()
    login = plan.credential.kind == "login" and not plan.demo
    return AgentSetup(
        cli_path=cli_path,
        workspace=settings.workspace.resolve(),
        config_dir=None if login else data_dir / "sessions",
        tools=OFFERED_TOOLS,
        shell_commands=sorted(GRAMMARS),
        owner=processes.owner_of(data_dir),
        model_env=env,
        max_agent_steps=settings.max_agent_steps,
        max_budget_usd=settings.max_budget_usd,
    )
