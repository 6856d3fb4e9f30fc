"""What a case says after an update, after a like one went into it, and as an item."""

from dataclasses import replace
from typing import Any

from memory.cases.case import CaseContent, CaseMetadata, Report
from memory.cases.content_merge import changed_fields, revised, united
from memory.cases.input import read_case
from memory.cases.item import MAX_TITLE_CHARS, to_item
from tests.conformance.suites.case_values import ANN, AT, case

BEFORE = CaseContent(
    symptom_summary="checkout answers 503",
    diagnosis="the pool is exhausted",
    resolution="raise the pool",
    root_cause="a leak",
    metadata=CaseMetadata(
        failure_layer="db", runtime="jdk17", related_services=("checkout",), tags=("pool", "db")
    ),
)


def test_only_what_says_something_overwrites() -> None:
    sent = read_case(
        {
            "symptom_summary": "  ",
            "diagnosis": "unknown",
            "root_cause": "待补充",
            "resolution": "close what was opened",
            "metadata": {"failure_layer": "unknown", "runtime": "", "region": "eu-1", "tags": []},
        }
    )
    after = revised(BEFORE, sent)

    assert after == replace(
        BEFORE,
        resolution="close what was opened",
        metadata=replace(BEFORE.metadata, region="eu-1"),
    )
    assert changed_fields(BEFORE, after) == ["resolution", "metadata.region"]


def test_metadata_that_is_sent_takes_the_place_of_single_values_and_adds_to_lists() -> None:
    known = {
        "runtime": "jdk21",
        "tags": ["DB", "leak"],
        "related_services": ["orders"],
        "failure_layer": "jvm",
    }
    assert revised(BEFORE, read_case({"metadata": known})).metadata == replace(
        BEFORE.metadata,
        runtime="jdk21",
        failure_layer="jvm",
        tags=("pool", "db", "leak"),
        related_services=("checkout", "orders"),
    )


def test_what_a_like_case_knows_is_added_and_overwrites_nothing() -> None:
    other = CaseMetadata(
        failure_layer="jvm", region="eu-1", related_services=("orders", "Checkout"), tags=("new",)
    )
    assert united(BEFORE.metadata, other) == replace(
        BEFORE.metadata,
        region="eu-1",
        related_services=("checkout", "orders"),
        tags=("pool", "db", "new"),
    )


def test_an_item_tells_symptom_cause_and_resolution_and_is_found_by_the_metadata() -> None:
    known = CaseMetadata(failure_layer="k8s", middleware="redis", related_services=("orders",))
    one = case(
        content=replace(
            case().content,
            symptom_summary="订单服务\n超时 " * 40,
            resolution="- **raise** `pool`\n- restart",
            metadata=known,
        ),
        source_conversation_id="cnv_7",
    )
    item = to_item(one)

    assert item is not None
    assert (item.id, item.kind, item.scope, item.revision) == ("cas_1", "case", ANN, 1)
    assert "\n" not in item.title
    assert len(item.title) == MAX_TITLE_CHARS
    assert item.summary == "Cause: a leak in 1 · Resolution: raise pool restart"
    assert item.tags == ("orders",)
    assert item.source == "case cas_1 of conversation cnv_7"
    assert (item.conversation_id, item.occurred_at) == ("cnv_7", AT)
    for word in ("k8s", "redis", "orders", "订单服务", "a leak in 1", "exhausted", "**raise**"):
        assert word in item.body


def test_what_search_must_not_find_has_no_item() -> None:
    assert to_item(case(lifecycle="rejected")) is None
    assert to_item(case(lifecycle="stale")) is None
    assert to_item(case(confidence=0.49)) is None
    assert to_item(case(confidence=0.5, lifecycle="accepted")) is not None


def report_of(**texts: Any) -> Report:
    return Report(content=replace(case().content, **texts), conversation_id="cnv_2", at=AT)


def body_of(*reports: Report) -> str:
    item = to_item(case(reports=len(reports)), reports)
    assert item is not None
    return item.body


def test_of_reports_only_the_sentences_are_searched_that_say_something_else() -> None:
    diagnosis = case().content.diagnosis
    more = report_of(diagnosis=f"{diagnosis}. The heap was full at 10:42. 慢查询占满连接。")
    again = report_of(diagnosis=f"{diagnosis.upper()}! The heap was full at 11:07.\nSwap, too.")
    body = body_of(more, again, report_of())
    assert body.endswith(
        "## Reported as well\n\nThe heap was full at 10:42. 慢查询占满连接。\n\nSwap, too."
    )
    assert "Reported as well" not in body_of(report_of(root_cause="a leak in 7"))


def test_of_reports_the_newest_few_are_searched_each_with_so_much() -> None:
    told = [report_of(resolution=f"{chr(97 + n) * 40} {'长' * 2_000}{n}") for n in range(7)]
    body = body_of(*told)
    assert "b" * 40 not in body
    assert all(chr(97 + n) * 40 in body for n in range(2, 7))
    added = body[body.index("## Reported as well") :]
    assert max(map(len, added.split("\n\n"))) == 1_000
