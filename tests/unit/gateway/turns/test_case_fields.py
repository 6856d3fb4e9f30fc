"""What clients see of a case's reports, and the rows an agent gets: bounded, whatever cases hold."""

import json
from dataclasses import replace

from gateway.turns.case_fields import MAX_ROW_CHARS, short_search_fields, whole_fields
from memory.cases.case import CaseContent, Report
from memory.cases.ranking import RankedCase, summarize
from memory.cases.results import FeedbackTally, SearchAnswer, WholeCase
from memory.scope import Scope
from tests.conformance.suites.case_values import AT, case
from tests.support.found_cases import make_case


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


def test_a_row_stays_within_its_bound_and_leaves_out_what_is_empty() -> None:
    for text in ("the pool is exhausted " * 900, "数据库连接池耗尽" * 900, '"' * 900):
        scope = Scope(owner_id="ann", app_code="a" * 200, environment="e" * 200)
        content = CaseContent(
            symptom_summary=text, diagnosis=text, resolution=text, root_cause=text
        )
        case = make_case("1" * 26, scope=scope, content=content)
        ranked = RankedCase(case=case, score=0.87654321, why="found by its words; " * 50)
        feedback = FeedbackTally(helpful=1000, unhelpful=1000, conversations=1000)
        row = summarize(ranked, feedback=feedback, similar_count=50)
        (shown,) = short_search_fields(SearchAnswer(cases=[row]))["cases"]
        assert len(json.dumps(shown, ensure_ascii=False)) <= MAX_ROW_CHARS
        assert {"case_id", "symptom_summary", "diagnosis_preview", "lifecycle", "why"} <= set(shown)
    ranked = RankedCase(case=make_case("1"), score=0.5, why="")
    bare = summarize(ranked, feedback=FeedbackTally(), similar_count=0)
    (shown,) = short_search_fields(SearchAnswer(cases=[bare]))["cases"]
    assert not {"app_code", "feedback_h", "fingerprint", "similar_count", "why"} & set(shown)
