"""What a case is as an item, with what its reports add."""

from dataclasses import replace
from typing import Any

from memory.cases.case import CaseMetadata, Report
from memory.cases.item import MAX_TITLE_CHARS, to_item
from tests.conformance.suites.case_values import ANN, AT, case


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
