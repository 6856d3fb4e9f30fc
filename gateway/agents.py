"""Choose the engine: real agents on a real model, or on the demo model.

Turns settings and the environment's credentials into an engine, and decides what its agents get of
the machine: which variables, directories and ports.
"""

import logging
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup, TaskStatus

from gateway.agent_setup import (
    SESSIONS,
    AgentPlan,
    find_wall_blocking,
    make_directory_blocking,
    make_setup_blocking,
    no_room,
    temporary_of,
)
from gateway.credentials import Credential, find_credential, find_login_dir, secrets_of
from gateway.demo.answer import DEMO_MODEL
from gateway.demo.server import serve_demo
from gateway.engine import processes
from gateway.engine.box.choice import describe_box, make_box_blocking
from gateway.engine.box.outputs import CommandOutputs
from gateway.engine.box.process import Box, open_broker
from gateway.engine.options import AgentSetup
from gateway.engine.protocol import Engine, EngineUnavailable
from gateway.engine.sandbox.protection import Protection
from gateway.engine.sdk import SdkEngine, require_agent_program
from gateway.engine.session_sweep import run_sweep
from gateway.engine.side_query import SideQuery
from gateway.engine.user_engines import UserEngines
from gateway.errors import SettingsError, StartError
from gateway.ids import UserId
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
from gateway.relay.plan import CREDENTIALS, agent_variables, plan_relay
from gateway.relay.supervisor import RelayProcess, open_relay
from gateway.relay.upstream import Service, Target
from gateway.rules import load_policy_blocking
from gateway.settings import Settings
from gateway.transcripts import TranscriptStore
from gateway.trust import OWN_SKILLS, approvals_file
from gateway.workspace import prepare_user_blocking
from gateway.workspaces import AgentWorkspace, Workspaces, load_workspaces_blocking

_log = logging.getLogger(__name__)

_DEMO_CREDENTIAL = Credential(kind="server", found="the demo model")


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
        maker = await anyio.to_thread.run_sync(
            _AgentMaker, settings, environ, plan, program, model_env, relay
        )
        setup, wall, box = await anyio.to_thread.run_sync(maker.make_blocking, maker.workspaces.own)
        if box is not None:
            await stack.enter_async_context(open_broker(box, maker.outputs))
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
        yield partial(_make_engine, maker, setup, wall, box), access


def plan_mcp_blocking(settings: Settings, environ: Mapping[str, str]) -> tuple[ServerPlan, ...]:
    """Return the servers of `CANDOR_MCP_FILE`, each with its box. Raise `StartError`."""
    rules = load_policy_blocking(settings)
    writable = [place.path for place in rules.directories if place.writable]
    projects = load_workspaces_blocking(settings).projects
    writable += [project.path for project in projects if project.writers]
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


_Prepared: TypeAlias = tuple[AgentSetup, Protection, Box | None]


class _AgentMaker:
    """Prepares what the agents of a workspace are started with."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        plan: AgentPlan,
        program: Path,
        model_env: Mapping[str, str],
        relay: RelayProcess | None,
    ) -> None:
        """Initialise; blocks. Raise `StartError` as `open_agents` does."""
        self.workspaces = load_workspaces_blocking(settings)
        self.outputs = CommandOutputs()
        self._settings = settings
        self._environ = environ
        self._plan = plan
        self._program = program
        self._model_env = model_env
        self._relay = relay
        self._rules = load_policy_blocking(settings)
        check_users_agents(self.workspaces, plan)

    def make_blocking(self, place: AgentWorkspace) -> _Prepared:
        """Create the agents' directories, try the sandboxes, and write the launch script.

        Raise `StartError` as `open_agents` does.
        """
        settings, rules = place.settings(self._settings), place.extend(self._rules)
        environ, plan, relay = self._environ, self._plan, self._relay
        shutil.rmtree(temporary_of(settings), ignore_errors=True)
        setup = make_setup_blocking(
            settings, environ, plan, self._program, rules, without=CREDENTIALS if relay else ()
        )
        setup = replace(
            setup,
            projects=place.projects,
            owner=processes.owner_of(self.workspaces.data_dir),
            approvals_file=approvals_file(self.workspaces.data_dir),
            model_env={**setup.model_env, **self._model_env},
            relay=relay,
        )
        box = make_box_blocking(settings, rules, temporary_of(settings), environ)
        wall = find_wall_blocking(settings, environ, plan, setup, rules, box)
        check_users_wall(self.workspaces, self._settings, wall)
        if box is not None:
            hosts = box.plan.hosts
            setup = replace(setup, shell_prefix=box.prefix, shell_hosts=hosts, outputs=self.outputs)
        directory = settings.data_dir.resolve()
        try:
            script = processes.launch_script_blocking(directory, self._program, wall.words)
        except OSError as exc:
            raise no_room(settings, exc) from exc
        is_confined = wall.kind == "bubblewrap" and box is None
        return replace(setup, cli_path=script, sandboxed_bash=is_confined), wall, box

    def _make_of_user_blocking(self, place: AgentWorkspace) -> _Prepared:
        prepare_user_blocking(place.root, OWN_SKILLS)
        for directory in (self.workspaces.users_state_dir, place.state_dir):
            make_directory_blocking(directory)
        setup, wall, box = self.make_blocking(place)
        return replace(setup, is_users_own=True), wall, box

    async def make_of_user(
        self, user_id: str, tasks: TaskGroup, transcripts: TranscriptStore | None
    ) -> Engine:
        """Return the engine of a user's workspace; the broker of its boxes runs in `tasks`.

        Raise `EngineUnavailable` if the workspace cannot be prepared.
        """
        place = self.workspaces.of(UserId(user_id))
        try:
            setup, _, box = await anyio.to_thread.run_sync(self._make_of_user_blocking, place)
            if box is not None:
                await tasks.start(_serve_box, box, self.outputs)
        except (StartError, OSError) as exc:
            raise EngineUnavailable(
                "The agents of this workspace cannot be prepared.", detail=str(exc)
            ) from exc
        return SdkEngine(setup, tasks, transcripts=transcripts)


async def _serve_box(
    box: Box, outputs: CommandOutputs, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    async with open_broker(box, outputs):
        task_status.started()
        await anyio.sleep_forever()


def check_users_agents(workspaces: Workspaces, plan: AgentPlan) -> None:
    """Raise `StartError` if users are to have workspaces, and all agents would share the folder of
    a login, which holds their sessions.
    """
    if workspaces.is_per_user and plan.takes_login:
        raise SettingsError(
            "CANDOR_WORKSPACES=per_user keeps each user's sessions apart, and agents that use a "
            "login on this machine keep all of them beside it: set a key, such as "
            "ANTHROPIC_API_KEY, or CANDOR_WORKSPACES=shared."
        )


def check_users_wall(workspaces: Workspaces, settings: Settings, wall: Protection) -> None:
    """Raise `StartError` if users are to have workspaces and the kernel does not keep agents in
    them, unless the settings do without.
    """
    if workspaces.is_per_user and wall.kind != "landlock" and settings.sandbox != "off":
        raise StartError(
            "CANDOR_WORKSPACES=per_user takes a wall of the kernel's around each agent (Landlock, "
            f"Linux 5.13 or newer). {wall.sentence} Set CANDOR_SANDBOX=off to keep users apart by "
            "the policy alone."
        )


def _make_engine(
    maker: _AgentMaker,
    setup: AgentSetup,
    wall: Protection,
    box: Box | None,
    tasks: TaskGroup,
    transcripts: TranscriptStore | None = None,
) -> Engine:
    # only now: a refused start prints its one sentence and nothing else
    level = logging.WARNING if wall.kind == "off" else logging.INFO
    _log.log(level, "sandbox_tried", extra={"kind": wall.kind, "found": wall.sentence})
    if box is not None:
        _log.info("box_tried", extra={"found": describe_box(box)})
    own = SdkEngine(setup, tasks, transcripts=transcripts)
    sessions = partial(maker.workspaces.users_state_dir.glob, f"*/{SESSIONS}")
    if transcripts is not None and setup.config_dir is not None and not setup.takes_login:
        mine = [setup.config_dir]  # with a login, other programs have sessions there
        tasks.start_soon(run_sweep, transcripts, lambda: [*mine, *sessions()])
    if not maker.workspaces.is_per_user:
        return own
    make = partial(maker.make_of_user, tasks=tasks, transcripts=transcripts)
    return UserEngines(own, make, sessions)
