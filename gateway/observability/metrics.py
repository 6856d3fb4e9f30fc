"""All metrics of the gateway, on a registry of their own.

Each counter is an attribute named as it is exposed, without the prefix `candor_`. Where a label could
take any text a method counts instead, so that no model and no client can make up series without end.
"""

import logging
from collections.abc import Callable, Collection
from math import nan
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

GaugeName = Literal[
    "live_clients",
    "warm_clients",
    "agent_memory_bytes",
    "running_turns",
    "queued_turns",
    "event_backlog",
    "sse_readers",
    "http_buffered_bytes",
]

OTHER = "other"
"""The label of everything beyond the known and the first few."""
KNOWN_TOOLS: frozenset[str] = frozenset(
    {
        "AskUserQuestion",
        "Bash",
        "BashOutput",
        "Edit",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "KillShell",
        "LS",
        "MultiEdit",
        "NotebookEdit",
        "Read",
        "Skill",
        "Task",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
        "Write",
        *(
            f"mcp__memory_case__memory_case_{does}"
            for does in ("search", "upsert", "feedback", "render")
        ),
    }
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_MAX_VALUES = 60
_MAX_ROUTES = 200
_TURN_BUCKETS_S = (0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_FIRST_TEXT_BUCKETS_S = (0.05, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 2.5, 5, 10, 20, 60)

_GAUGES: Final[dict[GaugeName, str]] = {
    "live_clients": "Agent processes held by conversations.",
    "warm_clients": "Agent processes kept ready for fresh conversations.",
    "agent_memory_bytes": "Memory of all agent processes and their children.",
    "running_turns": "Turns that run now.",
    "queued_turns": "Turns that wait in their conversation's lane.",
    "event_backlog": "Events that wait to be stored.",
    "sse_readers": "Readers of event streams.",
    "http_buffered_bytes": "Bytes that clients were sent and have not taken yet.",
}

log = logging.getLogger(__name__)


class _Bounded:
    """Lets through the known values and the first few unknown ones; the rest become `other`."""

    def __init__(self, known: Collection[str] = (), *, most: int = _MAX_VALUES) -> None:
        self._let_through = set(known)
        self._most = len(self._let_through) + most

    def __call__(self, value: str) -> str:
        if value not in self._let_through:
            if len(self._let_through) >= self._most:
                return OTHER
            self._let_through.add(value)
        return value


class Metrics:
    """The metrics of one gateway. For one thread; only `render` may run in another."""

    def __init__(self, *, known_tools: Collection[str] = KNOWN_TOOLS) -> None:
        self.registry = CollectorRegistry()
        self._tools = _Bounded(known_tools, most=0)
        self._routes = _Bounded(most=_MAX_ROUTES)
        self._reasons = _Bounded()
        self._count_turns()
        self._count_memory()
        self._count_clients()
        self._count_the_rest()
        self._gauges = {
            name: Gauge(f"candor_{name}", about, registry=self.registry)
            for name, about in _GAUGES.items()
        }

    def count_turn(
        self,
        outcome: str,
        stop_reason: str,
        *,
        seconds: float,
        first_text_seconds: float | None = None,
    ) -> None:
        """Count a turn that ended, with its times; None: it gave no text."""
        self.turns_total.labels(outcome=outcome, stop_reason=stop_reason).inc()
        self.turn_seconds.observe(seconds)
        if first_text_seconds is not None:
            self.first_text_seconds.observe(first_text_seconds)

    def count_tool_call(self, name: str, status: str) -> None:
        """Count a call; a tool that is not among the known ones counts as `other`."""
        self.tool_calls_total.labels(name=self._tools(name), status=status).inc()

    def count_recall_degraded(self, reason: str) -> None:
        """Count a recall that did without a part, under the part's reason."""
        self.recall_degraded_total.labels(reason=self._reasons(reason)).inc()

    def count_background_failure(self, loop: str) -> None:
        """Count a background loop that failed and is started again."""
        self.background_failures_total.labels(loop=loop).inc()

    def count_dropped_connection(self, reason: str) -> None:
        """Count a connection that the server ended: one of `DropReason` in `gateway.http.connections`."""
        self.connections_dropped_total.labels(reason=reason).inc()

    def count_http_request(self, route: str, method: str, status: int) -> None:
        """Count an answer; `route` is the route's template, never the path that was asked for."""
        method = method if method in _METHODS else OTHER
        labels = {"route": self._routes(route), "method": method, "status": str(int(status))}
        self.http_requests_total.labels(**labels).inc()

    def watch(self, name: GaugeName, read: Callable[[], float]) -> None:
        """Ask `read` for this gauge at each scrape; it must be quick and not block.

        A `read` that fails makes the value NaN, and the scrape goes on. Unwatched gauges are 0.
        """

        def read_safely() -> float:
            try:
                return float(read())
            except Exception:
                log.exception("gauge_failed", extra={"gauge": name})
                return nan

        self._gauges[name].set_function(read_safely)

    def render(self) -> tuple[bytes, str]:
        """Give the metrics as text for a scrape, and the content type of it."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def _count_turns(self) -> None:
        self.turns_total = self._counter("turns", "Turns that ended.", "outcome", "stop_reason")
        self.tool_calls_total = self._counter("tool_calls", "Calls of tools.", "name", "status")
        self.turn_seconds = self._histogram("turn", "Duration of turns.", _TURN_BUCKETS_S)
        self.first_text_seconds = self._histogram(
            "first_text", "From a message to the first text of its answer.", _FIRST_TEXT_BUCKETS_S
        )
        self.model_retries_total = self._counter(
            "model_retries", "Times that an agent asked a failing model service again."
        )

    def _count_memory(self) -> None:
        self.recall_degraded_total = self._counter(
            "recall_degraded", "Recalls that did without a part.", "reason"
        )
        self.turns_not_recorded_total = self._counter(
            "turns_not_recorded", "Turns that could not be written into memory."
        )
        self.episodes_total = self._counter(
            "episodes", "Episodes that were written, by what became of them.", "status"
        )
        self.deliveries_total = self._counter(
            "deliveries",
            "Deliveries to places of memory, by what came of them.",
            "backend",
            "result",
        )
        self.breaker_changes_total = self._counter(
            "breaker_changes",
            "Places of memory that were shut off, tried or opened.",
            "backend",
            "state",
        )

    def _count_clients(self) -> None:
        self.clients_connected_total = self._counter(
            "clients_connected", "Agent processes that turns got, by where from.", "origin"
        )
        self.sessions_lost_total = self._counter(
            "sessions_lost", "Sessions that could not be resumed."
        )
        self.clients_killed_total = self._counter("clients_killed", "Agent processes killed.")
        self.unsolicited_messages_total = self._counter(
            "unsolicited_messages", "Agent messages that belong to no turn that was asked for."
        )

    def _count_the_rest(self) -> None:
        self.journal_lines_lost_total = self._counter(
            "journal_lines_lost", "Lines that the journal could not keep."
        )
        self.background_failures_total = self._counter(
            "background_failures", "Failures of background loops, each started again.", "loop"
        )
        self.connections_dropped_total = self._counter(
            "connections_dropped", "Connections that the server ended, by why.", "reason"
        )
        self.http_requests_total = self._counter(
            "http_requests", "HTTP requests answered.", "route", "method", "status"
        )

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"candor_{name}", about, labels, registry=self.registry)

    def _histogram(self, name: str, about: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"candor_{name}_seconds", about, buckets=buckets, registry=self.registry)
