"""What the agents of a workspace are started with: their directories, variables and sandbox."""

import logging
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.credentials import Credential
from gateway.engine import processes
from gateway.engine.box.process import Box
from gateway.engine.box.trial import try_box_blocking
from gateway.engine.environment import agent_environment
from gateway.engine.options import AgentSetup
from gateway.engine.protocol import EngineUnavailable
from gateway.engine.sandbox.places import AgentPlaces, places_named_in, ports_named_in
from gateway.engine.sandbox.protection import Protection, protect_blocking
from gateway.errors import StartError
from gateway.private_files import make_private_blocking
from gateway.settings import Settings
from gateway.trust import approvals_file
from gateway.turns.case_tools import CASE_SERVER
from gateway.turns.questions import PERSON_TOOLS
from gateway.workspace_parts import PROGRAM
from policies.rules import Rules

_log = logging.getLogger(__name__)

SESSIONS = "sessions"
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
        raise no_room(settings, exc) from exc
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


def no_room(settings: Settings, exc: OSError) -> StartError:
    """Return the error of a data directory that cannot be written."""
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
    make_directory_blocking(home)
    with _making("home", home):
        for folder in set(_CLOUD_FOLDERS.values()):
            if (home / folder).is_symlink():
                (home / folder).unlink()  # of another start, with another cloud
        cloud = _CLOUD_FOLDERS.get(plan.credential.found) if not plan.demo else None
        if cloud and plan.user_home and (plan.user_home / cloud).is_dir():
            (home / cloud).parent.mkdir(mode=0o700, exist_ok=True)
            (home / cloud).symlink_to(plan.user_home / cloud, target_is_directory=True)
    return home


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
    config_dir = plan.login_dir if plan.takes_login else data_dir / SESSIONS
    temp_dir = temporary_of(settings)
    for directory in (temp_dir, config_dir):
        if directory is not None:
            make_directory_blocking(directory)
    if config_dir == data_dir / SESSIONS and (refused := make_private_blocking(config_dir)):
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


def make_directory_blocking(directory: Path) -> None:
    """Create a directory of the agents for this user alone. Raise `StartError` if that fails."""
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
