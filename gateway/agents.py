"""Choose the engine: real agents on a real model, or on the demo model.

Turns settings and the environment's credentials into an engine, and decides what its agents get of
the machine: which variables, directories and ports.
"""

import logging
import os
import shutil
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from gateway.assemble import PROGRAM
from gateway.credentials import Credential, find_credential, find_login_dir, secrets_of
from gateway.demo.answer import DEMO_MODEL
from gateway.demo.server import serve_demo
from gateway.engine import processes
from gateway.engine.box.choice import describe_box, make_box_blocking
from gateway.engine.box.outputs import CommandOutputs
from gateway.engine.box.process import Box, open_broker
from gateway.engine.box.trial import try_box_blocking
from gateway.engine.environment import agent_environment
from gateway.engine.options import AgentSetup
from gateway.engine.protocol import Engine, EngineUnavailable
from gateway.engine.sandbox.places import AgentPlaces, places_named_in, ports_named_in
from gateway.engine.sandbox.protection import Protection, protect_blocking
from gateway.engine.sdk import SdkEngine, require_agent_program
from gateway.engine.side_query import SideQuery
from gateway.errors import StartError
from gateway.mcp_servers.plan import ServerPlan, plan_servers_blocking
from gateway.model_access import (
    MakeEngine,
    ModelAccess,
    Ping,
    base_url,
    demo_environment,
    service_environment,
)
from gateway.observability.trace_plan import plan_traces
from gateway.private_files import make_private_blocking
from gateway.relay.plan import CREDENTIALS, agent_variables, plan_relay
from gateway.relay.supervisor import RelayProcess, open_relay
from gateway.relay.upstream import Service, Target
from gateway.rules import load_policy_blocking
from gateway.settings import Settings
from gateway.trust import approvals_file
from gateway.turns.case_tools import CASE_SERVER
from gateway.turns.questions import PERSON_TOOLS
from policies.rules import Rules

_log = logging.getLogger(__name__)

_DEMO_CREDENTIAL = Credential(kind="server", found="the demo model")

_SESSIONS = "sessions"
"""Below the data directory: what the agent program stores, readable for this user alone."""
_TEMPORARY = "tmp"
"""Below the data directory; cleared at each start."""
_METADATA_PORT = 80
"""The port of a cloud's metadata service."""

_CLOUD_FOLDERS = {
    "CLAUDE_CODE_USE_BEDROCK": ".aws",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS": ".aws",
    "CLAUDE_CODE_USE_MANTLE": ".aws",
    "CLAUDE_CODE_USE_VERTEX": ".config/gcloud",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD": ".config/gcloud",
    "CLAUDE_CODE_USE_FOUNDRY": ".azure",
}
"""A cloud's login folder below a home; the agent's home links to it for that cloud alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlan:
    """What the server runs its agents on."""

    demo: bool
    credential: Credential
    user_home: Path | None = None
    login_dir: Path | None = None
    """The folder of a login on this machine that is kept in a file, or None."""

    @property
    def takes_login(self) -> bool:
        """True if the agents use a person's login."""
        return self.credential.kind == "login" and not self.demo


def plan_agents(settings: Settings, environ: Mapping[str, str], home: Path) -> AgentPlan:
    """Decide between the demo model and a real one."""
    credential = find_credential(environ, home)
    demo = settings.demo == "on" or (settings.demo == "auto" and credential.kind == "none")
    return AgentPlan(
        demo=demo,
        credential=credential,
        user_home=home,
        login_dir=find_login_dir(environ, home),
    )


@asynccontextmanager
async def open_agents(
    settings: Settings, environ: Mapping[str, str], plan: AgentPlan
) -> AsyncIterator[tuple[MakeEngine, ModelAccess]]:
    """Yield the factory of the engine and the model access; serve the demo model if planned.

    Raise `StartError` if there is no agent program, the policy file has a mistake, the data
    directory cannot be written, or a required sandbox does not work.
    """
    try:
        program = await anyio.to_thread.run_sync(require_agent_program)
    except EngineUnavailable as exc:
        raise StartError(str(exc)) from exc
    async with AsyncExitStack() as stack:
        model_env, model, relay = await stack.enter_async_context(
            _open_model(settings, environ, plan)
        )
        setup, wall, box = await anyio.to_thread.run_sync(
            _prepare_blocking, settings, environ, plan, program, model_env, relay
        )
        if box is not None:
            outputs = CommandOutputs()
            setup = replace(setup, outputs=outputs)
            await stack.enter_async_context(open_broker(box, outputs))
        servers = await anyio.to_thread.run_sync(plan_mcp_blocking, settings, environ)
        of_servers = [secret for server in servers for secret in server.secrets]
        of_hosts = (
            []
            if box is None
            else [value.rpartition(" ")[2] for _, value in box.plan.secrets.values()]
        )
        access = ModelAccess(
            demo=plan.demo,
            model=model,
            secrets=(*secrets_of(environ), *of_servers, *of_hosts),
            mcp_servers=servers,
            pings={"sandbox": _sandbox_ping(wall, box)} | ({"relay": relay.ping} if relay else {}),
            ask_model=None if plan.demo else make_side_query(setup, settings.side_model),
            is_confined=wall.kind == "landlock" or box is not None,
        )
        yield _engine_factory(setup, wall, box), access


def plan_mcp_blocking(settings: Settings, environ: Mapping[str, str]) -> tuple[ServerPlan, ...]:
    """Return the servers of `CANDOR_MCP_FILE`, each with its box. Raise `StartError`."""
    rules = load_policy_blocking(settings)
    writable = [place.path for place in rules.directories if place.writable]
    return plan_servers_blocking(settings, environ, writable)


def make_side_query(setup: AgentSetup, model: str) -> SideQuery:
    """Return a query to a small model outside of all conversations, without the workspace."""
    bare = replace(setup, tools=(), reads_workspace=False, max_agent_steps=1)
    return SideQuery(partial(SdkEngine, bare), model)


@asynccontextmanager
async def _open_model(
    settings: Settings, environ: Mapping[str, str], plan: AgentPlan
) -> AsyncIterator[tuple[Mapping[str, str], str | None, RelayProcess | None]]:
    """Yield the environment that reaches the model, the model's name, and the relay."""
    async with AsyncExitStack() as stack:
        env, model = service_environment(environ, plan.credential), settings.model
        if plan.demo:
            demo = serve_demo(cadence_ms=settings.demo_cadence_ms)
            env, model = (
                demo_environment(await stack.enter_async_context(demo)),
                model or DEMO_MODEL,
            )
        relay = None
        target = await anyio.to_thread.run_sync(
            relay_target_blocking, settings, environ, plan, env["ANTHROPIC_BASE_URL"]
        )
        if isinstance(target, Target):
            reports_calls = plan_traces(environ).endpoint is not None
            target = replace(target, reports_calls=reports_calls)
            relay = await stack.enter_async_context(open_relay(target, environ))
            env |= agent_variables(relay.url, {} if plan.demo else environ)
        yield env, model, relay


def relay_target_blocking(
    settings: Settings, environ: Mapping[str, str], plan: AgentPlan, url: str | None = None
) -> Target | str:
    """Return what the relay needs, or why there is none.

    Raise `StartError` if a certificate that it needs cannot be used.
    """
    if settings.relay == "off":
        return "CANDOR_RELAY is off"
    if plan.demo:
        return plan_relay(url or "http://127.0.0.1", _DEMO_CREDENTIAL, {})
    target = plan_relay(url or base_url(environ), plan.credential, environ)
    if isinstance(target, Target):
        Service(target)
    return target


def _sandbox_ping(wall: Protection, box: Box | None) -> Ping:
    async def ping() -> Mapping[str, str]:  # noqa: RUF029  nothing to wait for
        if box is None:
            return {"kind": wall.kind, "message": wall.sentence}
        message = f"{wall.sentence} {describe_box(box)}"
        return {"kind": wall.kind, "message": message, "shell": "sandboxed"}

    return ping


def _prepare_blocking(
    settings: Settings,
    environ: Mapping[str, str],
    plan: AgentPlan,
    program: Path,
    model_env: Mapping[str, str],
    relay: RelayProcess | None,
) -> tuple[AgentSetup, Protection, Box | None]:
    """Create the agents' directories, probe the sandboxes, and write the launch script."""
    rules = load_policy_blocking(settings)
    shutil.rmtree(temporary_of(settings), ignore_errors=True)
    relayed = CREDENTIALS if relay else ()
    setup = make_setup_blocking(settings, environ, plan, program, rules, without=relayed)
    setup = replace(setup, model_env={**setup.model_env, **model_env}, relay=relay)
    box = make_box_blocking(settings, rules, temporary_of(settings), environ)
    wall = find_wall_blocking(settings, environ, plan, setup, rules, box)
    if box is not None:
        setup = replace(setup, shell_prefix=box.prefix, shell_hosts=box.plan.hosts)
    try:
        script = processes.launch_script_blocking(settings.data_dir.resolve(), program, wall.words)
    except OSError as exc:
        raise _no_room(settings, exc) from exc
    is_confined = wall.kind == "bubblewrap" and box is None
    return replace(setup, cli_path=script, sandboxed_bash=is_confined), wall, box


def temporary_of(settings: Settings) -> Path:
    """Return the agents' temporary directory."""
    return settings.data_dir.resolve() / _TEMPORARY


def find_wall_blocking(
    settings: Settings,
    environ: Mapping[str, str],
    plan: AgentPlan,
    setup: AgentSetup,
    rules: Rules,
    box: Box | None = None,
) -> Protection:
    """Probe which sandbox works for agents of this set-up, and then the box in it.

    Raise `StartError` if one is required and does not work.
    """
    data_dir, log_dir = settings.data_dir.resolve(), settings.log_dir.resolve()
    known = {name: environ[name] for name in setup.inherited if name in environ}
    env = {**known, **setup.model_env}
    ports = ports_named_in(env)
    if plan.credential.kind == "provider" and not plan.demo:
        ports = [*ports, _METADATA_PORT]
    places = AgentPlaces(
        program=setup.cli_path,
        workspace=setup.workspace,
        own=_own_places(plan, setup),
        readable=[
            *_home_places(setup),
            *places_named_in(env),
            *(place.path for place in rules.directories if not place.writable),
        ],
        writable=[place.path for place in rules.directories if place.writable],
        runnable=box.runnable if box else (),
        ports=ports,
        private=(data_dir, log_dir, PROGRAM),
    )
    try:
        wall = protect_blocking(settings.sandbox, places, data_dir)
        if box is not None:
            before = processes.launch_words(os.getpid(), wall.words)
            try_box_blocking(box, data_dir, before)
    except EngineUnavailable as exc:
        raise StartError(str(exc)) from exc
    except OSError as exc:
        raise _no_room(settings, exc) from exc
    return wall


def _own_places(plan: AgentPlan, setup: AgentSetup) -> list[Path]:
    """List what the agents write besides the workspace: sessions and the login."""
    own = [path for path in (setup.temp_dir, setup.config_dir) if path is not None]
    if setup.config_dir is None and plan.user_home is not None:
        login = (plan.user_home / ".claude", plan.user_home / ".claude.json")
        own += [path for path in login if path.exists()]
    return own


def _home_places(setup: AgentSetup) -> list[Path]:
    """List the agents' HOME and the targets of the links in it."""
    if setup.home is None:
        return []
    links = [setup.home / folder for folder in sorted(set(_CLOUD_FOLDERS.values()))]
    return [setup.home, *(link.resolve() for link in links if link.is_symlink())]


def _no_room(settings: Settings, exc: OSError) -> StartError:
    return StartError(
        f"The data directory {settings.data_dir} cannot be written ({exc.strerror}); "
        "make room there, or set CANDOR_DATA_DIR to another."
    )


def _make_home_blocking(settings: Settings, plan: AgentPlan) -> Path | None:
    """Create the agent's own HOME; None if its login is in the person's home.

    It contains nothing of the person's except, for a model in a cloud, a link to that cloud's
    login.
    """
    if plan.takes_login and plan.login_dir is None:
        return None
    home = settings.data_dir.resolve() / "home"
    _make_directory_blocking(home)
    with _making("home", home):
        for folder in set(_CLOUD_FOLDERS.values()):
            if (home / folder).is_symlink():
                (home / folder).unlink()  # of another start, with another cloud
        cloud = _CLOUD_FOLDERS.get(plan.credential.found) if not plan.demo else None
        if cloud and plan.user_home and (plan.user_home / cloud).is_dir():
            (home / cloud).parent.mkdir(mode=0o700, exist_ok=True)
            (home / cloud).symlink_to(plan.user_home / cloud, target_is_directory=True)
    return home


def _engine_factory(setup: AgentSetup, wall: Protection, box: Box | None) -> MakeEngine:
    level = logging.WARNING if wall.kind == "off" else logging.INFO

    def make(tasks: TaskGroup) -> Engine:
        # only now: a refused start prints its one sentence and nothing else
        _log.log(level, "sandbox_tried", extra={"kind": wall.kind, "found": wall.sentence})
        if box is not None:
            _log.info("box_tried", extra={"found": describe_box(box)})
        return SdkEngine(setup, tasks)

    return make


def make_setup_blocking(
    settings: Settings,
    environ: Mapping[str, str],
    plan: AgentPlan,
    program: Path,
    rules: Rules,
    *,
    without: Collection[str] = (),
) -> AgentSetup:
    """Create the agents' directories; return what all agents have in common.

    They inherit no variable of `without`. Raise `StartError` if a directory cannot be created.
    """
    data_dir = settings.data_dir.resolve()
    inherited = agent_environment(environ, demo=plan.demo, without=without)
    config_dir = plan.login_dir if plan.takes_login else data_dir / _SESSIONS
    temp_dir = temporary_of(settings)
    for directory in (temp_dir, config_dir):
        if directory is not None:
            _make_directory_blocking(directory)
    if config_dir == data_dir / _SESSIONS and (refused := make_private_blocking(config_dir)):
        _log.warning("session_files_open_to_others", extra={"count": refused})
    with_person = PERSON_TOOLS if settings.approvals == "on" else frozenset()
    return AgentSetup(
        cli_path=program,
        workspace=settings.workspace.resolve(),
        config_dir=config_dir,
        home=_make_home_blocking(settings, plan),
        temp_dir=temp_dir,
        inherited=frozenset(inherited),
        takes_login=plan.takes_login,
        approvals_file=approvals_file(data_dir),
        tools=sorted(rules.offered_tools | (rules.tolerated_tools & with_person)),
        shell_commands=sorted(rules.commands),
        asks_person=settings.approvals == "on",
        owner=processes.owner_of(data_dir),
        own_servers=(CASE_SERVER,),
        max_agent_steps=settings.max_agent_steps,
        max_budget_usd=settings.max_budget_usd,
    )


def _make_directory_blocking(directory: Path) -> None:
    with _making("directory", directory):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def _making(what: str, place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StartError(
            f"The agent's {what} {place} cannot be made ({exc.strerror}); move it away, or set "
            "CANDOR_DATA_DIR to another directory."
        ) from exc
