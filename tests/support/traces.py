"""The spans of traces, kept in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.observability.otlp import OtelTracer
from gateway.observability.tracing import OnLost


class KeptTraces:
    """What a server's traces hold."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()

    @asynccontextmanager
    async def open(self, _on_lost: OnLost) -> AsyncIterator[OtelTracer]:
        """See `OpenTracer`."""
        yield await to_thread.run_sync(OtelTracer, SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> list[ReadableSpan]:
        """All spans that have ended, in that order."""
        return list(self._exporter.get_finished_spans())

    @property
    def roots(self) -> list[ReadableSpan]:
        """The spans of whole turns."""
        return [span for span in self.spans if span.name == "invoke_agent candor"]

    @property
    def tree(self) -> set[tuple[str, str]]:
        """Each span's name after its parent's; the root's is empty."""
        names = {span.context.span_id: span.name for span in self.spans if span.context}
        return {
            (names.get(span.parent.span_id, "elsewhere") if span.parent else "", span.name)
            for span in self.spans
        }

    @property
    def ids(self) -> list[str]:
        """The traces' ids, in the order in which the turns ended."""
        return [f"{root.context.trace_id:032x}" for root in self.roots if root.context]

    def attributes(self, name: str) -> list[dict[str, object]]:
        """Return what each span of a name says."""
        return [dict(span.attributes or {}) for span in self.spans if span.name == name]
