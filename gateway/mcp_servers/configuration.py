"""The MCP servers that the operator names: the file of `CANDOR_MCP_FILE`."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gateway.config_files import ConfigFile, SecretSource, Table
from policies.calls import OwnToolRule
from policies.visible_text import show

RESERVED_NAMES = frozenset({"memory", "web"})
"""Servers of the gateway's own."""

ServerName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
Port = Annotated[int, Field(ge=1, le=65535)]


class ServerConfig(Table):
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
    environment: dict[str, str] = Field(default_factory=dict)
    secrets: dict[str, SecretSource] = Field(default_factory=dict)
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


class _File(Table):
    servers: dict[ServerName, ServerConfig] = Field(default_factory=dict)


def load_servers_blocking(
    path: Path, in_reach: Collection[Path] = ()
) -> Mapping[str, ServerConfig]:
    """Return the servers of a file by name.

    `in_reach` are directories that agents can change; the file must not lie there. Raise
    `StartError` if the file cannot be used.
    """
    file = ConfigFile(path, title="The MCP file", setting="CANDOR_MCP_FILE")
    servers = file.load_blocking(_File, {1: _File, 3: ServerConfig}, in_reach).servers
    for name in RESERVED_NAMES & servers.keys():
        raise file.fault(f"servers.{name}: the name is taken; choose another")
    return servers


def read_secrets_blocking(
    name: str, config: ServerConfig, environ: Mapping[str, str]
) -> Mapping[str, str]:
    """Return a server's secrets as they are used. Raise `StartError` if one is missing."""
    return {
        key: source.before
        + source.read_blocking(f"The secret {key} of the MCP server {name}", environ)
        for key, source in config.secrets.items()
    }
