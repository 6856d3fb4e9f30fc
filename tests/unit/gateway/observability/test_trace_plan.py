"""Where traces go, by OpenTelemetry's own variables."""

from collections.abc import Mapping

import pytest

from gateway.observability.trace_plan import plan_traces
from tests.support.program import run_code

ALL = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
HERE = "http://127.0.0.1:4318"
BATCH, QUEUE, DELAY = (
    f"OTEL_BSP_{name}" for name in ("MAX_EXPORT_BATCH_SIZE", "MAX_QUEUE_SIZE", "SCHEDULE_DELAY")
)
LIMIT = "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"


@pytest.mark.parametrize(
    ("environ", "endpoint"),
    [
        ({}, None),
        ({ALL: " "}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SERVICE_NAME": "x"}, None),
        ({ALL: HERE}, f"{HERE}/v1/traces"),
        ({ALL: f"{HERE}/tenant/"}, f"{HERE}/tenant/v1/traces"),
        ({TRACES: f"{HERE}/in"}, f"{HERE}/in"),
        ({ALL: "http://elsewhere", TRACES: f"{HERE}/in", "OTEL_TRACES_EXPORTER": "otlp"}, f"{HERE}/in"),
        ({ALL: HERE, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, f"{HERE}/v1/traces"),
        ({ALL: HERE, "OTEL_SDK_DISABLED": "True"}, None),
        ({ALL: HERE, "OTEL_TRACES_EXPORTER": "none"}, None),
        ({ALL: HERE, "OTEL_TRACES_EXPORTER": "console, otlp"}, f"{HERE}/v1/traces"),
        ({ALL: HERE, DELAY: "10", QUEUE: "9", BATCH: "9", LIMIT: "0"}, f"{HERE}/v1/traces"),
    ],
)  # fmt: skip
def test_traces_go_where_the_standard_variables_say(
    environ: Mapping[str, str], endpoint: str | None
) -> None:
    plan = plan_traces(environ)
    assert (plan.endpoint, plan.fault, plan.opener is None) == (endpoint, None, endpoint is None)


NO_ADDRESS = (
    f"No traces are sent: {TRACES} must be an http or https address "
    "without a name and password in it."
)
NO_HTTP = (
    "Traces are sent by http/protobuf alone; set OTEL_EXPORTER_OTLP_PROTOCOL to "
    f"http/protobuf and {ALL} to the collector's port for it, usually 4318."
)


def no_number(name: str, least: int = 1) -> str:
    return f"No traces are sent: {name} must be a whole number, {least} or more."


@pytest.mark.parametrize(
    ("environ", "fault"),
    [
        ({ALL: HERE, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, NO_HTTP),
        ({TRACES: "localhost:4317"}, NO_ADDRESS),
        ({TRACES: "http://me:secret@host"}, NO_ADDRESS),
        ({TRACES: "http://["}, NO_ADDRESS),
        ({TRACES: "http://a:99999"}, NO_ADDRESS),
        ({ALL: HERE, DELAY: "five"}, no_number(DELAY)),
        ({ALL: HERE, DELAY: "0"}, no_number(DELAY)),
        ({ALL: HERE, BATCH: "1.5"}, no_number(BATCH)),
        ({ALL: HERE, LIMIT: "-1"}, no_number(LIMIT, 0)),
        (
            {ALL: HERE, QUEUE: "100"},
            f"No traces are sent: {BATCH} (512) must not be above {QUEUE} (100).",
        ),
    ],
)
def test_what_cannot_be_used_is_told_without_the_address(
    environ: Mapping[str, str], fault: str
) -> None:
    plan = plan_traces(environ)
    assert (plan.endpoint, plan.fault, plan.opener) == (None, fault, None)


def test_a_server_without_traces_imports_nothing_for_them() -> None:
    """Chroma imports the SDK, when vectors are on; the server itself must not."""
    code = """if True:
        import sys
        import gateway.cli, gateway.serve, gateway.application, gateway.agents
        heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "gateway.observability.otlp")
        print([name for name in sys.modules if name.startswith(heavy)])
    """
    done = run_code(code, {})
    assert (done.stdout, done.stderr) == ("[]\n", "")
