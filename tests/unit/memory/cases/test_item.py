"""What a case is as an item."""

from dataclasses import replace

from memory.cases.case import CaseMetadata
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
