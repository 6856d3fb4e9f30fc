"""The MCP servers that the operator names: the file of `CANDOR_MCP_FILE`.

The file holds no secret: it names the environment variable or the file that does. Each error names
the file, the key and what is wrong, in one sentence.
"""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from gateway.errors import StartError
from policies.calls import OwnToolRule
from policies.rule_file import show_path, suggest
from policies.visible_text import show

MAX_FILE_BYTES = 256 * 1024
MAX_SECRET_BYTES = 64 * 1024
RESERVED_NAMES = frozenset({"memory", "web"})
"""Servers of the gateway's own."""

ServerName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
Port = Annotated[int, Field(ge=1, le=65535)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SecretSource(_Table):
    """Where a secret is kept."""

    env: str | None = None
    file: Path | None = None
    before: str = ""
    """Stands before the secret in its value, as `Bearer ` in a header."""

    @model_validator(mode="after")
    def _names_one_place(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("it must name either env or file")
        return self


class ServerConfig(_Table):
    """One server as the file describes it."""

    command: tuple[str, ...] = ()
    """The program and its arguments; started without a shell."""
    url: str | None = Field(default=None, pattern=r"^https?://[^\s/?#@]+(/[^\s#]*)?$")
    """The address of a server that speaks streamable HTTP, instead of `command`."""
    tools: tuple[str, ...] | None = None
    """The tools that agents get; None: all that the server has."""
    reading: tuple[str, ...] = ()
    """Those that change nothing; all others count as changing."""
    ask: Literal["changes", "always", "never"] = "changes"
    start_s: float = Field(default=30, ge=1, le=300)
    call_s: float = Field(default=60, ge=1, le=3600)
    environment: dict[str, str] = {}
    secrets: dict[str, SecretSource] = {}
    """By the name of the environment variable, or of the HTTP header, that carries it."""
    programs: tuple[Path, ...] = ()
    """Files and directories that it reads and runs, besides the system's."""
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    workspace: Literal["none", "read", "write"] = "none"
    network: tuple[Port, ...] = ()
    """TCP ports that it may connect to, on any host."""

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if bool(self.command) == (self.url is not None):
            raise ValueError("it must have either command or url")
        of_programs = {"environment", "programs", "reads", "writes", "workspace", "network"}
        if self.url is not None and (wrong := sorted(of_programs & self.model_fields_set)):
            raise ValueError(f"{wrong[0]} is for servers with a command")
        for path in (*self.programs, *self.reads, *self.writes):
            if not path.is_absolute():
                raise ValueError(f"{show(str(path))} must be an absolute path")
        return self

    def rule_of(self, tool: str) -> OwnToolRule:
        """Return the policy's rule of a tool."""
        return OwnToolRule(changes=tool not in self.reading, ask=self.ask)


class _File(_Table):
    servers: dict[ServerName, ServerConfig] = {}


def load_servers_blocking(
    path: Path, in_reach: Collection[Path] = ()
) -> Mapping[str, ServerConfig]:
    """Return the servers of a file by name.

    `in_reach` are directories that agents can change; the file must not lie there. Raise
    `StartError` if the file cannot be used.
    """
    real = path.resolve()
    for folder in in_reach:
        if real.is_relative_to(folder.resolve()):
            raise _fault(path, f"it lies in {folder}, where the agent could change it; move it")
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            raise _fault(path, f"it is larger than {MAX_FILE_BYTES} bytes; make it smaller")
        told = tomllib.loads(raw.decode("utf-8-sig"))
        servers = _File.model_validate(told).servers
    except OSError as exc:
        raise _fault(path, f"it cannot be read ({exc.strerror}); set CANDOR_MCP_FILE") from exc
    except ValidationError as exc:
        raise _fault(path, _explain(exc)) from exc
    except (RecursionError, ValueError) as exc:
        raise _fault(path, f"it is not TOML in UTF-8 ({show(str(exc))}); correct it") from exc
    for name in RESERVED_NAMES & servers.keys():
        raise _fault(path, f"servers.{name}: the name is taken; choose another")
    return servers


def _fault(path: Path, what: str) -> StartError:
    return StartError(f"The MCP file {show_path(path)}: {what}.")


def _explain(exc: ValidationError) -> str:
    """Return the first fault as the end of a sentence; it repeats no value."""
    fault = exc.errors(include_url=False, include_input=False)[0]
    place = [show(str(part)) for part in fault["loc"]]
    where = ".".join(place)
    if fault["type"] == "extra_forbidden":
        model: Any = {1: _File, 3: ServerConfig}.get(len(place), SecretSource)
        return f"{where} is not known; {suggest(place[-1], model.model_fields)}"
    what = fault["msg"].removeprefix("Value error, ")
    return f"{where}: {what[:1].lower()}{what[1:]}"


def read_secrets_blocking(
    name: str, config: ServerConfig, environ: Mapping[str, str]
) -> Mapping[str, str]:
    """Return a server's secrets as they are used. Raise `StartError` if one is missing."""
    found = {}
    for key, source in config.secrets.items():
        if source.env is not None:
            value, where = environ.get(source.env, ""), f"the variable {source.env}"
        else:
            value, where = _read_secret_blocking(source.file), f"the file {source.file}"
        if not value.strip() or not value.strip().isprintable():
            raise StartError(
                f"The secret {key} of the MCP server {name} is not in {where}; put one line of "
                "text there."
            )
        found[key] = source.before + value.strip()
    return found


def _read_secret_blocking(path: Path | None) -> str:
    try:
        with (path or Path()).open("rb") as file:
            return file.read(MAX_SECRET_BYTES).decode()
    except (OSError, ValueError):
        return ""
