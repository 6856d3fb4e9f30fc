"""A collector of traces on loopback, and the tree of the spans that it got."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSpan:
    """A span as a collector has it."""

    trace_id: str
    id: str
    parent_id: str
    name: str
    kind: str
    attributes: Mapping[str, Any]
    is_error: bool
    took_ns: int


@dataclass
class TraceReceiver:
    """What was received so far."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    status: int = 200
    """What it answers with."""

    @property
    def requests(self) -> list[ExportTraceServiceRequest]:
        """The requests, parsed."""
        return [ExportTraceServiceRequest.FromString(body) for body in self.bodies]

    @property
    def resource(self) -> Mapping[str, Any]:
        """What the first request says of the service."""
        return _attributes(self.requests[0].resource_spans[0].resource.attributes)

    @property
    def spans(self) -> list[SeenSpan]:
        """All spans, in the order in which they were sent."""
        return [
            _seen(span)
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


def _seen(span: Span) -> SeenSpan:
    return SeenSpan(
        trace_id=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=span.name,
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        attributes=_attributes(span.attributes),
        is_error=span.status.code == 2,
        took_ns=span.end_time_unix_nano - span.start_time_unix_nano,
    )


def _attributes(pairs: Iterable[KeyValue]) -> Mapping[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    given = getattr(value, kind)
    return [_value(entry) for entry in given.values] if kind == "array_value" else given


@contextmanager
def trace_receiver(port: int = 0) -> Iterator[TraceReceiver]:
    """Receive traces while the block runs."""
    receiver = TraceReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            receiver.headers.append(dict(self.headers.items()))
            receiver.paths.append(self.path)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(receiver.status)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        serving.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            serving.join()
