"""How alike two cases are, section by section."""

from collections.abc import Sequence
from typing import Any

import pytest

from memory.cases.case import CaseContent, CaseMetadata
from memory.cases.sections import SectionComparer, SectionSimilarity
from memory.embeddings.hashed import HashedEmbedder
from tests.unit.memory.cases.judged import make_case, make_content


async def similarity(one: CaseContent, other: CaseContent) -> SectionSimilarity:
    (found,) = await SectionComparer(HashedEmbedder()).compare(one, [make_case(content=other)])
    return found


async def test_a_case_is_wholly_like_itself() -> None:
    content = make_content()
    whole = SectionSimilarity(symptom=1.0, diagnosis=1.0, root_cause=1.0)
    assert await similarity(content, make_content()) == whole
    assert content == make_content()


async def test_each_section_is_compared_with_its_own_kind() -> None:
    mine = make_content(symptom_summary="disk full", diagnosis="heap leak", root_cause="race")
    other = make_content(symptom_summary="disk full", diagnosis="cert expired", root_cause="race")
    found = await similarity(mine, other)
    assert (found.symptom, found.root_cause) == (1.0, 1.0)
    assert found.diagnosis is not None
    assert found.diagnosis < 0.4


@pytest.mark.parametrize("empty", ["", "  \n"])
async def test_a_section_that_either_lacks_has_no_similarity(empty: str) -> None:
    found = await similarity(make_content(), make_content(root_cause=empty))
    assert found.root_cause is None
    assert await similarity(make_content(root_cause=empty), make_content()) == found


async def test_others_are_answered_in_their_order_and_both_ways_alike() -> None:
    texts = ["Container logs filled the disk", "The certificate expired", "磁盘写满"]
    contents = [make_content(root_cause=text, diagnosis=text) for text in texts]
    comparer = SectionComparer(HashedEmbedder())
    found = await comparer.compare(contents[0], [make_case(content=one) for one in contents])
    assert found == [await similarity(contents[0], one) for one in contents]
    assert found == [await similarity(one, contents[0]) for one in contents]
    assert await comparer.compare(contents[0], []) == []


async def test_root_causes_that_contradict_are_not_alike_however_near_their_vectors() -> None:
    one = make_content(
        root_cause="A connection leak in the export job exhausted the pool of orders"
    )
    other = make_content(root_cause="A slow query in the export job exhausted the pool of orders")
    found = await similarity(one, other)
    assert found.root_cause is not None
    assert found.root_cause < 0.4


async def test_the_name_of_a_service_is_no_agreement_on_a_root_cause() -> None:
    metadata = CaseMetadata(related_services=("payment-inventory",), application_name="Payment")
    causes = ("The humming of payment and inventory", "Payment and inventory")
    for known, may_be_one in ((CaseMetadata(), True), (metadata, False)):
        one, other = (make_content(root_cause=cause, metadata=known) for cause in causes)
        found = await similarity(one, other)
        assert found.root_cause is not None
        assert (found.root_cause >= 0.6) is may_be_one


async def test_which_way_it_stands_to_something_is_nothing_for_a_model_of_words() -> None:
    there = make_content(diagnosis="df shows what exists: a disk full of container logs")
    found = await similarity(
        make_content(diagnosis="df shows a disk full of container logs"), there
    )
    assert found.diagnosis == 1.0


def silent(**fields: Any) -> CaseContent:
    return make_content(root_cause="", **fields)


async def test_an_unknown_root_cause_is_not_held_against_what_was_found_and_done_alike() -> None:
    assert (await similarity(silent(), silent())).diagnosis == 1.0
    told = silent(resolution="Container logs were not rotated. Configured rotation.")
    assert (await similarity(make_content(), told)).diagnosis == 1.0


async def test_an_unknown_root_cause_is_not_taken_for_one_that_nobody_told_of() -> None:
    for other in (
        silent(resolution="Deleted old images."),
        make_content(root_cause="The certificate expired"),
        make_content(
            root_cause="The certificate expired", resolution="It had expired: certificate"
        ),
        silent(resolution="Renewed the certificate."),
    ):
        found = await similarity(silent(), other)
        assert found.diagnosis is not None
        assert found.diagnosis < 0.7


async def test_diagnoses_that_contradict_do_not_speak_for_an_unknown_root_cause() -> None:
    here = silent(diagnosis="df shows the disk of the node full of container logs in /var/lib")
    there = silent(diagnosis="df shows the disk of the node full of unused images in /var/lib")
    found = await similarity(here, there)
    assert found.diagnosis is not None
    assert found.diagnosis < 0.7


class Counting:
    """Counts what it is asked, and knows one meaning only."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def model_id(self) -> str:
        return "meaning-1"

    @property
    def dimension(self) -> int:
        return 2

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [[1.0, 0.0] for _ in texts]


async def test_a_section_is_embedded_once_however_often_it_is_compared() -> None:
    model = Counting()
    comparer = SectionComparer(model)
    mine, others = make_content(), [make_case(content=make_content(diagnosis="Looked again"))] * 3
    for _ in range(3):
        await comparer.compare(mine, others)
    assert len(model.asked) == len({*model.asked})


async def test_one_word_in_common_of_two_or_three_is_no_sure_agreement() -> None:
    """A model that takes all for one is not believed on that alone."""
    mine = make_content(root_cause="pulling the image")
    other = make_content(root_cause="an image of another architecture")
    (found,) = await SectionComparer(Counting()).compare(mine, [make_case(content=other)])
    assert found.root_cause == 0.79


async def test_root_causes_of_which_one_says_far_more_are_not_taken_for_one() -> None:
    one = make_content(root_cause="A leak")
    more = "A leak in the heap of the session cache by the audit export to the backup queue"
    found = await similarity(one, make_content(root_cause=more))
    assert found.root_cause is not None
    assert 0.4 <= found.root_cause < 0.6


async def test_no_more_sections_are_kept_than_fit() -> None:
    model = Counting()
    comparer = SectionComparer(model, kept=4)
    for text in ("a", "b", "a"):
        content = make_content(symptom_summary=f"one {text}", diagnosis=f"two {text}")
        await comparer.compare(content, [make_case()])
    assert len(model.asked) > len({*model.asked})


async def test_a_model_that_knows_meaning_reads_the_text_as_it_is_and_says_maybe_alone() -> None:
    """Without any word in common it may say that two root causes are one, but not for sure."""
    model = Counting()
    mine = make_content(root_cause="The 3 widgets hummed")
    other = make_content(root_cause="Something whirred")
    (found,) = await SectionComparer(model).compare(mine, [make_case(content=other)])
    assert "The 3 widgets hummed" in model.asked
    assert found.root_cause == 0.79
