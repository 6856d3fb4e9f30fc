"""How much is compared where texts are as long as they may be: the same, however many there are."""

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from memory.cases import sections, telling_again
from memory.cases.case import Case, CaseContent, Report
from memory.cases.sections import (
    MAX_COMPARED_CHARS,
    NOT_ALIKE,
    SectionComparer,
    SectionSimilarity,
    compared_chars,
)
from memory.cases.telling_again import MAX_LAID_BESIDE_CHARS
from memory.cases.wording import MAX_CHARS, telling_words
from memory.embeddings.hashed import HashedEmbedder
from tests.support.cases import INCIDENT, INCIDENT_ZH, caller, case_world
from tests.unit.memory.cases.judged import make_case, make_content

LONG_EN = "the pool leaks before the cache, not after it; error code 7, ORA-00060. "
LONG_ZH = "连接池未释放之前缓存失效，错误码 7，端口 9092，先更新数据库。"
LONGEST = {"symptom_summary": 1_000, "diagnosis": 20_000, "root_cause": 4_000, "resolution": 10_000}
AT_ONCE = MAX_COMPARED_CHARS // (1_000 + 3 * MAX_CHARS)
"""So many cases as long as they may be are compared."""


def longest(told: str, mark: str = "") -> CaseContent:
    """Make a content as long as one may be."""
    return make_content(
        **{name: (mark + told * (size // len(told) + 1))[:size] for name, size in LONGEST.items()}
    )


class Counted(HashedEmbedder):
    """Counts the texts that it is asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def embed_blocking(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += len(texts)
        return super().embed_blocking(texts)


@pytest.mark.parametrize("told", [LONG_EN, LONG_ZH], ids=["en", "zh"])
async def test_of_the_longest_cases_only_the_first_are_compared_however_many_there_are(
    told: str,
) -> None:
    asked = []
    for count in (AT_ONCE, 20, 50):
        embedder = Counted()
        marks = string.ascii_letters[:count]
        cases = [make_case(content=longest(told, f"{mark * 3} ")) for mark in marks]
        alike = await SectionComparer(embedder).compare(longest(told), cases)
        assert len(alike) == count
        assert alike[AT_ONCE:] == [NOT_ALIKE] * (count - AT_ONCE)
        assert NOT_ALIKE not in alike[:AT_ONCE]
        asked.append(embedder.asked)
    assert asked == [3 * (AT_ONCE + 1)] * 3


async def test_a_short_case_is_compared_behind_long_ones_too() -> None:
    cases = [make_case(content=longest(LONG_EN))] * (AT_ONCE + 3)
    alike = await SectionComparer(HashedEmbedder()).compare(make_content(), [*cases, make_case()])
    assert alike[-1] == SectionSimilarity(symptom=1.0, diagnosis=1.0, root_cause=1.0)


async def test_twenty_cases_of_ordinary_length_are_all_compared() -> None:
    ordinary = make_content(diagnosis="x" * 1_500, resolution="y" * 800)
    cases = [make_case(content=ordinary)] * 20
    assert compared_chars(ordinary) * 20 < MAX_COMPARED_CHARS
    assert NOT_ALIKE not in await SectionComparer(HashedEmbedder()).compare(ordinary, cases)


async def test_no_more_words_are_kept_than_there_is_room_for() -> None:
    embedder = Counted()
    comparer = SectionComparer(embedder, kept_words=30)
    told = [f"{'w' * n} leaks" for n in range(3, 40)]
    cases = [make_case(content=make_content(root_cause=one)) for one in told]
    await comparer.compare(make_content(), cases)
    before = embedder.asked
    await comparer.compare(make_content(root_cause=told[-2]), [cases[-1]])
    assert embedder.asked == before, "the newest are kept"
    await comparer.compare(make_content(root_cause=told[0]), [cases[1]])
    assert embedder.asked == before + 2, "the oldest are not"


async def test_words_are_counted_once_however_often_a_section_is_asked_for() -> None:
    embedder = Counted()
    comparer = SectionComparer(embedder, kept_words=30)
    other = make_case(content=make_content(root_cause="leak"))
    await comparer.compare(make_content(), [other])
    before = embedder.asked
    for _ in range(100):
        await comparer.compare(make_content(), [other])
    assert embedder.asked == before


@pytest.mark.parametrize("told", [LONG_EN, LONG_ZH], ids=["en", "zh"])
async def test_hundreds_of_hidden_cases_are_sifted_without_taking_their_words_apart(
    told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_apart: list[str] = []

    def counted(text: str) -> tuple[str, ...]:
        taken_apart.extend([text] if text else [])
        return telling_words(text)

    monkeypatch.setattr(sections, "telling_words", counted)
    hidden = [
        make_case(case_id=f"cas_{n}", lifecycle="rejected", content=longest(told, f"k{n} "))
        for n in range(300)
    ]
    nearest = telling_again.nearest(longest(told), hidden)
    assert len(nearest) == 20
    await SectionComparer(HashedEmbedder()).compare(longest(told), nearest)
    assert len(taken_apart) <= 3 * (AT_ONCE + 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("container logs were not rotated", "the logs of the containers are not rotated"),
        ("容器日志未轮转", "容器的日志没有轮转"),
    ],
)
def test_the_nearest_of_many_hidden_is_among_those_that_are_compared(one: str, other: str) -> None:
    def hidden(n: int, root_cause: str, lifecycle: Any) -> Case:
        content = make_content(root_cause=root_cause, symptom_summary=f"sign {n}")
        return make_case(case_id=f"cas_{n}", lifecycle=lifecycle, content=content)

    many = [
        hidden(n, f"奇异 frobnicator {'abcdefghij'[n % 10] * n}", "rejected") for n in range(60)
    ]
    near = hidden(99, other, "rejected")
    told = make_content(root_cause=one, symptom_summary="sign")
    assert telling_again.nearest(told, [*many, near])[0] == near
    unsure = hidden(98, one, "draft")
    assert unsure in telling_again.nearest(told, [*many, unsure])


@pytest.mark.parametrize("told", [LONG_EN, LONG_ZH], ids=["en", "zh"])
def test_of_the_longest_reports_only_the_newest_few_are_laid_beside(told: str) -> None:
    def reports(content: CaseContent) -> list[Report]:
        at = make_case().created_at
        return [Report(content=content, conversation_id=f"cnv_{n}", at=at) for n in range(10)]

    few = reports(longest(told))
    assert telling_again.fitting(few, MAX_LAID_BESIDE_CHARS) == few[-2:]
    ordinary = reports(make_content(diagnosis="x" * 1_500))
    assert telling_again.fitting(ordinary, MAX_LAID_BESIDE_CHARS) == ordinary


@pytest.mark.parametrize("told", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])
async def test_cases_that_reports_speak_against_are_not_all_laid_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Any
) -> None:
    """What is not looked at is not merged into: a case too many is better than two causes in one."""
    looked_at: list[int] = []

    def at_odds(content: CaseContent, own: CaseContent, reports: Sequence[Report]) -> bool:
        del content, own
        looked_at.append(len(reports))
        return bool(reports)

    async with case_world(tmp_path) as world:
        await world.upsert(caller("cnv_0"), **told)
        again = {**told, "symptom_summary": f"{told['symptom_summary']} (10:01)"}
        assert (await world.upsert(caller("cnv_1"), **again)).status == "merged"
        monkeypatch.setattr(telling_again, "_contradicts", at_odds)
        for n in range(2, 5):
            more = {**told, "symptom_summary": f"{told['symptom_summary']} (10:0{n})"}
            await world.upsert(caller(f"cnv_{n}"), **more)
        assert 1 in looked_at
        looked_at.clear()
        monkeypatch.setattr(telling_again, "MAX_LAID_BESIDE_CHARS", 0)
        last = {**told, "symptom_summary": f"{told['symptom_summary']} (10:09)"}
        assert (await world.upsert(caller("cnv_9"), **last)).status == "created"
        assert looked_at == []
