"""The gateway's metrics, on a registry of their own.

Each attribute is named as its metric, without the prefix `candor_`. Where a label could take any
text, a method bounds its values, so that no model and no client can create series without end.
"""

import logging
import tomllib
from collections.abc import Callable, Collection, Sequence
from math import nan
from pathlib import Path
from typing import Final, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

GaugeName = Literal[
    "live_clients",
    "warm_clients",
    "agent_memory_bytes",
    "running_turns",
    "queued_turns",
    "event_backlog",
    "http_buffered_bytes",
]

OTHER = "other"
"""The label for unknown values beyond the first few."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_MAX_VALUES = 60
_MAX_ROUTES = 200
_TURN_BUCKETS_S = (0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
_RECALL_BUCKETS_S = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5)
_FIRST_TEXT_BUCKETS_S = (0.05, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 2.5, 5, 10, 20, 60)

_ABOUT: Final[dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
KNOWN_TOOLS: Final = frozenset(_ABOUT["known_tools"].split())

_log = logging.getLogger(__name__)


class _Bounded:
    """Returns known values and the first few unknown ones as they are, and `other` for the rest."""

    def __init__(self, known: Collection[str] = (), *, most: int = _MAX_VALUES) -> None:
        self._accepted = set(known)
        self._most = len(self._accepted) + most

    def __call__(self, value: str) -> str:
        if value not in self._accepted:
            if len(self._accepted) >= self._most:
                return OTHER
            self._accepted.add(value)
        return value


class Metrics:
    """The metrics of one gateway. For one thread; only `render` may run in another."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._tools = _Bounded(KNOWN_TOOLS, most=0)
        self._routes = _Bounded(most=_MAX_ROUTES)
        self._reasons = _Bounded()
        self._gauges = {name: self._gauge(name) for name in get_args(GaugeName)}
        self.sse_readers = self._gauge("sse_readers")
        counter = self._counter
        self.turns_total = counter("turns", "outcome", "stop_reason")
        self.tool_calls_total = counter("tool_calls", "name", "status")
        self.turn_seconds = self._histogram("turn_seconds", _TURN_BUCKETS_S)
        self.first_text_seconds = self._histogram("first_text_seconds", _FIRST_TEXT_BUCKETS_S)
        self.model_retries_total = counter("model_retries")
        self.recall_degraded_total = counter("recall_degraded", "reason")
        self.recall_deadlines_missed_total = counter("recall_deadlines_missed")
        self.recall_items_total = counter("recall_items", "result")
        self.recall_held_back_total = counter("recall_held_back", "reason")
        self.recall_seconds = self._histogram("recall_seconds", _RECALL_BUCKETS_S, "stage")
        self.turns_not_recorded_total = counter("turns_not_recorded")
        self.episodes_total = counter("episodes", "status")
        self.facts_total = counter("facts", "origin")
        self.learning_total = counter("learning", "result")
        self.claim_checks_total = counter("claim_checks", "result")
        self.call_reviews_total = counter("call_reviews", "result")
        self.deliveries_total = counter("deliveries", "backend", "result")
        self.webhook_deliveries_total = counter("webhook_deliveries", "result")
        self.breaker_changes_total = counter("breaker_changes", "backend", "state")
        self.clients_connected_total = counter("clients_connected", "origin")
        self.sessions_lost_total = counter("sessions_lost")
        self.clients_killed_total = counter("clients_killed")
        self.unsolicited_messages_total = counter("unsolicited_messages")
        self.journal_lines_lost_total = counter("journal_lines_lost")
        self.trace_spans_lost_total = counter("trace_spans_lost")
        self.background_failures_total = counter("background_failures", "loop")
        self.connections_dropped_total = counter("connections_dropped", "reason")
        self.http_requests_total = counter("http_requests", "route", "method", "status")

    @staticmethod
    def counting(counter: Counter) -> Callable[[str], None]:
        """Return what counts under a value of the counter's one label, a word of the program."""
        return lambda value: counter.labels(value).inc()

    def count_turn(
        self,
        outcome: str,
        stop_reason: str,
        *,
        seconds: float,
        first_text_seconds: float | None = None,
    ) -> None:
        """Count a finished turn and observe its times; None: it gave no text."""
        self.turns_total.labels(outcome=outcome, stop_reason=stop_reason).inc()
        self.turn_seconds.observe(seconds)
        if first_text_seconds is not None:
            self.first_text_seconds.observe(first_text_seconds)

    def count_tool_call(self, name: str, status: str) -> None:
        """Count a call; an unknown tool counts as `other`."""
        self.tool_calls_total.labels(name=self._tools(name), status=status).inc()

    def observe_recall(self, stage: str, seconds: float) -> None:
        """Observe the time of one stage of a recall; `stage` is one of the program's own names."""
        self.recall_seconds.labels(stage=stage).observe(seconds)

    def count_recall(
        self, *, shown: int, held_back: Collection[str], degraded: Collection[str]
    ) -> None:
        """Count what a turn was shown, why items were held back, and which parts did not answer."""
        self.recall_items_total.labels(result="shown").inc(shown)
        for reason in held_back:
            self.recall_held_back_total.labels(reason=self._reasons(reason)).inc()
        for reason in degraded:
            self.recall_degraded_total.labels(reason=self._reasons(reason)).inc()
        if any(reason.endswith("_timeout") for reason in degraded):
            self.recall_deadlines_missed_total.inc()

    def count_http_request(self, route: str, method: str, status: int) -> None:
        """Count a response; `route` is the route's template, not the requested path."""
        method = method if method in _METHODS else OTHER
        labels = {"route": self._routes(route), "method": method, "status": str(int(status))}
        self.http_requests_total.labels(**labels).inc()

    def watch(self, name: GaugeName, read: Callable[[], float]) -> None:
        """Read this gauge with `read` at each scrape; `read` must be quick and not block.

        If `read` fails, the value is NaN and the scrape goes on. Unwatched gauges are 0.
        """

        def read_safely() -> float:
            try:
                return float(read())
            except Exception:  # noqa: BLE001  any callback; a scrape must show the others
                _log.exception("gauge_failed", extra={"gauge": name})
                return nan

        self._gauges[name].set_function(read_safely)

    def render(self) -> tuple[bytes, str]:
        """Return the metrics as text for a scrape, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST

    def _gauge(self, name: str) -> Gauge:
        return Gauge(f"candor_{name}", _ABOUT[name], registry=self.registry)

    def _counter(self, name: str, *labels: str) -> Counter:
        return Counter(f"candor_{name}", _ABOUT[name], labels, registry=self.registry)

    def _histogram(self, name: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(
            *(f"candor_{name}", _ABOUT[name], labels), buckets=buckets, registry=self.registry
        )
