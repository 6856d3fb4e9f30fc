"""Traces by OpenTelemetry's SDK, sent by OTLP over HTTP.

The SDK's thread sends them in batches; what waits is bounded, and dropped beyond that. The SDK and
its exporter read their other standard variables themselves: headers, certificates, compression,
timeouts, sampling, attributes of the resource. No global tracer is set: libraries that would write
into it (MCP's, Chroma's) record what is said.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import anyio
import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gateway.observability.tracing import Attributes, Kind, OnLost
from gateway.version import VERSION

_NAME: Final = "candor"
_CLOSE_S: Final = 2.0
"""How long closing may take, whatever the endpoint does; what waits longer is lost."""
_KINDS: Final[Mapping[Kind, SpanKind]] = {
    "internal": SpanKind.INTERNAL,
    "client": SpanKind.CLIENT,
}
_CALLER: Final = TraceContextTextMapPropagator()


class OtelTracer:
    """See `Tracer`."""

    def __init__(
        self, processor: SpanProcessor, stop_sending: Callable[[], None] = lambda: None
    ) -> None:
        """Take what gets the spans, and what ends its attempts to send them. Blocking."""
        self._processor = processor
        self._stop_sending = stop_sending
        provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        provider.add_span_processor(processor)
        self._tracer = provider.get_tracer(_NAME, VERSION)

    def begin(self, name: str, began_s: float, caller: Mapping[str, str]) -> "OtelSpan":
        epoch_ns = time.time_ns() - _nanoseconds(anyio.current_time())
        parent = _CALLER.extract(caller, Context())
        span = self._tracer.start_span(name, parent, start_time=epoch_ns + _nanoseconds(began_s))
        return OtelSpan(self._tracer, span, epoch_ns)

    def close_blocking(self) -> None:
        closing = threading.Thread(target=self._processor.shutdown, daemon=True)
        closing.start()
        closing.join(_CLOSE_S)
        self._stop_sending()  # or the SDK would try again for half a minute


class OtelSpan:
    """See `Span`."""

    def __init__(self, tracer: Tracer, span: Span, epoch_ns: int) -> None:
        self._tracer = tracer
        self._span = span
        self._epoch_ns = epoch_ns
        """When the loop's clock was 0."""

    @property
    def trace_id(self) -> str:
        return f"{self._span.get_span_context().trace_id:032x}"

    def begin(self, name: str, began_s: float, kind: Kind = "internal") -> "OtelSpan":
        span = self._tracer.start_span(
            name,
            set_span_in_context(self._span, Context()),
            kind=_KINDS[kind],
            start_time=self._epoch_ns + _nanoseconds(began_s),
        )
        return OtelSpan(self._tracer, span, self._epoch_ns)

    def end(self, ended_s: float, attributes: Attributes, error: str | None = None) -> None:
        self._span.set_attributes(attributes)
        if error is not None:
            self._span.set_attribute("error.type", error)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end(self._epoch_ns + _nanoseconds(ended_s))


class _CountingExporter(SpanExporter):
    """Counts the spans that could not be sent."""

    def __init__(self, exporter: SpanExporter, on_lost: OnLost) -> None:
        self._exporter = exporter
        self._on_lost = on_lost
        self._is_shut = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self._on_lost(len(spans))
        return result

    def shutdown(self) -> None:
        """Send nothing any more; idempotent, which the SDK's exporter reports as a mistake."""
        if not self._is_shut:
            self._is_shut = True
            self._exporter.shutdown()


class _HeadsAlone(requests.Session):
    """Reads the head of each answer alone, since a body may have no end; follows no redirection.

    A redirection is told as a failure; the SDK would take it for success.
    """

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        head = requests.Response()
        with super().send(request, **{**options, "stream": True, "allow_redirects": False}) as told:
            head.status_code, head.reason, head.url = told.status_code, told.reason, told.url
            head.headers = told.headers
        if HTTPStatus.MULTIPLE_CHOICES <= head.status_code < HTTPStatus.BAD_REQUEST:
            head.status_code = HTTPStatus.MISDIRECTED_REQUEST
        return head


def make_tracer_blocking(endpoint: str, on_lost: OnLost) -> OtelTracer:
    """Return a tracer whose spans go to an endpoint."""
    logging.getLogger("opentelemetry.util.re").setLevel(logging.ERROR)  # it shows whole headers
    sender = OTLPSpanExporter(endpoint=endpoint, session=_HeadsAlone())
    exporter = _CountingExporter(sender, on_lost)
    return OtelTracer(BatchSpanProcessor(exporter), exporter.shutdown)


def _resource() -> Resource:
    """Return what the environment says of this service, with its name if that is not said."""
    given = Resource.create({SERVICE_VERSION: VERSION})
    if str(given.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return given.merge(Resource({SERVICE_NAME: _NAME}))
    return given


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
