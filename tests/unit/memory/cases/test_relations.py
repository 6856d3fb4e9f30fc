"""How alike two cases are, and which relation follows."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.case import CaseContent, CaseMetadata, RelatedCase
from memory.cases.relations import FLOOR, classify, relate, weighted
from memory.cases.similarity import (
    MAX_CHARS,
    MAX_COMPARED_CHARS,
    NOT_SIMILAR,
    SectionSimilarity,
    compare_sections,
)
from memory.cases.structure import contradict
from tests.unit.memory.cases.judged import make_case, make_content


def alike(
    symptom: float | None, diagnosis: float | None, root_cause: float | None
) -> SectionSimilarity:
    return SectionSimilarity(symptom=symptom, diagnosis=diagnosis, root_cause=root_cause)


def test_defect_8_a_missing_section_takes_no_weight_with_it() -> None:
    assert weighted(alike(0.9, 0.9, None)) == pytest.approx(0.9)
    assert weighted(alike(1.0, 1.0, None)) == pytest.approx(1.0)
    assert weighted(alike(None, 0.8, None)) == pytest.approx(0.8)
    assert weighted(alike(0.8, 0.8, None)) == weighted(alike(0.8, 0.8, 0.8))
    assert weighted(alike(None, None, None)) == 0.0


@pytest.mark.parametrize(
    ("similarity", "relation"),
    [
        (alike(0.5, 0.6, 0.8), "same_root_cause"),
        (alike(None, 0.6, 0.8), "same_root_cause"),
        (alike(0.9, 0.7, 0.79), "similar_diagnosis"),
        (alike(0.9, 0.7, 0.6), "similar_diagnosis"),
        (alike(0.9, 0.69, 0.79), "surface_similar"),
        (alike(0.9, 0.9, 0.2), "similar_diagnosis"),
        (alike(0.9, 0.7, None), "similar_diagnosis"),
        (alike(0.9, 0.69, None), "surface_similar"),
    ],
)
def test_the_class_follows_the_root_cause_and_then_the_diagnosis(
    similarity: SectionSimilarity, relation: str
) -> None:
    judged = classify(similarity, struct_match=True)
    assert judged == (relation, weighted(similarity))
    blocked = classify(similarity, struct_match=False)
    assert blocked == ("surface_similar", weighted(similarity))


def test_what_scores_below_the_floor_is_no_relation() -> None:
    assert classify(alike(1.0, 0.5, 0.6), struct_match=True) is None
    assert classify(alike(1.0, 0.52, 0.6), struct_match=True) is not None
    assert classify(alike(0.0, 0.0, 1.0), struct_match=True) is None


part = st.none() | st.floats(0, 1)
similarities = st.builds(alike, part, part, part)


@given(similarities)
def test_a_score_is_bounded_and_a_conflict_never_more_than_surface(
    similarity: SectionSimilarity,
) -> None:
    assert 0 <= weighted(similarity) <= 1
    judged, blocked = (
        classify(similarity, struct_match=True),
        classify(similarity, struct_match=False),
    )
    assert (judged is None) == (blocked is None) == (weighted(similarity) < FLOOR)
    assert blocked is None or blocked[0] == "surface_similar"


def scored(value: float, root_cause: float | None = None) -> SectionSimilarity:
    return SectionSimilarity(
        symptom=value, diagnosis=value, root_cause=value if root_cause is None else root_cause
    )


def test_same_causes_come_first_then_the_higher_scores_then_the_lesser_ids() -> None:
    cases = [make_case(case_id=f"cas_{name}") for name in "adcbe"]
    values = [alike(1.0, 0.69, 0.7), *map(scored, (0.82, 0.9, 0.82, 0.75))]
    assert relate(make_content(), list(zip(cases, values, strict=True))) == [
        RelatedCase(case_id="cas_c", relation="same_root_cause", score=0.9),
        RelatedCase(case_id="cas_b", relation="same_root_cause", score=0.82),
        RelatedCase(case_id="cas_d", relation="same_root_cause", score=0.82),
        RelatedCase(case_id="cas_e", relation="similar_diagnosis", score=0.75),
        RelatedCase(case_id="cas_a", relation="surface_similar", score=0.725),
    ]


def test_at_most_five_are_kept_and_the_best_of_them() -> None:
    cases = [make_case(case_id=f"cas_{number:02}") for number in range(20)]
    values = [scored(0.8 + number / 100) for number in range(20)]
    related = relate(make_content(), list(zip(cases, values, strict=True)))
    assert [relation.case_id for relation in related] == [f"cas_{n}" for n in range(19, 14, -1)]


def test_what_surrounds_both_is_laid_side_by_side() -> None:
    mine = make_content(metadata=CaseMetadata(failure_layer="db"))
    other = make_case(content=make_content(metadata=CaseMetadata(failure_layer="network")))
    (related,) = relate(mine, [(other, scored(1.0))])
    assert related == RelatedCase(
        case_id="cas_1", relation="surface_similar", score=1.0, struct_match=False
    )
    assert relate(mine, [(make_case(), scored(0.5))]) == relate(mine, []) == []


COMPARED = """
runtime = Java 17 | openjdk-11 ¦ JVM | java ¦ python3.11 | CPython 3.12 ¦ Node.js v18 | nodejs
    ¦ Kubernetes 1.29 | k8s ¦ go1.21 | Golang ¦ java 17 on Kubernetes | k8s ¦ Java | java
runtime ! java | python ¦ go | node ¦ rust | zig
related_services = order-svc | order_service ¦ Orders | orders ¦ 支付 | 支付 ¦ service | Service
related_services ! order-svc | payment-svc ¦ service | api
"""
"""What both say: `=` it matches, versions and spellings aside; `!` it conflicts."""


def test_other_layers_runtimes_and_services_contradict_and_other_spellings_do_not() -> None:
    one = CaseMetadata(failure_layer="db", runtime="java", related_services=("orders", "stock"))
    assert contradict(one, CaseMetadata(failure_layer="jvm", runtime="java"))
    assert not contradict(one, CaseMetadata(failure_layer="db", related_services=("stock",)))
    misses = []
    for line in COMPARED.strip().replace("\n   ", "").splitlines():
        name, sign, pairs = line.split(" ", 2)
        for pair in pairs.split(" ¦ "):
            said: list[Any] = [text if name == "runtime" else (text,) for text in pair.split(" | ")]
            here, there = [CaseMetadata(**{name: text}) for text in said]
            if contradict(here, there) is not (sign == "!"):
                misses.append(pair)
    assert misses == []


def test_what_one_does_not_say_contradicts_nothing() -> None:
    full = CaseMetadata(failure_layer="db", runtime="java", related_services=("orders",))
    for layer in (None, "unknown"):
        assert not contradict(full, CaseMetadata(failure_layer=layer))
    assert not contradict(CaseMetadata(runtime=" ", related_services=("", "-")), full)


IDENTICAL = SectionSimilarity(symptom=1.0, diagnosis=1.0, root_cause=1.0)
LONGEST = {"symptom_summary": 1_000, "diagnosis": 20_000, "root_cause": 4_000, "resolution": 10_000}
AT_ONCE = MAX_COMPARED_CHARS // (1_000 + 2 * MAX_CHARS)
"""As many cases of the longest allowed length are compared with one."""


def longest(mark: str = "") -> CaseContent:
    text = "the pool leaks, 连接池未释放; error code 7. "
    return make_content(
        **{name: (mark + text * (size // len(text) + 1))[:size] for name, size in LONGEST.items()}
    )


def similarity(one: CaseContent, other: CaseContent) -> SectionSimilarity:
    (found,) = compare_sections(one, [make_case(content=other)])
    return found


def test_each_section_is_compared_with_its_own_kind() -> None:
    assert similarity(make_content(), make_content()) == IDENTICAL
    mine = make_content(symptom_summary="disk full", diagnosis="heap leak", root_cause="race")
    other = make_content(symptom_summary="disk full", diagnosis="cert expired", root_cause="race")
    found = similarity(mine, other)
    assert (found.symptom, found.root_cause) == (1.0, 1.0)
    assert found.diagnosis is not None
    assert found.diagnosis < 0.4


@pytest.mark.parametrize("empty", ["", "  \n"])
def test_a_section_that_either_lacks_has_no_similarity(empty: str) -> None:
    found = similarity(make_content(), make_content(root_cause=empty))
    assert found.root_cause is None
    assert similarity(make_content(root_cause=empty), make_content()) == found


def test_others_are_answered_in_their_order_and_both_ways_the_same() -> None:
    texts = ["Container logs filled the disk", "The certificate expired", "磁盘写满"]
    contents = [make_content(root_cause=text, diagnosis=text) for text in texts]
    found = compare_sections(contents[0], [make_case(content=other) for other in contents])
    assert found == [similarity(contents[0], other) for other in contents]
    assert found == [similarity(other, contents[0]) for other in contents]
    assert compare_sections(contents[0], []) == []


def test_of_very_long_cases_the_first_are_compared_however_many_there_are() -> None:
    for count in (AT_ONCE, 20, 50):
        cases = [
            make_case(content=longest(f"{mark * 3} ")) for mark in string.ascii_letters[:count]
        ]
        found = compare_sections(longest(), cases)
        assert found[AT_ONCE:] == [NOT_SIMILAR] * (count - AT_ONCE)
        assert NOT_SIMILAR not in found[:AT_ONCE]
    behind = [*[make_case(content=longest())] * (AT_ONCE + 3), make_case()]
    found = compare_sections(make_content(), behind)
    assert found[-1] == IDENTICAL, "a short case is compared behind long ones too"
