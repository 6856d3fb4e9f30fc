"""What clients see of a case's reports."""

from dataclasses import replace

from gateway.turns.case_fields import whole_fields
from memory.cases.case import Report
from memory.cases.results import FeedbackTally, WholeCase
from tests.conformance.suites.case_values import AT, case


def test_a_report_tells_its_diagnosis_and_resolution_where_the_case_says_otherwise() -> None:
    known = case(reports=2)
    other = replace(known.content, diagnosis="另一处排查", resolution="restart it, then patch it")
    reports = [
        Report(content=item, conversation_id="cnv_2", at=AT) for item in (known.content, other)
    ]
    whole = WholeCase(
        case=known,
        feedback=FeedbackTally(),
        similar_cases=(),
        history=(),
        history_left_out=3,
        reports=reports,
        markdown="",
    )
    same, differing = whole_fields(whole)["reports"]
    assert {*same} == {"at", "conversation_id", "symptom_summary", "root_cause"}
    assert differing["diagnosis"] == "另一处排查"
    assert differing["resolution"] == "restart it, then patch it"
    assert whole_fields(whole)["history_left_out"] == 3
    _, short = whole_fields(whole, report_chars=10)["reports"]
    assert (short["resolution"], short["diagnosis"]) == ("restart it...", "另一处排查")
    assert {*short} == {*differing}
