"""The parts of a running server, and the end of its turns."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from gateway.chat import Chat
from gateway.conversations.duty import Duty
from gateway.conversations.event_log import EventLog
from gateway.engine.pool import ClientPool
from gateway.engine.protocol import Engine
from gateway.journal.writer import Journal
from gateway.mcp_servers.servers import McpServers
from gateway.memory import MissingMemory
from gateway.model_access import Ping
from gateway.observability.metrics import Metrics
from gateway.settings import Settings
from gateway.turns.lanes import Lanes
from gateway.turns.ownership import Ownership
from gateway.turns.workspaces import OpenWorkspaces
from gateway.users.accounts import Accounts
from gateway.webhooks.desk import Webhooks
from memory.remote.small_model import AskModel
from memory.service.memory import Memory

_log = logging.getLogger(__name__)

_STORE_S = 5.0
"""How long storing the last results may take beyond the graces; on a full disk it never ends."""
_AT_ONCE_S = 2.0
"""How long a hurried shutdown waits for agents to stop; they need milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of a running server."""

    settings: Settings
    chat: Chat
    workspaces: OpenWorkspaces
    engine: Engine
    pool: ClientPool
    log: EventLog
    lanes: Lanes
    ownership: Ownership
    duty: Duty
    journal: Journal
    metrics: Metrics
    pings: Mapping[str, Ping]
    """For each part that can fail: None or its state if it works, else a sentence."""
    demo: bool
    model: str | None
    background: TaskGroup
    mcp_servers: McpServers
    webhooks: Webhooks
    memory: Memory | None
    """None if it could not be opened."""
    accounts: Accounts
    """Users, and the audit log; also if nobody signs in."""
    missing_memory: MissingMemory | None = None
    """Why there is no memory."""
    ask_model: AskModel | None = None
    """See `ModelAccess`."""
    makes_traces: bool = False

    async def end_turns(self) -> None:
        """Take nothing more; let turns finish within the grace, then stop them; bounded."""
        await self.duty.give_up()
        graces_s = self.settings.shutdown_grace_s + self.settings.interrupt_grace_s
        with anyio.move_on_after(graces_s + _STORE_S) as scope:
            await self.chat.intake.shut_down(grace_s=self.settings.shutdown_grace_s)
        if scope.cancelled_caught:  # the next start completes the turns that were cut off
            _log.error("shutdown_cut_short")

    async def cut_short(self) -> None:
        """Hurry a shutdown, also while the services are closing.

        Running turns are stopped at once; soon after their agents are killed. When this returns
        each turn has its result, unless nothing can be stored.
        """
        with anyio.move_on_after(_AT_ONCE_S):
            await self.chat.intake.shut_down(grace_s=0)
        await self.engine.end_orphans()
        with anyio.move_on_after(_AT_ONCE_S):
            await self.chat.intake.shut_down(grace_s=0)
