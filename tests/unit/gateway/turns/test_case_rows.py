"""The rows of a search for cases as an agent gets them: bounded, whatever the cases hold."""

import json
from datetime import UTC, datetime

from gateway.turns.case_fields import MAX_ROW_CHARS, short_search_fields
from memory.cases.case import CaseContent
from memory.cases.ranking import RankedCase, summarize
from memory.cases.results import FeedbackTally, SearchAnswer
from memory.scope import Scope
from tests.support.found_cases import make_case

AT = datetime(2026, 11, 20, tzinfo=UTC)


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
    bare = summarize(
        RankedCase(case=make_case("1"), score=0.5, why=""),
        feedback=FeedbackTally(),
        similar_count=0,
    )
    (shown,) = short_search_fields(SearchAnswer(cases=[bare]))["cases"]
    assert not {"app_code", "feedback_h", "fingerprint", "similar_count", "why"} & set(shown)
