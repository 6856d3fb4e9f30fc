"""The first few of an answer tell of different causes."""

from hypothesis import given
from hypothesis import strategies as st

from memory.cases.ranking import RankedCase, varied
from tests.unit.memory.cases.judged import make_case, make_content

POOL = "The connection pool of checkout is too small for the traffic."
DNS = "CoreDNS throttles the resolver after a restart."
INDEX_ZH = "订单表缺少 user_id 索引，全表扫描。"


def ranked(*given_: tuple[str, float]) -> list[RankedCase]:
    return [
        RankedCase(
            case=make_case(case_id=f"cas_{number}", content=make_content(root_cause=cause)),
            score=score,
            why=f"place {number}",
        )
        for number, (cause, score) in enumerate(given_)
    ]


def ids(found: list[RankedCase]) -> list[str]:
    return [hit.case.case_id for hit in found]


def test_another_cause_passes_the_second_telling_of_the_first() -> None:
    found = varied(ranked((POOL, 1.0), (POOL, 0.95), (POOL, 0.9), (DNS, 0.6), (INDEX_ZH, 0.5)), 3)
    assert ids(found) == ["cas_0", "cas_3", "cas_4"]
    assert [hit.score for hit in found] == [1.0, 0.6, 0.5]


def test_a_cause_that_is_told_again_says_so_and_scores_less() -> None:
    found = varied(ranked((INDEX_ZH, 1.0), (INDEX_ZH, 0.9)), 5)
    assert ids(found) == ["cas_0", "cas_1"]
    assert found[0].why == "place 0"
    assert found[1].score == 0.45
    assert found[1].why.endswith("its cause is told above")


def test_cases_without_a_root_cause_are_like_none() -> None:
    given_ = ranked(("", 1.0), ("", 0.9), (POOL, 0.8))
    assert varied(given_, 3) == given_


@given(st.lists(st.sampled_from([POOL, DNS, INDEX_ZH, ""]), max_size=12), st.integers(1, 12))
def test_the_best_stays_the_best_and_scores_only_fall(causes: list[str], count: int) -> None:
    given_ = ranked(*((cause, 1 - place / 20) for place, cause in enumerate(causes)))
    found = varied(given_, count)
    assert ids(found[:1]) == ids(given_[:1])
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)
    assert len(set(ids(found))) == len(found) == min(count, len(causes))
