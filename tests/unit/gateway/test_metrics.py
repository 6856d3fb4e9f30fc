"""What a scrape shows."""

import re
from typing import get_args

from prometheus_client.parser import text_string_to_metric_families

from gateway.observability.metrics import OTHER, GaugeName, Metrics

PROMISED = {
    "turns_total",
    "tool_calls_total",
    "turn_seconds_count",
    "first_text_seconds_count",
    "model_retries_total",
    "clients_connected_total",
    "sessions_lost_total",
    "clients_killed_total",
    "unsolicited_messages_total",
    "journal_lines_lost_total",
    "recall_degraded_total",
    "http_requests_total",
    *get_args(GaugeName),
}


def samples(metrics: Metrics) -> dict[str, float]:
    """Return the samples by their name and label values."""
    body, content_type = metrics.render()
    assert content_type.startswith("text/plain")
    found = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            found[
                "|".join(
                    [
                        sample.name.removeprefix("candor_"),
                        *(value for _, value in sorted(sample.labels.items())),
                    ]
                )
            ] = sample.value
    return found


def series(metrics: Metrics, name: str) -> int:
    return sum(re.fullmatch(rf"{name}\|.*", sample) is not None for sample in samples(metrics))


def test_every_promised_metric_is_there() -> None:
    metrics = Metrics()
    metrics.count_turn("answered", "end_turn", seconds=1.5, first_text_seconds=0.2)
    metrics.count_turn("empty", "end_turn", seconds=1)
    metrics.count_tool_call("Bash", "ok")
    stale = ("stale_tool_schema", "stale_tool_schema")
    metrics.count_recall(shown=2, held_back=stale, degraded=("vector_timeout", "memu_timeout"))
    metrics.count_recall(shown=1, held_back=(), degraded=("vector_error",))
    metrics.observe_recall("fulltext", 0.03)
    metrics.count_http_request("/chat", "POST", 200)
    metrics.clients_connected_total.labels(origin="warm").inc()
    metrics.journal_lines_lost_total.inc(3)
    found = samples(metrics)
    assert {name.partition("|")[0] for name in found} >= PROMISED
    assert found["turns_total|answered|end_turn"] == 1
    assert found["tool_calls_total|Bash|ok"] == 1
    assert found["http_requests_total|POST|/chat|200"] == 1
    assert found["journal_lines_lost_total"] == 3
    assert found["recall_items_total|shown"] == 3
    assert found["recall_held_back_total|stale_tool_schema"] == 2
    assert (
        found["recall_deadlines_missed_total"],
        found["recall_degraded_total|memu_timeout"],
    ) == (1, 1)
    assert found["recall_seconds_count|fulltext"] == 1
    assert (found["turn_seconds_count"], found["first_text_seconds_count"]) == (2, 1)
    assert found["turn_seconds_sum"] == 2.5


def test_every_name_begins_with_the_gateways() -> None:
    body, _ = Metrics().render()
    names = re.findall(r"^# TYPE (\S+)", body.decode(), re.MULTILINE)
    assert names
    assert all(name.startswith("candor_") for name in names)


def test_two_gateways_in_one_process_count_apart() -> None:
    one, two = Metrics(), Metrics()
    one.model_retries_total.inc()
    assert samples(one)["model_retries_total"] == 1
    assert samples(two)["model_retries_total"] == 0


def test_tools_that_nobody_knows_are_one_series() -> None:
    metrics = Metrics(known_tools={"Read"})
    for n in range(500):
        metrics.count_tool_call(f"made_up_{n}", "denied")
    metrics.count_tool_call("Read", "ok")
    found = samples(metrics)
    assert found[f"tool_calls_total|{OTHER}|denied"] == 500
    assert series(metrics, "tool_calls_total") == 2


def test_no_label_makes_series_without_end() -> None:
    metrics = Metrics()
    for n in range(1000):
        metrics.count_recall(shown=0, held_back=(), degraded=(f"reason_{n}",))
        metrics.count_http_request(f"/route/{n}", f"METHOD{n}", 404)
    assert series(metrics, "recall_degraded_total") == 61
    assert series(metrics, "http_requests_total") == 201
    assert samples(metrics)[f"http_requests_total|{OTHER}|{OTHER}|404"] == 800


def test_a_gauge_is_asked_at_each_scrape() -> None:
    metrics = Metrics()
    values = iter([1, 2])
    assert samples(metrics)["live_clients"] == 0
    metrics.watch("live_clients", lambda: next(values))
    assert [samples(metrics)["live_clients"] for _ in range(2)] == [1, 2]


def test_a_gauge_that_fails_spoils_itself_alone() -> None:
    metrics = Metrics()
    metrics.watch("live_clients", lambda: 1 / 0)
    metrics.watch("warm_clients", lambda: 2)
    found = samples(metrics)
    assert found["live_clients"] != found["live_clients"]
    assert found["warm_clients"] == 2
