"""What the four tools do unasked: how long they take at most, and what they do not ask to be judged."""

from pathlib import Path
from typing import Any

import pytest

from memory.cases.case import CaseCaller
from memory.cases.case_reader import CaseReader
from memory.cases.results import SearchAnswer
from memory.cases.tools import CaseTools
from tests.support.cases import INCIDENT, INCIDENT_ZH, OTHER_INCIDENT, caller, case_world

NOTHING: Any = None
"""What is not asked here."""


class Hurried:
    """A finder that notes how long it may take."""

    def __init__(self) -> None:
        self.deadlines: list[float | None] = []

    async def find(
        self, caller: CaseCaller, query: object, top_k: object = 5, *, deadline_s: Any = None
    ) -> SearchAnswer:
        del caller, query, top_k
        self.deadlines.append(deadline_s)
        return SearchAnswer(cases=[])


async def test_a_tool_takes_ten_seconds_and_its_search_answers_before_that() -> None:
    finder = Hurried()
    await CaseTools(NOTHING, finder, NOTHING).search(caller(), "结账 503")
    assert finder.deadlines == [8.0]


@pytest.mark.parametrize("incident", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])
async def test_a_case_that_search_hides_is_read_and_not_asked_to_be_judged(
    tmp_path: Path, incident: Any
) -> None:
    async with case_world(tmp_path) as world:
        unsure = (await world.upsert(caller(), **{**incident, "confidence": 0.3})).case.case_id
        found = (await world.upsert(caller(), **OTHER_INCIDENT)).case.case_id
        whole, _ = await CaseReader(world.store).whole(caller("cnv_2"), [unsure, found])
        assert [whole_case.case.case_id for whole_case in whole] == [unsure, found]
        assert await world.store.unreviewed("cnv_2", "ann", limit=9) == [found]
