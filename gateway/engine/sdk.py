"""The engine on the Claude Agent SDK: real agent processes, and their session files' cost and
deletion.
"""

import json
import logging
import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import claude_agent_sdk
from anyio.abc import TaskGroup
from claude_agent_sdk import SessionStore

from gateway.engine import processes
from gateway.engine.client import SdkClient
from gateway.engine.hooks import RunHooks
from gateway.engine.options import NO_INSTRUCTIONS, AgentSetup, build_options, mark_of
from gateway.engine.protocol import (
    ClientSpec,
    EngineUnavailable,
    SessionOrigin,
    WorkspaceUntrusted,
)
from gateway.engine.session_files import forget_blocking, is_session_id, transcripts_of
from gateway.engine.session_mirror import FoundSession, SessionMirror, find_session, stored_name
from gateway.engine.warm_up import warm_up
from gateway.transcripts import TranscriptStore
from gateway.trust import TrustReport, review_folder_blocking
from gateway.version import COMMAND

_log = logging.getLogger(__name__)

_COST_MARK = b'"cost-state"'
_MOST_FAILED_WARM_UPS = 3
_MOST_STARTS = 3
_WRITTEN_S = 3.0
_LOOK_AGAIN_S = 0.01

_UNAPPROVED = (
    "The workspace holds configuration that acts by itself and that nobody approved; "
    f"look at it with: {COMMAND} policy trust."
)
_UNJUDGED = (
    "The workspace holds configuration that cannot be judged, and so not be approved; "
    f"list it with: {COMMAND} policy trust. Then move it away."
)


def default_config_dir() -> Path:
    """Return the agent program's default directory."""
    return Path.home() / ".claude"


def spent_usd_blocking(config_dir: Path, session_id: str) -> float:
    """Return the session's cost when its agent last ended in order; 0 if it is not recorded.

    An agent that resumes the session continues from this value.
    """
    for transcript in transcripts_of(config_dir, session_id):
        for line in reversed(transcript.read_bytes().split(b"\n")):
            if _COST_MARK in line and (spent := _cost_in(line)) is not None:
                return spent
    return 0.0


def forget_written_blocking(config_dir: Path, session_id: str, last: bytes) -> None:
    """Delete a session's transcript once it has the text `last`, after which no more is written.

    The agent program writes it some 100 ms later.

    Raises:
        EngineUnavailable: it was not written in time.
    """
    until = time.monotonic() + _WRITTEN_S
    while not any(last in path.read_bytes() for path in transcripts_of(config_dir, session_id)):
        if time.monotonic() > until:
            raise EngineUnavailable("The agent wrote no transcript of its warm-up.")
        time.sleep(_LOOK_AGAIN_S)
    forget_blocking(config_dir, session_id)


def _cost_in(line: bytes) -> float | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict) or entry.get("type") != "cost-state":
        return None
    spent = entry.get("totalCostUSD")
    return float(spent) if isinstance(spent, int | float) else None


Review = Callable[[Path, Path | None], TrustReport]
"""Reviews a workspace's own configuration; see `review_folder_blocking`."""


def find_agent_program() -> Path | None:
    """Return the agent program: the SDK's own, or the one on the path."""
    folder = Path(claude_agent_sdk.__file__).with_name("_bundled")
    for bundled in (folder / "claude", folder / "claude.exe"):
        if bundled.is_file():
            return bundled
    found = shutil.which("claude")
    return Path(found) if found else None


class SdkEngine:
    """See `Engine`. The clients' owner tasks run in the given task group."""

    def __init__(
        self,
        setup: AgentSetup,
        tasks: TaskGroup,
        *,
        review: Review = review_folder_blocking,
        transcripts: TranscriptStore | None = None,
    ) -> None:
        """Initialise; `transcripts` keeps the sessions beside their files, None: nothing does."""
        self._review = review
        self._transcripts = transcripts
        self._setup = setup
        self._tasks = tasks
        self._failed_warm_ups = 0
        """Failures in a row; an agent program that cannot be warmed up is still prewarmed."""
        self._last_failure: str | None = None
        """The error of the last start of an agent; None if it succeeded."""

    @property
    def _config_dir(self) -> Path:
        return self._setup.config_dir or default_config_dir()

    async def connect(self, spec: ClientSpec, origin: SessionOrigin) -> SdkClient:
        if origin.resume is None:
            client = await self._start(spec, origin)
        else:
            client = await self._resume(spec, origin, origin.resume)
        self._last_failure = None
        if origin.warm_up:
            await self._warm_up(client)
        return client

    async def _resume(self, spec: ClientSpec, origin: SessionOrigin, session_id: str) -> SdkClient:
        """Start a client that continues a session, and count its cost from what the session had
        cost.

        The agent reads that while it starts. A session that is forked may have an agent that ends
        meanwhile and writes its own cost: then it is not known what was read, and another is
        started.
        """
        found = await self._find(spec, session_id)
        for _ in range(_MOST_STARTS):
            before = await self._spent_usd(session_id)
            client = await self._start(spec, origin, found)
            try:
                after = await self._spent_usd(session_id)
            except BaseException:
                await client.kill()
                raise
            if after == before:
                break
            await client.kill()
        else:
            raise EngineUnavailable("The session's cost kept changing while its agent started.")
        client.session.count_cost_from(before)
        return client

    async def _find(self, spec: ClientSpec, session_id: str) -> FoundSession | None:
        """Bring the session's file up to date, if sessions are stored elsewhere too."""
        if self._transcripts is None or not is_session_id(session_id):
            return None
        workspace = self._setup_of(spec).workspace
        return await find_session(self._transcripts, self._config_dir, workspace, session_id)

    def _setup_of(self, spec: ClientSpec) -> AgentSetup:
        tree = spec.work_tree
        return self._setup if tree is None else replace(self._setup, workspace=tree)

    async def _start(
        self, spec: ClientSpec, origin: SessionOrigin, found: FoundSession | None = None
    ) -> SdkClient:
        setup = self._setup_of(spec)
        report = await self._review_workspace(setup)
        client_id = secrets.token_hex(8)
        relay = self._setup.relay
        free = partial(relay.hold, client_id, is_held=False) if relay else None
        hooks = RunHooks(on_accepted=free, config_dir=self._config_dir)
        mirror = None
        if self._transcripts is not None and self._transcripts.is_fed:
            resumed = found if origin.fork_at is None else None
            mirror = SessionMirror(self._transcripts, self._config_dir, resumed)
        client = SdkClient(
            client_id,
            mark_of(self._setup, client_id),
            hooks,
            relay=relay,
            mirror=mirror,
        )
        if self._setup.outputs is not None:
            self._setup.outputs.admit(client_id, client.session.hear_output)
        token = relay.admit(client_id, client.session.report_service) if relay else None
        if not report.may_instruct and not origin.warm_up:  # a prewarmed one waits; some may come
            setup = replace(setup, model_env={**setup.model_env, **NO_INSTRUCTIONS})
        options = build_options(setup, spec, origin, hooks, client_id, token, report.instructions)
        options.stderr = client.on_stderr
        # it has what the SDK calls where the transport is ours
        options.session_store = cast("SessionStore | None", mirror)
        options.session_store_flush = "eager"  # else a turn that is cut off is lost as a whole
        self._tasks.start_soon(self._own, client, options)
        try:
            await client.wait_connected()
        except BaseException as exc:
            if isinstance(exc, EngineUnavailable):
                self._last_failure = str(exc)
            await client.kill()
            raise
        return client

    async def _warm_up(self, client: SdkClient) -> None:
        """Run a client once, unless that failed lately.

        Raises:
            WarmUpFailed: it did not work; the client is gone.
        """
        if self._failed_warm_ups >= _MOST_FAILED_WARM_UPS:
            return
        self._failed_warm_ups += 1
        try:
            session_id = await warm_up(client, self._setup.relay)
            last = b'"rewound":true' if self._setup.relay else b'"type":"system"'
            await anyio.to_thread.run_sync(
                forget_written_blocking, self._config_dir, session_id, last
            )
        except BaseException:
            await client.kill()
            if client.session_id is not None:
                with anyio.CancelScope(shield=True):
                    await self.forget_session(client.session_id)
            raise
        self._failed_warm_ups = 0

    async def _own(self, client: SdkClient, options: claude_agent_sdk.ClaudeAgentOptions) -> None:
        """Run one owner task; an error in it ends this client only."""
        try:
            await client.serve(options)
        except Exception:  # noqa: BLE001  it must not end the other clients
            _log.exception("client_task_failed")
        finally:
            for admitted in (self._setup.relay, self._setup.outputs):
                if admitted is not None:
                    admitted.revoke(client.client_id)

    async def _review_workspace(self, setup: AgentSetup) -> TrustReport:
        """Check the workspace for active configuration that nobody approved, before each start.

        Raises:
            WorkspaceUntrusted: there is some.
            EngineUnavailable: the folder or the approvals cannot be read.
        """
        try:
            report = await anyio.to_thread.run_sync(
                self._review, setup.workspace, setup.approvals_file
            )
        except OSError as exc:
            raise EngineUnavailable(
                "The workspace's configuration could not be read.", detail=str(exc)
            ) from exc
        if report.concerns:
            raise WorkspaceUntrusted(report.concerns)
        return report

    async def _spent_usd(self, session_id: str) -> float:
        try:
            return await anyio.to_thread.run_sync(spent_usd_blocking, self._config_dir, session_id)
        except OSError:
            _log.warning("session_cost_unknown", exc_info=True)
            return 0.0

    async def forget_session(self, session_id: str) -> None:
        await anyio.to_thread.run_sync(forget_blocking, self._config_dir, session_id)
        if self._transcripts is not None:
            await self._transcripts.delete(stored_name(session_id))

    async def end_orphans(self) -> int:
        return await anyio.to_thread.run_sync(processes.end_owner_blocking, self._setup.owner)

    async def ping(self) -> str | None:
        if not await anyio.to_thread.run_sync(self._setup.cli_path.is_file):
            return "The agent program is missing; install claude-agent-sdk again."
        if not await anyio.to_thread.run_sync(self._setup.workspace.is_dir):
            return "The workspace is missing; make the directory again, or set CANDOR_WORKSPACE."
        try:
            await self._review_workspace(self._setup)
        except WorkspaceUntrusted as exc:
            return _UNAPPROVED if exc.is_approvable else _UNJUDGED
        except EngineUnavailable as exc:
            return str(exc)
        return self._last_failure


def require_agent_program() -> Path:
    """Return the agent program.

    Raises:
        EngineUnavailable: there is none.
    """
    found = find_agent_program()
    if found is None:
        raise EngineUnavailable(
            "No agent program was found: the installed claude-agent-sdk carries none for this "
            "system and there is no `claude` on the path."
        )
    return found
