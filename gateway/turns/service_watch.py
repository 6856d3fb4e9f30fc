"""Stop a turn whose model service is silent, or keeps failing, for too long.

Silence counts while the agent waits for the model: the agent process sends nothing, no tool call is open
(tools and approvals take their own time), and no announced pause before a retry is running.
"""

import anyio

from gateway.engine.events import EngineEvent, ModelRetrying, TextDone, ToolCalled
from gateway.engine.protocol import AgentRun
from gateway.turns.context import TurnContext

NOTICE_S = 15.0
"""Silence is reported to the person after so long, or after half of the limit where that is less."""


class ServiceWatch:
    """Watches the model's service over the runs of one turn."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._limit_s = context.parts.limits.model_silence_s
        self._notice_s = min(NOTICE_S, self._limit_s / 2)
        self._noticed = False
        self._retry_at = 0.0
        self._failing_since: float | None = None

    def take(self, event: EngineEvent) -> None:
        """Note a failure or a success of the service; stop the turn when failures last too long."""
        if isinstance(event, TextDone | ToolCalled):
            self._failing_since = None
        elif isinstance(event, ModelRetrying):
            now = anyio.current_time()
            self._retry_at = now + event.delay_ms / 1000
            if self._failing_since is None:
                self._failing_since = now
            if self._retry_at - self._failing_since > self._limit_s:
                self._context.control.stop("api_error")

    async def watch(self, run: AgentRun) -> None:
        """Wait for a silence that is too long and stop the turn; cancel it when the run has ended."""
        silent_s = self._silent_s(run)
        while silent_s < self._limit_s:
            if silent_s >= self._notice_s and not self._noticed:
                self._noticed = True
                seconds, limit = f"{self._notice_s:g}", f"{self._limit_s:g}"
                self._context.notice("model_silent", seconds=seconds, limit=limit)
            threshold_s = self._limit_s if self._noticed else self._notice_s
            await anyio.sleep(threshold_s - silent_s)
            silent_s = self._silent_s(run)
        self._context.control.stop("model_timeout")

    def _silent_s(self, run: AgentRun) -> float:
        if self._context.evidence.has_open_calls:
            return 0.0
        return max(0.0, anyio.current_time() - max(run.heard_at, self._retry_at))
