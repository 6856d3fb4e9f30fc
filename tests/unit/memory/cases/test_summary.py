"""What a search shows of a case: bounded, one line each, the whole never."""

from dataclasses import replace
from typing import Any

import pytest

from memory.cases.ranking import RankedCase, summarize
from memory.cases.results import CaseSummary, FeedbackTally
from tests.support.found_cases import ANN, make_case

LONG = "the pool of the database is exhausted and nothing moves "


def summary(**fields: Any) -> CaseSummary:
    case = make_case("1", **{"symptom": "pool exhausted", **fields})
    feedback = FeedbackTally(helpful=3, unhelpful=1, conversations=2)
    found = RankedCase(case=case, score=0.87654321, why="found")
    return summarize(found, feedback=feedback, similar_count=4)


def length(one: CaseSummary) -> int:
    texts = (one.symptom_summary, one.diagnosis_preview, one.root_cause, one.resolution)
    return sum(map(len, texts))


@pytest.mark.parametrize("text", [LONG * 50, "数据库连接池耗尽" * 200])
def test_a_long_case_is_shown_in_some_five_hundred_characters(text: str) -> None:
    one = summary(symptom=text, diagnosis=text, root_cause=text, resolution=text)
    assert 500 <= length(one) <= 550
    for shown in (one.symptom_summary, one.root_cause, one.resolution):
        assert shown.endswith("...")
        assert len(shown) >= 60


def test_each_text_is_one_line() -> None:
    one = summary(symptom="a\nb", diagnosis="# c\r\n\n- d\u2028e", resolution="f\tg")
    assert (one.symptom_summary, one.diagnosis_preview, one.resolution) == (
        "a b",
        "# c - d e",
        "f g",
    )


def test_it_tells_whose_it_is_how_sure_and_how_it_was_judged() -> None:
    scope = replace(ANN, app_code="shop", environment="prod")
    one = summary(scope=scope, confidence=0.9, lifecycle="accepted")
    assert (one.case_id, one.source_conv_id) == ("cas_1", "cnv_1")
    assert (one.app_code, one.environment) == ("shop", "prod")
    assert (one.confidence, one.lifecycle, one.score, one.why) == (0.9, "accepted", 0.8765, "found")
    counted = (one.feedback_h, one.feedback_u, one.feedback_cv_count, one.similar_count)
    assert counted == (3, 1, 2, 4)


def test_the_fingerprint_stands_for_content_and_scope() -> None:
    one = summary()
    assert len(bytes.fromhex(one.fingerprint)) >= 16
    assert summary().fingerprint == one.fingerprint
    assert summary(diagnosis="another").fingerprint != one.fingerprint
    assert summary(scope=replace(ANN, app_code="shop")).fingerprint != one.fingerprint
