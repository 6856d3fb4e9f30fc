"""When a case is only told again."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.cases.case import CaseContent, CaseMetadata
from memory.cases.sameness import is_same
from memory.cases.sections import SectionComparer, SectionSimilarity
from memory.embeddings.hashed import HashedEmbedder
from tests.unit.memory.cases.judged import make_case, make_content

EQUAL = SectionSimilarity(symptom=1.0, diagnosis=1.0, root_cause=1.0)


async def same(one: CaseContent, other: CaseContent) -> bool:
    comparer = SectionComparer(HashedEmbedder())
    (similarity,) = await comparer.compare(one, [make_case(content=other)])
    mine = is_same(one, other, similarity)
    assert mine == is_same(other, one, similarity)
    return mine


def incident(number: int) -> CaseContent:
    """Tell of an incident as many would: with a number, a host, a moment and a pod of its own."""
    return make_content(
        symptom_summary=f"Pods are evicted from node-{number} since 10:{number:02}",
        diagnosis=f"df on 10.0.0.{number} shows /var/lib/docker at {60 + number} % with container logs"
        f" of checkout-7d9c5b8f{number % 10}-x2x9{number % 10}.",
        root_cause=f"Container logs were not rotated on node-{number}",
    )


async def test_twenty_tellings_with_other_numbers_hosts_and_moments_are_one() -> None:
    first = incident(0)
    assert all([await same(first, incident(number)) for number in range(1, 20)])


@pytest.mark.parametrize(
    "fields",
    [
        {"symptom_summary": "Pods were evicted from the node again"},
        {"diagnosis": "df showed /var/lib/docker filled with container logs."},
        {"root_cause": "The container logs had not been rotated"},
        {"root_cause": "Unrotated container logs"},
        {"resolution": "Restarted the kubelet."},
    ],
)
async def test_the_same_in_slightly_other_words_is_the_same(fields: dict[str, Any]) -> None:
    assert await same(make_content(), make_content(**fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"root_cause": "Container images were not removed"},
        {"root_cause": "Container logs were rotated"},
        {"root_cause": "Container logs of the audit were not rotated"},
        {"root_cause": "The frobnicator did not rotate container logs"},
        {"root_cause": "Something"},
        {"diagnosis": "The certificate of the registry is not trusted."},
        {"symptom_summary": "TLS handshakes fail"},
    ],
)
async def test_another_telling_word_negation_or_finding_is_another_case(
    fields: dict[str, Any],
) -> None:
    assert not await same(make_content(), make_content(**fields))


async def test_a_conflict_of_the_surroundings_keeps_them_apart() -> None:
    here = make_content(metadata=CaseMetadata(failure_layer="os", related_services=("a",)))
    assert await same(here, make_content(metadata=CaseMetadata(failure_layer="os")))
    for there in (
        CaseMetadata(failure_layer="db"),
        CaseMetadata(failure_layer="os", related_services=("b",)),
    ):
        assert not await same(here, make_content(metadata=there))


async def test_without_a_root_cause_everything_told_has_to_be_the_same() -> None:
    silent = make_content(root_cause="")
    assert await same(silent, make_content(root_cause=" ", diagnosis=silent.diagnosis.upper()))
    assert not await same(silent, make_content())
    assert not await same(silent, make_content(root_cause="", resolution="Deleted images."))
    assert not await same(silent, make_content(root_cause="", diagnosis="df is fine."))


async def test_a_root_cause_that_names_no_matter_has_to_be_told_in_the_same_words() -> None:
    odd = make_content(root_cause="The node and its database")
    assert await same(odd, make_content(root_cause="Its database and the node"))
    assert not await same(odd, make_content(root_cause="The client and its database"))


@pytest.mark.parametrize("field", ["symptom", "diagnosis", "root_cause"])
def test_each_section_has_to_be_near(field: str) -> None:
    values: dict[str, Any] = {"symptom": 1.0, "diagnosis": 1.0, "root_cause": 1.0}
    assert is_same(make_content(), make_content(), SectionSimilarity(**values))
    values[field] = 0.59
    assert not is_same(make_content(), make_content(), SectionSimilarity(**values))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The retry was applied", "The retry was not applied"),
        ("The node and its database", "The client and its database"),
        ("A leak in settlement-job", "A leak in audit-writer"),
        ("奇异果里有泄漏", "火龙果里有泄漏"),
    ],
)
def test_vectors_alone_make_no_two_root_causes_one(one: str, other: str) -> None:
    assert not is_same(make_content(root_cause=one), make_content(root_cause=other), EQUAL)


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_root_causes_can_be_judged_in_either_order(one: str, other: str) -> None:
    mine, theirs = make_content(root_cause=one), make_content(root_cause=other)
    assert is_same(mine, theirs, EQUAL) == is_same(theirs, mine, EQUAL)
    assert is_same(mine, mine, EQUAL)
