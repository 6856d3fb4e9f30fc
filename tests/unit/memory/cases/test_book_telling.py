"""What a caller is told of a telling: where to change what a case says, what had no room, what was not looked at."""

from pathlib import Path
from typing import Any

import pytest

from memory.cases.case import CaseContent
from memory.cases.relations import Nearby
from memory.scope import Scope
from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, Listed, caller, case_world, retold

BOTH = pytest.mark.parametrize("incident", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])


@BOTH
async def test_who_may_change_a_case_is_told_how_where_a_better_telling_is_kept_as_a_report(
    world: CaseWorld, incident: Any
) -> None:
    one = (await world.upsert(caller(), **{**incident, "resolution": "重启 restart"})).case
    how = f"update it by its case_id {one.case_id}"
    for who, is_told in (
        (caller(), True),
        (caller("cnv_branch", root_id="cnv_1"), True),
        (caller(None, by="person"), True),
        (caller("cnv_2"), False),
    ):
        better = {
            **retold(incident),
            "resolution": f"{incident['resolution']} {who.conversation_id}",
        }
        answer = await world.upsert(who, **better)
        assert (answer.status, answer.case.case_id) == ("merged", one.case_id)
        assert answer.case.content.resolution == "重启 restart"
        assert (how in " ".join(answer.notes)) is is_told


class Partly(Listed):
    """Candidates of a search that did not take part whole."""

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        del content, scope, limit
        return Nearby(cases=(), degraded=("fulltext_error", "vector_timeout"))


@BOTH
async def test_where_not_all_of_the_search_took_part_the_answer_names_it(
    tmp_path: Path, incident: Any
) -> None:
    async with case_world(tmp_path) as first:
        await first.upsert(caller(), **incident)
        partly = Partly(first.database, first.store)
        async with case_world(tmp_path, candidates=partly) as world:
            answer = await world.upsert(
                caller("cnv_2"), **{**retold(incident), "root_cause": "unknown"}
            )
        assert answer.status == "created"
        (told,) = answer.notes
        assert "fulltext_error, vector_timeout" in told
        assert "related cases may be missing" in told
