"""The command `doctor`: check what a start checks, without starting, and print the settings."""

import os
import platform
import re
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Literal, TextIO

import anyio
import psutil

from gateway.agent_setup import (
    AgentPlan,
    find_wall_blocking,
    make_setup_blocking,
    temporary_of,
)
from gateway.agents import (
    check_users_agents,
    check_users_wall,
    plan_agents,
    plan_mcp_blocking,
    relay_target_blocking,
)
from gateway.credentials import secrets_of
from gateway.database.check import examine_files_blocking
from gateway.engine.box.choice import describe_box, make_box_blocking
from gateway.engine.options import AgentSetup
from gateway.engine.sdk import find_agent_program
from gateway.errors import StartError
from gateway.http.auth import check_exposure
from gateway.http.hosts import address_of
from gateway.instance import holder_of
from gateway.lost_data import DATABASE, count_damaged_blocking
from gateway.memory import (
    embedder_choice,
    require_model_blocking,
    told_with_advice,
    try_embedder,
)
from gateway.nodes import find_different_in
from gateway.observability.trace_plan import plan_traces
from gateway.rules import load_policy_blocking
from gateway.serve import home_of, listen_blocking, prepare_blocking
from gateway.settings import PREFIX, Settings
from gateway.storage import try_postgres, where_to_look
from gateway.trust import review_blocking
from gateway.version import COMMAND
from gateway.workspaces import load_workspaces_blocking
from memory.embeddings.choice import has_embedder
from memory.errors import BackendUnavailable, StoreUnavailable
from memory.service.index_place import place_sentence
from policies.rules import Rules
from policies.secrets import mask_secrets

_LEAST_FREE_BYTES = 1_000_000_000

_ASK_S = 3.0
"""For a running server to answer `/healthz`."""
_HOLDER = re.compile(r"\bprocess (\d+)\b")

_NOT_TRUSTED = (
    "Active configuration in the workspace is not approved, so no agent starts; review it "
    f"with `{COMMAND} policy trust`."
)

_UNJUDGED = (
    "Configuration in the workspace cannot be judged, and so not be approved, and no agent starts; "
    f"list it with `{COMMAND} policy trust`, and move it away."
)

_USER_NOT_TRUSTED = (
    "Active configuration in the folder users/{folder} is not approved, so no agent starts there; "
    f"review it with `{COMMAND} policy trust --user NAME`."
)

_WITHOUT_RELAY = (
    "Agent processes hold the credential, prewarmed ones are less warm, and failures of the "
    "model's "
    "service are known later."
)

_DAMAGED = (
    "Damaged records in the database: {count}. The server starts and leaves them out; restore a "
    "backup if"
    " they matter."
)

Finding = tuple[Literal["ok", "note", "fault"], str]


def examine(settings: Settings, environ: Mapping[str, str], *, out: TextIO) -> int:
    """Print the findings and the settings; return 0 if the server could start with all its parts,
    else 1.
    """
    findings = list(_findings(settings, environ))
    out.writelines(f"{kind:>5}  {sentence}\n" for kind, sentence in findings)
    out.write("\n")
    for setting in fields(settings):
        value = getattr(settings, setting.name)
        shown = "" if value is None else str(value)
        name = f"{PREFIX}{setting.name.upper()}"
        out.write(f"{name}={shown}{'   (set)' if environ.get(name) else ''}\n")
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
    yield _relay_finding(settings, environ, plan)
    yield from _trace_findings(environ)
    yield from _start_findings(settings)
    yield from _stored_findings(settings)
    yield from _embedder_findings(settings, environ)
    if program is not None:
        yield from _wall_findings(settings, environ, plan, program)
    if settings.mcp_file is not None:
        yield from _mcp_findings(settings, environ)
    free = shutil.disk_usage(settings.data_dir if settings.data_dir.exists() else Path.cwd()).free
    if free < _LEAST_FREE_BYTES:
        yield "note", f"Only {free // 1_000_000} MB are free on the disk of CANDOR_DATA_DIR."


def _relay_finding(settings: Settings, environ: Mapping[str, str], plan: AgentPlan) -> Finding:
    try:
        without = relay_target_blocking(settings, environ, plan)
    except StartError as exc:
        return "fault", str(exc)
    if isinstance(without, str):
        return "note", f"The model relay is not used: {without}. {_WITHOUT_RELAY}"
    return "ok", "The model relay holds the credential; no agent process gets it."


def _trace_findings(environ: Mapping[str, str]) -> Iterator[Finding]:
    traces = plan_traces(environ)
    if traces.endpoint is not None:
        yield "ok", f"A trace of each turn goes to {traces.endpoint}."
    elif traces.fault is not None:
        yield "note", traces.fault


def _start_findings(settings: Settings) -> Iterator[Finding]:
    """Try the first steps of a start; only the directories stay."""
    try:
        check_exposure(settings)
        holder = holder_of(settings.data_dir)
        if holder is None:
            if warning := prepare_blocking(settings):
                yield "note", warning
        else:
            yield from _running_findings(settings, holder)
            _check_beside(settings)
        yield "ok", "The policy's rules can be read, the directories written."
        yield from _workspace_findings(settings)
        if holder is None:
            listen_blocking(settings).close()
            yield (
                "ok",
                f"Port {settings.port} is free." if settings.port else "A free port is taken.",
            )
    except StartError as exc:
        yield "fault", str(exc)


def _workspace_findings(settings: Settings) -> Iterator[Finding]:
    """Report whose the workspaces are, and which hold configuration that is not approved."""
    workspaces = load_workspaces_blocking(settings)
    if not workspaces.is_per_user:
        report = review_blocking(settings)
        if not report.is_trusted:
            yield "fault", _NOT_TRUSTED if report.is_approvable else _UNJUDGED
        return
    count = len(workspaces.projects)
    yield "ok", f"Each user works in a folder of their own; shared projects beside it: {count}."
    folders = (path for path in workspaces.users_dir.glob("[!.]*") if path.is_dir())
    for folder in sorted(folders):
        if not review_blocking(replace(settings, workspace=folder)).is_trusted:
            yield "note", _USER_NOT_TRUSTED.format(folder=folder.name)


def _stored_findings(settings: Settings) -> Iterator[Finding]:
    for part, reason in examine_files_blocking(settings):
        if part.file == DATABASE:
            yield "fault", f"{reason} {where_to_look(settings)}"
        else:
            yield "fault", f"Memory cannot be used as it is. {told_with_advice(reason, settings)}"
    damaged = count_damaged_blocking(settings)
    if settings.database_url is not None:
        try:
            version, damaged, hindrance = anyio.run(try_postgres, settings.database_url)
        except StartError as exc:
            yield "fault", str(exc)
            return
        except StoreUnavailable as exc:
            yield "fault", f"{exc} {where_to_look(settings)}"
            return
        yield "ok", f"Conversations are in PostgreSQL {version}."
        with suppress(StartError):  # the embedder's finding reports it
            if has_embedder(embedder_choice(settings)):
                yield "ok" if hindrance is None else "note", place_sentence(hindrance)
        with suppress(StoreUnavailable):  # an earlier version made the tables, or none has yet
            if others := anyio.run(find_different_in, settings):
                urls, variables = ", ".join(others.urls), ", ".join(others.variables)
                yield "note", f"Nodes with other settings ({variables}) run: {urls}."
    if damaged:
        yield "note", _DAMAGED.format(count=damaged)


def _embedder_findings(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Try the embedder with one vector; without it, memory is searched by words."""
    mask = partial(mask_secrets, known=tuple(secrets_of(environ)))
    try:
        require_model_blocking(settings)
        yield "ok", anyio.run(try_embedder, settings, mask)
    except StartError as exc:
        yield "fault", str(exc)
    except BackendUnavailable as exc:
        yield "note", f"{exc} Until it answers, memory is searched by words alone."


def _running_findings(settings: Settings, holder: str) -> Iterator[Finding]:
    """Report the running server, its address and whether it answers."""
    address = next(filter(_is_alive, _addresses(settings, holder)), None)
    if address is None:
        silent = "runs on this data directory, but answers at no known address."
        yield "note", f"A Candor server ({holder}) {silent}"
        return
    yield "ok", f"A Candor server ({holder}) runs on this data directory and answers at {address}."
    port = int(address.rpartition(":")[2])
    if settings.port not in {0, port}:
        given = f"CANDOR_PORT={settings.port}"
        yield "note", f"It does not listen on {given}; that takes effect at its next start."


def _addresses(settings: Settings, holder: str) -> Iterator[str]:
    """Yield addresses of the server: by the settings, then those on which its process listens."""
    process = _HOLDER.search(holder)
    try:
        sockets = psutil.Process(int(process[1])).net_connections("tcp") if process else []
    except (psutil.Error, OSError):
        sockets = []
    ports = {found.laddr.port for found in sockets if found.status == psutil.CONN_LISTEN}
    if process is None or settings.port in ports or (settings.port and not ports):
        yield address_of(settings.host, settings.port)
    yield from (address_of(settings.host, port) for port in sorted(ports - {settings.port}))


def _is_alive(address: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy
    try:
        with opener.open(f"{address}/healthz", timeout=_ASK_S) as answer:
            return bool(answer.status == 200)  # noqa: PLR2004  HTTP's word for it
    except (OSError, ValueError, HTTPException):
        return False


def _check_beside(settings: Settings) -> None:
    """Check the needs of a start without touching the files of the running server.

    Raise `StartError` if the policy file holds a mistake, or a directory cannot be written.
    """
    load_workspaces_blocking(settings)
    load_policy_blocking(settings)
    for directory in (settings.data_dir, settings.log_dir, settings.workspace):
        if not os.access(directory, os.W_OK | os.X_OK):
            raise StartError(f"The directory {directory} does not exist or cannot be written.")


def _mcp_findings(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Read the file of MCP servers, and try their boxes, as a start does."""
    try:
        servers = plan_mcp_blocking(settings, environ)
    except StartError as exc:
        yield "fault", str(exc)
        return
    yield "ok", f"MCP servers: {', '.join(server.name for server in servers) or 'none'}."
    if bare := [server.name for server in servers if server.box == "off"]:
        yield "note", f"These MCP servers run without a box: {', '.join(bare)}."


def _wall_findings(
    settings: Settings, environ: Mapping[str, str], plan: AgentPlan, program: Path
) -> Iterator[Finding]:
    """Try the kernel's sandbox as a start does."""
    try:
        rules, workspaces = load_policy_blocking(settings), load_workspaces_blocking(settings)
        check_users_agents(workspaces, plan)
        settings = workspaces.own.settings(settings)
        setup = make_setup_blocking(settings, environ, plan, program, rules)
        wall = find_wall_blocking(settings, environ, plan, setup, rules)
        check_users_wall(workspaces, settings, wall)
    except StartError as exc:
        yield "fault", str(exc)
        return
    yield "ok" if wall.kind == "landlock" else "note", wall.sentence
    yield _box_finding(settings, environ, plan, setup, rules)


def _box_finding(
    settings: Settings,
    environ: Mapping[str, str],
    plan: AgentPlan,
    setup: AgentSetup,
    rules: Rules,
) -> Finding:
    """Try the box of shell commands, also where the settings do not ask for it."""
    is_wanted = settings.shell == "sandboxed"
    try:
        wanted = replace(settings, shell="sandboxed")  # noqa: S604  a setting
        box = make_box_blocking(wanted, rules, temporary_of(settings), environ)
        assert box is not None
        # apart from the folder of a server that runs, whose agents reach its broker there
        with tempfile.TemporaryDirectory(prefix="box-", dir=settings.data_dir) as folder:
            tried = replace(box, folder=Path(folder).resolve())
            tried.write_script_blocking()
            find_wall_blocking(wanted, environ, plan, setup, rules, tried)
    except StartError as exc:
        if is_wanted:
            return "fault", str(exc)
        return "note", f"This machine offers only CANDOR_SHELL=listed: {exc}"
    if is_wanted:
        return "ok", describe_box(box)
    return "ok", "This machine offers CANDOR_SHELL=sandboxed, too: a box for each shell command."
