"""Metrics, rate limits, and databases of something else."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.errors import StartError
from gateway.lost_data import DATABASE, refuse_lost_database_blocking
from gateway.observability.metrics import OTHER, GaugeName, Metrics
from gateway.rate_limit import RateLimit
from tests.support.services import settings_below

PROMISED = {
    *("turns_total", "tool_calls_total", "turn_seconds_count", "first_text_seconds_count"),
    *("model_retries_total", "clients_connected_total", "sessions_lost_total"),
    *("clients_killed_total", "http_requests_total", *get_args(GaugeName)),
    *("unsolicited_messages_total", "journal_lines_lost_total", "recall_degraded_total"),
}


def samples(metrics: Metrics) -> dict[str, float]:
    """Return the samples by their name and label values."""
    body, content_type = metrics.render()
    assert content_type.startswith("text/plain")
    return {
        "|".join(
            [sample.name.removeprefix("candor_"), *dict(sorted(sample.labels.items())).values()]
        ): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


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
    assert found["recall_deadlines_missed_total"] == 1
    assert found["recall_degraded_total|memu_timeout"] == 1
    assert found["recall_seconds_count|fulltext"] == 1
    assert (found["turn_seconds_count"], found["first_text_seconds_count"]) == (2, 1)
    assert found["turn_seconds_sum"] == 2.5


def test_every_name_is_the_gateways_and_two_gateways_in_one_process_count_apart() -> None:
    one, two = Metrics(), Metrics()
    names = re.findall(r"^# TYPE (\S+)", one.render()[0].decode(), re.MULTILINE)
    assert names
    assert all(name.startswith("candor_") for name in names)
    one.model_retries_total.inc()
    assert [samples(each)["model_retries_total"] for each in (one, two)] == [1, 0]


def test_no_label_makes_series_without_end() -> None:
    metrics = Metrics()
    for n in range(1000):
        metrics.count_tool_call(f"made_up_{n}", "denied")
        metrics.count_recall(shown=0, held_back=(), degraded=(f"reason_{n}",))
        metrics.count_http_request(f"/route/{n}", f"METHOD{n}", 404)
    metrics.count_tool_call("Read", "ok")
    found = samples(metrics)
    assert found[f"tool_calls_total|{OTHER}|denied"] == 1000
    assert found[f"http_requests_total|{OTHER}|{OTHER}|404"] == 800
    names = ("tool_calls_total", "recall_degraded_total", "http_requests_total")
    assert [series(metrics, name) for name in names] == [2, 61, 201]


def test_a_gauge_is_asked_at_each_scrape_and_spoils_itself_alone_if_it_fails() -> None:
    metrics = Metrics()
    values = iter([1, 2])
    assert samples(metrics)["live_clients"] == 0
    metrics.watch("live_clients", lambda: next(values))
    assert [samples(metrics)["live_clients"] for _ in range(2)] == [1, 2]
    metrics.watch("warm_clients", lambda: 2)
    found = samples(metrics)
    assert found["live_clients"] != found["live_clients"], "it has no more"
    assert found["warm_clients"] == 2


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_allowed_and_then_one_in_a_while_and_in_time_a_burst_again() -> None:
    clock = Clock()
    limit: RateLimit[str] = RateLimit(burst=3, every_s=2, max_keys=9, clock=clock)
    assert [limit.take("a") for _ in range(5)] == [True, True, True, False, False]
    assert limit.wait_s("a") == 2
    clock.now += 2
    assert [limit.take("a") for _ in range(2)] == [True, False]
    clock.now += 60
    assert [limit.take("a") for _ in range(4)] == [True, True, True, False]


def test_keys_do_not_share_and_the_oldest_is_forgotten_first() -> None:
    limit: RateLimit[int] = RateLimit(burst=1, every_s=2, max_keys=10, clock=Clock())
    assert all(limit.take(n) for n in range(20))
    assert [limit.take(n) for n in (19, 10, 0)] == [False, False, True]


def test_a_database_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    settings = settings_below(tmp_path)
    settings.data_dir.mkdir()
    file = settings.data_dir / DATABASE
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE items (id TEXT)")
    before = file.read_bytes()
    with pytest.raises(StartError, match="without conversations"):
        refuse_lost_database_blocking(settings)
    assert file.read_bytes() == before
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("ALTER TABLE items RENAME TO conversations")
    refuse_lost_database_blocking(settings)
