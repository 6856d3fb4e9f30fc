"""Decides from the settings what the boxes of a server are like."""

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import Final

from gateway.engine.box.broker_plan import BrokerPlan
from gateway.engine.box.host_secrets import read_host_secrets_blocking
from gateway.engine.box.process import (
    Box,
    find_bubblewrap_blocking,
    is_packaged,
    system_paths_blocking,
)
from gateway.engine.box.trial import refuse, refuse_without_program
from gateway.engine.box.wrapper import KEY
from gateway.errors import SettingsError, StartError
from gateway.settings import Settings
from policies.rules import Rules

_FOLDER: Final = "box"
"""Below the data directory: how agents reach the box of their shell commands."""


def make_box_blocking(
    settings: Settings, rules: Rules, temporary: Path, environ: Mapping[str, str]
) -> Box | None:
    """Prepare the box of shell commands, if the settings ask for it.

    `temporary` is the agents' temporary directory; `environ` is read for secrets that the settings'
    file names. Raise `StartError` if it cannot be prepared.
    """
    if settings.shell != "sandboxed":
        return None
    program = find_bubblewrap_blocking()
    if program is None or not sys.platform.startswith("linux"):
        raise SettingsError(str(refuse_without_program()))
    folder = settings.data_dir.resolve() / _FOLDER
    if " -" in str(folder):
        reason = "the path of CANDOR_DATA_DIR holds a space before a hyphen"
        raise SettingsError(
            str(refuse(reason, "The agent program cannot start commands from there."))
        )
    hosts = settings.shell_hosts.split(",") if settings.shell_hosts else []
    secrets: Mapping[str, tuple[str, str]] = {}
    if settings.shell_secrets_file is not None:
        secrets = read_host_secrets_blocking(
            settings.shell_secrets_file,
            hosts,
            environ,
            written=[
                settings.workspace,
                *(place.path for place in rules.directories if place.writable),
            ],
            read=[place.path for place in rules.directories],
        )
    box = Box(
        folder=folder,
        plan=BrokerPlan(
            program=str(program),
            is_packaged=is_packaged(program),
            system=system_paths_blocking(),
            workspace=str(settings.workspace.resolve()),
            folders=[
                ["write" if place.writable else "read", str(place.path)]
                for place in rules.directories
            ],
            temporary=str(temporary),
            memory_mb=settings.shell_memory_mb,
            hosts=hosts,
            secrets={host: list(header) for host, header in secrets.items()},
            key=_key_blocking(folder),
        ),
    )
    try:
        box.write_script_blocking()
    except OSError as exc:
        raise StartError(
            f"The data directory {settings.data_dir} cannot be written ({exc.strerror}); "
            "make room there, or set CANDOR_DATA_DIR to another."
        ) from exc
    return box


def describe_box(box: Box) -> str:
    """Return what the box of shell commands keeps, for people."""
    hosts = ", ".join(box.plan.hosts)
    network = f"reach {hosts} alone" if hosts else "have no network"
    if box.plan.secrets:
        network += f" (with a secret that they cannot read: {', '.join(box.plan.secrets)})"
    return (
        "Shell commands run in a box of their own (bubblewrap): they see the workspace and the "
        f"system's programs, and {network}."
    )


def _key_blocking(folder: Path) -> str:
    """Return the key of a box, a new one if it has none: `doctor` is run beside a server."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return (folder / KEY).read_text(encoding="ascii") or token_hex()
    return token_hex()
