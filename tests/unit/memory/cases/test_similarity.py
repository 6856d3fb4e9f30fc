"""How similar two cases are, section by section, and how much of long ones is compared."""

import string
from collections.abc import Sequence
from typing import Any

import pytest

from memory.cases.case import CaseContent
from memory.cases.similarity import (
    MAX_CHARS,
    MAX_COMPARED_CHARS,
    NOT_SIMILAR,
    SectionComparer,
    SectionSimilarity,
)
from memory.embeddings.hashed import HashedEmbedder
from tests.unit.memory.cases.judged import make_case, make_content

IDENTICAL = SectionSimilarity(symptom=1.0, diagnosis=1.0, root_cause=1.0)
LONGEST = {"symptom_summary": 1_000, "diagnosis": 20_000, "root_cause": 4_000, "resolution": 10_000}
AT_ONCE = MAX_COMPARED_CHARS // (1_000 + 2 * MAX_CHARS)
"""As many cases of the longest allowed length are compared with one."""


def longest(mark: str = "") -> CaseContent:
    text = "the pool leaks, 连接池未释放; error code 7. "
    return make_content(
        **{name: (mark + text * (size // len(text) + 1))[:size] for name, size in LONGEST.items()}
    )


class Counting:
    """An embedder that counts what it is asked, and takes all texts for the same."""

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
        return [[0.8, 0.6] for _ in texts]


async def similarity(one: CaseContent, other: CaseContent, **fields: Any) -> SectionSimilarity:
    comparer = SectionComparer(fields.get("embedder", HashedEmbedder()))
    (found,) = await comparer.compare(one, [make_case(content=other)])
    return found


async def test_each_section_is_compared_with_its_own_kind() -> None:
    assert await similarity(make_content(), make_content()) == IDENTICAL
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


async def test_others_are_answered_in_their_order_and_both_ways_the_same() -> None:
    texts = ["Container logs filled the disk", "The certificate expired", "磁盘写满"]
    contents = [make_content(root_cause=text, diagnosis=text) for text in texts]
    comparer = SectionComparer(HashedEmbedder())
    found = await comparer.compare(contents[0], [make_case(content=other) for other in contents])
    assert found == [await similarity(contents[0], other) for other in contents]
    assert found == [await similarity(other, contents[0]) for other in contents]
    assert await comparer.compare(contents[0], []) == []


@pytest.mark.parametrize(
    ("mine", "theirs", "is_capped"),
    [
        ("exit code 137 of the worker", "exit code 139 of the worker", True),
        ("工作进程退出码 137", "工作进程退出码 139", True),
        ("blocked by ORA-00060 in the ledger", "blocked by ORA-01555 in the ledger", True),
        ("the import took 300 ms at 10:42", "the import took 5 s at 11:07", False),
        ("the worker was killed, exit code 137", "the worker was killed", False),
    ],
)
async def test_root_causes_that_name_other_codes_are_not_the_same(
    mine: str, theirs: str, *, is_capped: bool
) -> None:
    found = await similarity(
        make_content(root_cause=mine), make_content(root_cause=theirs), embedder=Counting()
    )
    assert found.root_cause == (0.6 if is_capped else 1.0)


async def test_of_very_long_cases_the_first_are_compared_however_many_there_are() -> None:
    asked = []
    for count in (AT_ONCE, 20, 50):
        embedder = Counting()
        cases = [
            make_case(content=longest(f"{mark * 3} ")) for mark in string.ascii_letters[:count]
        ]
        found = await SectionComparer(embedder).compare(longest(), cases)
        assert found[AT_ONCE:] == [NOT_SIMILAR] * (count - AT_ONCE)
        assert NOT_SIMILAR not in found[:AT_ONCE]
        asked.append(len(embedder.asked))
    assert asked == [asked[0]] * 3, "no more is embedded among more cases"
    behind = [*[make_case(content=longest())] * (AT_ONCE + 3), make_case()]
    found = await SectionComparer(HashedEmbedder()).compare(make_content(), behind)
    assert found[-1] == IDENTICAL, "a short case is compared behind long ones too"
