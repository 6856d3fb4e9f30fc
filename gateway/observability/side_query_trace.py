"""Questions to the small model as steps of traces: below the turn that asks, else of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import anyio

from gateway.observability.tracing import INCOMING, Attributes, Span, Tracer
from memory.remote.small_model import AskModel, ModelUnavailable

_NAME = "side_query"
_ASKING: ContextVar[Span | None] = ContextVar("asking", default=None)


def asking() -> Span | None:
    """Return the step that questions stand below here; None: each is a trace of its own."""
    return _ASKING.get()


@contextmanager
def asking_for(above: Span | None) -> Iterator[None]:
    """Record the questions that are asked in the block below a step."""
    token = _ASKING.set(above)
    try:
        yield
    finally:
        _ASKING.reset(token)


class TracedModel:
    """See `AskModel`. Nothing of a question or an answer is in the trace."""

    def __init__(self, ask: AskModel, tracer: Tracer, model: str) -> None:
        self._ask = ask
        self._tracer = tracer
        self._attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "anthropic",
            "gen_ai.request.model": model,
        }

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        """Ask, and end the step however it ends."""
        span, error = self._begin(), "cancelled"
        try:
            answer = await self._ask(system=system, prompt=prompt, timeout_s=timeout_s)
            error = ""
        except ModelUnavailable:
            error = "unavailable"
            raise
        finally:
            span.end(anyio.current_time(), self._attributes, error or None)
        return answer

    def _begin(self) -> Span:
        above, incoming, now_s = asking(), INCOMING.get(), anyio.current_time()
        if above is not None:
            return above.begin(_NAME, now_s, "client")
        return self._tracer.begin(_NAME, now_s, incoming.caller if incoming else {})
