"""The engine on the Claude Agent SDK: real agent processes."""

import logging
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import claude_agent_sdk
from anyio.abc import TaskGroup

from gateway.engine import processes, transcripts
from gateway.engine.client import OnUnsolicited, SdkClient
from gateway.engine.hooks import RunHooks
from gateway.engine.options import AgentSetup, build_options, mark_of
from gateway.engine.protocol import (
    ClientSpec,
    EngineUnavailable,
    SessionOrigin,
    WorkspaceUntrusted,
)
from gateway.trust import TrustReport, review_folder_blocking
from gateway.version import COMMAND

_log = logging.getLogger(__name__)

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
        on_unsolicited: OnUnsolicited | None = None,
        review: Review = review_folder_blocking,
    ) -> None:
        self._review = review
        self._setup = setup
        self._tasks = tasks
        self._on_unsolicited = on_unsolicited
        self._last_failure: str | None = None
        """The error of the last start of an agent; None if it succeeded."""

    @property
    def _config_dir(self) -> Path:
        return self._setup.config_dir or transcripts.default_config_dir()

    async def connect(self, spec: ClientSpec, origin: SessionOrigin) -> SdkClient:
        """See `Engine.connect`."""
        await self._review_workspace()
        client_id = secrets.token_hex(8)
        hooks = RunHooks()
        client = SdkClient(
            client_id,
            mark_of(self._setup, client_id),
            hooks,
            on_unsolicited=self._on_unsolicited,
        )
        options = build_options(self._setup, spec, origin, hooks, client_id)
        options.stderr = client.on_stderr
        self._tasks.start_soon(_own, client, options)
        try:
            if origin.resume is not None:
                client.count_cost_from(await self._spent_usd(origin.resume))
            await client.wait_connected()
        except BaseException as exc:
            if isinstance(exc, EngineUnavailable):
                self._last_failure = str(exc)
            await client.kill()
            raise
        self._last_failure = None
        return client

    async def _review_workspace(self) -> None:
        """Check for active configuration that nobody approved, before each start.

        Raises:
            WorkspaceUntrusted: there is some.
            EngineUnavailable: the folder or the approvals cannot be read.
        """
        setup = self._setup
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

    async def _spent_usd(self, session_id: str) -> float:
        try:
            return await anyio.to_thread.run_sync(
                transcripts.spent_usd_blocking, self._config_dir, session_id
            )
        except OSError:
            _log.warning("session_cost_unknown", exc_info=True)
            return 0.0

    async def forget_session(self, session_id: str) -> None:
        """See `Engine.forget_session`."""
        await anyio.to_thread.run_sync(transcripts.forget_blocking, self._config_dir, session_id)

    async def end_orphans(self) -> int:
        """See `Engine.end_orphans`."""
        return await anyio.to_thread.run_sync(processes.end_owner_blocking, self._setup.owner)

    async def ping(self) -> str | None:
        """See `Engine.ping`."""
        if not await anyio.to_thread.run_sync(self._setup.cli_path.is_file):
            return "The agent program is missing; install claude-agent-sdk again."
        if not await anyio.to_thread.run_sync(self._setup.workspace.is_dir):
            return "The workspace is missing; make the directory again, or set CANDOR_WORKSPACE."
        try:
            await self._review_workspace()
        except WorkspaceUntrusted:
            return (
                "The workspace holds configuration that acts by itself and that nobody approved; "
                f"look at it with: {COMMAND} policy trust."
            )
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


async def _own(client: SdkClient, options: claude_agent_sdk.ClaudeAgentOptions) -> None:
    """Run one owner task; an error in it ends this client only."""
    try:
        await client.serve(options)
    except Exception:  # noqa: BLE001  it must not end the other clients
        _log.exception("client_task_failed")
