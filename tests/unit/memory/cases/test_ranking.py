"""The order of found cases, relevance first and trust within narrow bounds, and what a search shows of each."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.case import Case, Vote
from memory.cases.ranking import MAX_BOOST, RankedCase, rank, summarize, trust, wilson
from memory.cases.results import CaseSummary, FeedbackTally
from memory.cases.votes import tally_for
from memory.items.scope import Scope
from tests.support.found_cases import make_case as found_case
from tests.unit.memory.cases.judged import AT, days_later, make_case, make_vote

ANN = Scope(owner_id="ann")


ALL_OF = {
    1: 0.2065,
    2: 0.3424,
    3: 0.4385,
    5: 0.5655,
    10: 0.7225,
    15: 0.7961,
    20: 0.8389,
    50: 0.9286,
}
SOME_OF = {(0, 0): 0.0, (0, 5): 0.0, (3, 4): 0.3006, (8, 10): 0.4902}


def test_wilsons_lower_bound_has_the_values_it_should() -> None:
    bounds = SOME_OF | {(count, count): bound for count, bound in ALL_OF.items()}
    assert {votes: round(wilson(*votes), 4) for votes in bounds} == bounds


def trusted(case: Case, votes: list[Vote], now: datetime = AT) -> float:
    return trust(case, tally_for(case, votes, ANN), now)


def test_trust_is_the_confidence_until_three_have_voted_and_the_votes_from_ten_on() -> None:
    case = make_case(confidence=0.6)
    votes = [make_vote(f"cnv_{number}", helpful=True) for number in range(10)]
    assert trusted(case, []) == 0.6
    assert trusted(case, votes[:2]) == 0.6
    assert trusted(case, votes[:3]) == pytest.approx(0.3 * wilson(3, 3) + 0.7 * 0.6)
    assert trusted(case, votes) == pytest.approx(wilson(10, 10))


@pytest.mark.parametrize(("lifecycle", "left"), [("draft", 0.7408182), ("accepted", 0.9048374)])
def test_trust_fades_from_the_last_feedback_on_and_slower_where_confirmed(
    lifecycle: Any, left: float
) -> None:
    case = make_case(lifecycle=lifecycle, confidence=1.0)
    assert trusted(case, [], days_later(100)) == pytest.approx(left)
    judged = make_case(lifecycle=lifecycle, confidence=1.0, last_feedback_at=days_later(100))
    assert trusted(judged, [], days_later(200)) == pytest.approx(left)
    assert trusted(judged, [], AT) == 1.0


def order(hits: list[RankedCase], scope: Scope = ANN, **votes: list[Vote]) -> list[str]:
    return [ranked_case.case.case_id for ranked_case in rank(hits, votes, scope, AT)]


def test_an_accepted_case_passes_a_draft_that_was_found_one_place_before_it() -> None:
    draft = RankedCase(case=make_case(case_id="cas_a"), score=1.0)
    confirmed = make_case(case_id="cas_b", lifecycle="accepted")
    assert order([draft, RankedCase(case=confirmed, score=11 / 12)]) == ["cas_b", "cas_a"]
    assert order([draft, RankedCase(case=confirmed, score=0.85)]) == ["cas_a", "cas_b"]


def test_another_environment_stands_a_little_below_and_is_told() -> None:
    scope = Scope(owner_id="ann", app_code="shop", environment="staging")
    there = make_case(case_id="cas_a")
    here = make_case(case_id="cas_b", scope=scope)
    anywhere = make_case(case_id="cas_c", scope=ANN)
    hits = [RankedCase(case=case, score=0.8) for case in (there, here, anywhere)]
    ranked = rank(hits, {}, scope, AT)
    assert [ranked_case.case.case_id for ranked_case in ranked] == ["cas_b", "cas_c", "cas_a"]
    told = ["from another environment: production" in ranked_case.why for ranked_case in ranked]
    assert told == [False, False, True]
    assert order(hits) == ["cas_a", "cas_b", "cas_c"]


def test_why_tells_how_it_was_found_and_what_is_thought_of_it() -> None:
    case = make_case(confidence=0.6)
    votes = [make_vote(f"cnv_{number}", helpful=number > 0) for number in range(3)]
    hit = RankedCase(case=case, score=0.5, why="found by its words")
    (first,) = rank([hit], {}, ANN, AT)
    assert first.why == "found by its words; draft, trust 60%; not judged yet"
    (judged,) = rank([hit], {"cas_1": votes}, ANN, AT)
    assert judged.why == "found by its words; draft, trust 48%; helpful to 2 of 3 anywhere"


@given(
    st.floats(0, 1),
    st.floats(0.5, 1),
    st.sampled_from(["draft", "accepted"]),
    st.lists(st.booleans(), max_size=30),
    st.floats(0, 5000),
    st.sampled_from([None, "staging", "production"]),
)
def test_trust_moves_a_case_by_at_most_a_fifth(
    relevance: float, confidence: float, lifecycle: Any, said: list[bool], days: float, there: Any
) -> None:
    case = make_case(confidence=confidence, lifecycle=lifecycle)
    votes = [make_vote(f"cnv_{number}", helpful=one) for number, one in enumerate(said)]
    scope = Scope(owner_id="ann", environment=there)
    (ranked,) = rank(
        [RankedCase(case=case, score=relevance)], {"cas_1": votes}, scope, days_later(days)
    )
    assert ranked.score == pytest.approx(relevance, rel=MAX_BOOST + 1e-9)


LONG = "the pool of the database is exhausted and nothing moves "


def summary(**fields: Any) -> CaseSummary:
    case = found_case("1", **{"symptom": "pool exhausted", **fields})
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
    shown = (one.symptom_summary, one.diagnosis_preview, one.resolution)
    assert shown == ("a b", "# c - d e", "f g")


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
