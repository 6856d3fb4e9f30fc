"""The whole judgement on pairs of incidents, with the vectors that are always there."""

from collections.abc import Sequence
from typing import Any

import pytest

from memory.cases.case import CaseContent, RelatedCase
from memory.cases.relating import relate
from memory.cases.sameness import is_same
from memory.cases.sections import SectionComparer, SectionSimilarity
from memory.embeddings.hashed import HashedEmbedder
from tests.unit.memory.cases.judged import make_case
from tests.unit.memory.cases.pairs import (
    BESIDE,
    CODES,
    COLUMNS,
    ELSEWHERE,
    IN_TWO_LANGUAGES,
    LOOK_ALIKE,
    NEGATED,
    OPPOSITE,
    REVERSED,
    SAME,
    TOLD_OTHERWISE,
)

ALIKE: dict[str, Any] = {
    "symptom_summary": "Requests to the service time out 服务请求超时",
    "diagnosis": "Looked at the logs and the dashboards of the service. 查看了日志和监控面板。",
    "resolution": "Mended it.",
}


def told(root_cause: str) -> CaseContent:
    return CaseContent(root_cause=root_cause, **ALIKE)


async def judged(
    one: CaseContent, other: CaseContent
) -> tuple[SectionSimilarity, list[RelatedCase]]:
    comparer = SectionComparer(HashedEmbedder())
    case = make_case(content=other)
    (similarity,) = await comparer.compare(one, [case])
    return similarity, relate(one, [case], [similarity])


def both_ways(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [*pairs, *((other, one) for one, other in pairs)]


@pytest.mark.parametrize(("one", "other"), both_ways(SAME))
async def test_one_cause_told_twice_is_the_same_and_merges(one: str, other: str) -> None:
    similarity, related = await judged(told(one), told(other))
    assert [each.relation for each in related] == ["same_root_cause"]
    assert is_same(told(one), told(other), similarity)


@pytest.mark.parametrize(("one", "other"), both_ways((*IN_TWO_LANGUAGES, *TOLD_OTHERWISE)))
async def test_one_cause_told_freely_or_in_two_languages_is_the_same(one: str, other: str) -> None:
    _, related = await judged(told(one), told(other))
    assert [each.relation for each in related] == ["same_root_cause"]


@pytest.mark.parametrize(("one", "other"), both_ways(ELSEWHERE))
async def test_one_cause_at_two_places_is_related_and_does_not_merge(one: str, other: str) -> None:
    similarity, (related,) = await judged(told(one), told(other))
    assert related.relation in {"same_root_cause", "similar_diagnosis"}
    assert not is_same(told(one), told(other), similarity)


@pytest.mark.parametrize(("one", "other"), both_ways(BESIDE))
async def test_causes_that_differ_in_what_stands_beside_never_merge(one: str, other: str) -> None:
    similarity, _ = await judged(told(one), told(other))
    assert not is_same(told(one), told(other), similarity)


@pytest.mark.parametrize(
    ("one", "other"), both_ways((*LOOK_ALIKE, *CODES, *OPPOSITE, *COLUMNS, *REVERSED, *NEGATED))
)
async def test_two_causes_that_look_alike_are_alike_on_the_surface_only_and_never_merge(
    one: str, other: str
) -> None:
    similarity, related = await judged(told(one), told(other))
    assert [each.relation for each in related] in ([], ["surface_similar"])
    assert not is_same(told(one), told(other), similarity)


@pytest.mark.parametrize(("one", "other"), both_ways(LOOK_ALIKE))
async def test_a_cause_that_one_of_two_leaves_open_is_not_taken_for_the_other_ones(
    one: str, other: str
) -> None:
    """The silent one tells its cause among what was found out, in its own words."""
    silent = CaseContent(root_cause="", **(ALIKE | {"resolution": f"Mended it: {other}."}))
    similarity, related = await judged(told(one), silent)
    assert similarity.root_cause is None
    assert [each.relation for each in related] in ([], ["surface_similar"])
    assert not is_same(told(one), silent, similarity)
