"""Secrets that the proxy of the boxes adds to requests: the file of `CANDOR_SHELL_SECRETS_FILE`.

The proxy alone has them: no command can read them. A command may do with a host whatever its secret
allows, so it should allow little.
"""

from base64 import b64encode
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, field_validator, model_validator

from gateway.config_files import ConfigFile, SecretSource, Table
from policies.visible_text import show

_FRAMING: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that say where a request ends or goes."""


class HostSecret(SecretSource):
    """What requests to a host carry."""

    user: str | None = None
    """The secret is this user's password: HTTP's scheme Basic, as git servers take it."""
    header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,64}$")] = "authorization"

    @model_validator(mode="after")
    def _is_sent_in_one_way(self) -> Self:
        if self.user is not None and (self.before or "header" in self.model_fields_set):
            raise ValueError("a user stands with neither before nor header")
        if ":" in (self.user or "") or not (self.user or "").isprintable():
            raise ValueError("a user is one line with no colon")
        if self.header.lower() in _FRAMING:
            raise ValueError(f"{self.header} cannot carry a secret")
        return self


class _File(Table):
    hosts: dict[str, HostSecret] = Field(default_factory=dict)

    @field_validator("hosts", mode="before")
    @classmethod
    def _are_quoted(cls, given: object) -> object:
        """Recognise `[hosts.git.example.org]`, which TOML reads as tables in tables."""
        for name, table in given.items() if isinstance(given, dict) else ():
            if below := _name_below(table):
                shown = show(f"{name}.{below}")
                raise ValueError(f'a host stands in quotation marks: [hosts."{shown}"]')
        return given


def _name_below(table: object) -> str:
    """Return the names of the tables in a table, with dots between; empty: there are none."""
    for name, inner in table.items() if isinstance(table, dict) else ():
        if isinstance(inner, dict):
            below = _name_below(inner)
            return f"{name}.{below}" if below else str(name)
    return ""


def read_host_secrets_blocking(
    path: Path,
    hosts: Collection[str],
    environ: Mapping[str, str],
    *,
    written: Collection[Path],
    read: Collection[Path] = (),
) -> Mapping[str, tuple[str, str]]:
    """Return by host the header that its requests carry: name and value.

    `hosts` are those that commands reach. The file may not lie in the directories `written`, which
    agents can change, nor a secret there or in those that commands can `read`. Raise `StartError`
    if the file cannot be used, a secret is missing or lies there, or a host is not one of them.
    """
    file = ConfigFile(path, title="The file of secrets", setting="CANDOR_SHELL_SECRETS_FILE")
    found = {}
    for host, source in file.load_blocking(_File, {1: _File, 3: HostSecret}, written).hosts.items():
        if host not in hosts:
            raise file.fault(f"hosts.{host}: name it in CANDOR_SHELL_HOSTS, too")
        for folder in (*written, *read):
            if source.file and source.file.resolve().is_relative_to(folder.resolve()):
                what = f"its secret lies in {folder}, where commands could read it; move it"
                raise file.fault(f"hosts.{host}: {what}")
        secret = source.read_blocking(f"The secret of the host {host}", environ)
        if source.user is None:
            value = source.before + secret
        else:
            value = "Basic " + b64encode(f"{source.user}:{secret}".encode()).decode()
        found[host] = (source.header.lower(), value)
    return found
