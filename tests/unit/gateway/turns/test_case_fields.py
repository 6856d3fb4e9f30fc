"""The rows of found cases that an agent gets: bounded, whatever cases hold."""

import json

from gateway.turns.case_fields import MAX_ROW_CHARS, short_search_fields
from memory.cases.case import CaseContent
from memory.cases.ranking import RankedCase, summarize
from memory.cases.results import FeedbackTally, SearchAnswer
from memory.items.scope import Scope
from tests.support.found_cases import make_case


def test_five_rows_take_about_2_500_characters_and_show_their_counts() -> None:
    for text in ("the pool is exhausted " * 900, "数据库连接池耗尽" * 900, '"' * 900):
        scope = Scope(owner_id="ann", app_code="a" * 200, environment="e" * 200)
        content = CaseContent(
            symptom_summary=text, diagnosis=text, resolution=text, root_cause=text
        )
        case = make_case("1" * 26, scope=scope, content=content)
        ranked = RankedCase(case=case, score=0.87654321, why="found by its words; " * 50)
        feedback = FeedbackTally(helpful=1000, unhelpful=1000, conversations=1000)
        row = summarize(ranked, feedback=feedback, similar_count=50)
        rows = short_search_fields(SearchAnswer(cases=[row] * 5))["cases"]
        assert max(len(json.dumps(shown, ensure_ascii=False)) for shown in rows) <= MAX_ROW_CHARS
        assert len(json.dumps(rows, ensure_ascii=False)) < 2_650
        assert {"case_id", "symptom_summary", "diagnosis_preview", "lifecycle"} <= set(rows[0])
        counts = ("feedback_h", "feedback_u", "feedback_cv_count", "similar_count")
        assert [rows[0][name] for name in counts] == [1000, 1000, 1000, 50]


def test_a_row_shows_its_counts_when_they_are_zero_and_leaves_out_what_is_empty() -> None:
    ranked = RankedCase(case=make_case("1"), score=0.5, why="by its words")
    bare = summarize(ranked, feedback=FeedbackTally(), similar_count=0)
    (shown,) = short_search_fields(SearchAnswer(cases=[bare]))["cases"]
    assert (shown["feedback_cv_count"], shown["similar_count"]) == (0, 0)
    assert not {"app_code", "root_cause", "fingerprint", "score", "why"} & set(shown)
