"""From the operator's file to what is started: programs, boxes, environments, secrets.

Everything here blocks, and is done once, before the server listens.
"""

import os
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gateway.engine.environment import KEEPS, PATH
from gateway.engine.processes import MARK, launch_words, owner_of
from gateway.engine.protocol import EngineUnavailable
from gateway.engine.sandbox.places import AgentPlaces
from gateway.engine.sandbox.protection import protect_blocking
from gateway.errors import SettingsError, StartError
from gateway.mcp_servers.accepted_tools import MCP_FOLDER
from gateway.mcp_servers.configuration import (
    ServerConfig,
    load_servers_blocking,
    read_secrets_blocking,
)
from gateway.mcp_servers.guardian import OWN_PID
from gateway.settings import Settings
from gateway.workspaces import USERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxed:
    """The box of one server: the words before its command, and what kind it is."""

    kind: str
    before: Sequence[str]


MakeBox = Callable[[AgentPlaces], Boxed]
"""Returns the box for a server that may use these places; blocks, and may try it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """One server, ready to be started or reached."""

    name: str
    config: ServerConfig
    command: Sequence[str] = ()
    """With the words of its box before it; empty for a server that is reached by HTTP."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    directory: Path | None = None
    """Where it is started."""
    box: str | None = None
    """The kind of its box; None for a server that is reached by HTTP."""
    secrets: Sequence[str] = field(default=(), repr=False)

    @property
    def transport(self) -> Literal["stdio", "http"]:
        """How it is reached."""
        return "stdio" if self.command else "http"


def landlock_box(settings: Settings) -> MakeBox:
    """Return the maker of boxes by Landlock, as around the agents: `CANDOR_SANDBOX`."""
    scratch = settings.data_dir.resolve()

    def make(places: AgentPlaces) -> Boxed:
        try:
            wall = protect_blocking(settings.sandbox, places, scratch)
        except EngineUnavailable as exc:
            raise StartError(str(exc)) from exc
        is_whole = wall.kind == "landlock"  # the others confine Bash alone
        return Boxed(
            kind=wall.kind if is_whole else "off",
            before=launch_words(OWN_PID, wall.words if is_whole else ()),
        )

    return make


def plan_servers_blocking(
    settings: Settings,
    environ: Mapping[str, str],
    writable: Collection[Path] = (),
    make_box: MakeBox | None = None,
) -> tuple[ServerPlan, ...]:
    """Return the servers of `CANDOR_MCP_FILE`; `writable` are what agents write besides.

    Raise `StartError` if the file has a mistake, a program or a secret is missing, a place belongs
    to the server, or `CANDOR_SANDBOX=require` cannot be kept.
    """
    if settings.mcp_file is None:
        return ()
    in_reach = (settings.workspace, *writable)
    planner = _Planner(settings, environ, in_reach, make_box or landlock_box(settings))
    servers = load_servers_blocking(settings.mcp_file, in_reach)
    return tuple(planner.plan(name, config) for name, config in servers.items())


class _Planner:
    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        in_reach: Collection[Path],
        make_box: MakeBox,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._in_reach = [path.resolve() for path in in_reach]
        self._make_box = make_box
        self._data_dir = settings.data_dir.resolve()
        private = (settings.data_dir, settings.log_dir, settings.tokens_file)
        self._private = {path.resolve(): "is the gateway's own" for path in private if path}
        if settings.workspaces == "per_user":
            self._private[(settings.workspace / USERS).resolve()] = "belongs to the users"

    def plan(self, name: str, config: ServerConfig) -> ServerPlan:
        if config.workspace != "none" and self._settings.workspaces == "per_user":
            raise SettingsError(
                f"The MCP server {name} asks for the workspace; with CANDOR_WORKSPACES=per_user "
                "one process serves all users: leave out its `workspace`."
            )
        secrets = read_secrets_blocking(name, config, self._environ)
        if config.url is not None:
            return ServerPlan(
                name=name, config=config, headers=secrets, secrets=tuple(secrets.values())
            )
        if os.name == "nt":
            raise SettingsError(f"The MCP server {name} has a command, which takes Linux or macOS.")
        home = self._data_dir / MCP_FOLDER / name
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        program = self._find_program(name, config)
        box = self._make_box(self._places(name, config, program, home))
        environment = {
            "PATH": PATH,
            "LANG": "C.UTF-8",
            **config.environment,
            **secrets,
            **dict.fromkeys(("HOME", "TMPDIR"), str(home)),
            MARK: f"{owner_of(self._data_dir)}:mcp-{name}",
        }
        environment[KEEPS] = " ".join(sorted(environment))
        guardian = Path(__file__).with_name("guardian.py")
        before = (sys.executable, "-I", "-S", str(guardian), str(os.getpid()), "--", *box.before)
        return ServerPlan(
            name=name,
            config=config,
            command=(*before, str(program), *config.command[1:]),
            environment=environment,
            directory=home if config.workspace == "none" else self._settings.workspace.resolve(),
            box=box.kind,
            secrets=tuple(secrets.values()),
        )

    def _find_program(self, name: str, config: ServerConfig) -> Path:
        path = config.environment.get("PATH", PATH)
        found = shutil.which(config.command[0], path=path)
        if found is None:
            raise SettingsError(
                f"The program {config.command[0]} of the MCP server {name} is not found or cannot "
                "be run; write its whole path in CANDOR_MCP_FILE."
            )
        program = Path(found)
        if any(program.resolve().is_relative_to(folder) for folder in self._in_reach):
            raise SettingsError(
                f"The program {program} of the MCP server {name} lies where the agent could change "
                "it; move it out."
            )
        return program

    def _places(self, name: str, config: ServerConfig, program: Path, home: Path) -> AgentPlaces:
        for path in (*config.programs, *config.reads, *config.writes):
            for private, why in self._private.items():
                if path.resolve().is_relative_to(private) or private.is_relative_to(path.resolve()):
                    raise SettingsError(
                        f"The MCP server {name} must not get {path}, because {private} "
                        f"{why}; name a directory apart from it."
                    )
        workspace = self._settings.workspace.resolve()
        return AgentPlaces(
            program=program,
            programs=(*_installation(program), *config.programs),
            workspace=home,
            own=(),
            readable=(*config.reads, *((workspace,) if config.workspace == "read" else ())),
            writable=(*config.writes, *((workspace,) if config.workspace == "write" else ())),
            ports=config.network,
        )


def _installation(program: Path) -> Sequence[Path]:
    """Return where a program's links lead, and for one of a virtual environment that environment
    and the Python below it.
    """
    above = program.parent.parent
    if not (above / "pyvenv.cfg").is_file():
        return [program.resolve()]
    python = (above / "bin" / "python").resolve()
    below = python.parent.parent
    return [program.resolve(), above, python, below / "lib"]
