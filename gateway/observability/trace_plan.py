"""Whether traces of turns are wanted, and where they go, by OpenTelemetry's own variables.

Off unless the operator names an endpoint. Then, and only then, the SDK is imported.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio

from gateway.observability.tracing import OnLost, OpenTracer, Tracer

_PATH = "/v1/traces"
_PROTOCOL = "http/protobuf"
_QUEUE, _BATCH = "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
_SIZES = {_QUEUE: 2048, _BATCH: 512}
"""With what the SDK takes if nothing is said."""
_ABOVE_ZERO = (*_SIZES, "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT")
_LIMIT = "_LIMIT"
"""How the names of limits end, which may be 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePlan:
    """Where traces go."""

    endpoint: str | None = None
    """None: nowhere."""
    fault: str | None = None
    """Why they go nowhere although an endpoint is named, as a sentence without its address."""

    @property
    def opener(self) -> OpenTracer | None:
        """What opens the tracer, or None."""
        endpoint = self.endpoint
        return None if endpoint is None else lambda on_lost: _open_tracer(endpoint, on_lost)


def plan_traces(environ: Mapping[str, str]) -> TracePlan:
    """Read the variables; one for traces alone goes before the one for all signals."""
    given = {name: value.strip() for name, value in environ.items() if name.startswith("OTEL_")}

    def of(name: str) -> tuple[str, str]:
        special = f"OTEL_EXPORTER_OTLP_TRACES_{name}"
        found = special if given.get(special) else f"OTEL_EXPORTER_OTLP_{name}"
        return found, given.get(found, "")

    variable, address = of("ENDPOINT")
    exporters = given.get("OTEL_TRACES_EXPORTER", "").split(",")
    is_off = given.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if not address or is_off or not {"", "otlp"}.intersection(map(str.strip, exporters)):
        return TracePlan()
    spoken, protocol = of("PROTOCOL")
    if protocol not in {"", _PROTOCOL}:
        wanted = f"set {spoken} to {_PROTOCOL} and {variable} to the collector's port for it"
        return TracePlan(fault=f"Traces are sent by {_PROTOCOL} alone; {wanted}, usually 4318.")
    if not _is_address(address):
        form = "an http or https address without a name and password in it"
        return TracePlan(fault=f"No traces are sent: {variable} must be {form}.")
    wrong = _wrong_number(given)
    if wrong is not None:
        return TracePlan(fault=f"No traces are sent: {wrong}.")
    whole = "TRACES" in variable
    return TracePlan(endpoint=address if whole else address.rstrip("/") + _PATH)


def _wrong_number(given: Mapping[str, str]) -> str | None:
    """Return what is wrong with the numbers, at which the SDK would fail; None if nothing is."""
    sizes = dict(_SIZES)
    for name, text in given.items():
        least = 1 if name in _ABOVE_ZERO else 0
        if not text or (not least and not name.endswith(_LIMIT)):
            continue
        try:
            number = int(text)
        except ValueError:
            number = -1
        if number < least:
            return f"{name} must be a whole number, {least} or more"
        sizes[name] = number
    if sizes[_BATCH] > sizes[_QUEUE]:
        return f"{_BATCH} ({sizes[_BATCH]}) must not be above {_QUEUE} ({sizes[_QUEUE]})"
    return None


def _is_address(text: str) -> bool:
    try:
        split = urlsplit(text)
        return bool(split.scheme in {"http", "https"} and split.hostname and split.port != 0) and (
            "@" not in split.netloc
        )
    except ValueError:
        return False


@asynccontextmanager
async def _open_tracer(endpoint: str, on_lost: OnLost) -> AsyncIterator[Tracer]:
    tracer = await anyio.to_thread.run_sync(_load_blocking, endpoint, on_lost)
    try:
        yield tracer
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(tracer.close_blocking)


def _load_blocking(endpoint: str, on_lost: OnLost) -> Tracer:
    from gateway.observability.otlp import make_tracer_blocking  # noqa: PLC0415  most servers need none

    return make_tracer_blocking(endpoint, on_lost)
