"""Reports that were merged into a case: which of them are looked at, searched and told."""

from pathlib import Path
from typing import Any

import pytest

from memory.cases.item import MAX_TOLD_REPORTS
from memory.cases.markdown import MAX_REPORTS as MAX_IN_MARKDOWN
from memory.cases.reading import MAX_REPORTS, CaseReading
from tests.support.cases import INCIDENT, INCIDENT_ZH, CaseWorld, caller, case_world


def retold(incident: Any, n: int, *, code: str = "") -> dict[str, Any]:
    return {
        **incident,
        "symptom_summary": f"{incident['symptom_summary']} (10:{n:02d})",
        "diagnosis": f"{incident['diagnosis']} {code}".strip(),
    }


async def body(world: CaseWorld) -> str:
    ((text,),) = [tuple(one) for one in await world.database.rows("SELECT body FROM items")]
    return str(text)


@pytest.mark.parametrize("incident", [INCIDENT, INCIDENT_ZH], ids=["en", "zh"])
async def test_what_an_older_report_contradicts_is_a_case_of_its_own_however_many_came_since(
    tmp_path: Path, incident: Any
) -> None:
    async with case_world(tmp_path) as world:
        first = (await world.upsert(caller(), **incident)).case.case_id
        told = [retold(incident, 1, code="ORA-00018"), *(retold(incident, n) for n in (2, 3, 4))]
        answers = [await world.upsert(caller(f"cnv_r{n}"), **one) for n, one in enumerate(told)]
        assert [one.status for one in answers] == ["merged"] * 4
        other = await world.upsert(caller("cnv_9"), **retold(incident, 5, code="ORA-12519"))
        assert other.status == "created"
        same = await world.upsert(caller("cnv_8"), **retold(incident, 6, code="ORA-00018"))
        assert (same.status, same.case.case_id) == ("merged", first)


async def test_what_the_newest_few_add_is_searched_and_told_whoever_told_it(tmp_path: Path) -> None:
    words = ["scanner valve", "harbour crane", "velvet rope", "copper kettle", "paper lantern"]
    words += [
        "marble stair",
        "cedar drawer",
        "linen curtain",
        "amber lamp",
        "iron gate",
        "wax seal",
    ]
    assert len(words) > MAX_REPORTS > MAX_IN_MARKDOWN == MAX_TOLD_REPORTS == 5
    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(), **INCIDENT)).case.case_id
        for n, word in enumerate(words):
            more = f"{INCIDENT['resolution']}. Looked at the {word}."
            answer = await world.upsert(
                caller(f"cnv_r{n}"), **{**retold(INCIDENT, n), "resolution": more}
            )
            assert answer.status == "merged"
        searched = await body(world)
        assert [word in searched for word in words] == [False] * 6 + [True] * 5
        ((whole,), _) = await CaseReading(world.store).whole(caller("cnv_9"), [one])
        told = [report.content.resolution for report in whole.reports]
        assert [word in text for word, text in zip(words[1:], told, strict=True)] == [True] * 10
        shown = whole.markdown
        assert [word in shown for word in words] == [False] * 6 + [True] * 5


async def test_one_conversation_pushes_out_no_report_of_another(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        one = (await world.upsert(caller(), **INCIDENT)).case.case_id
        more = f"{INCIDENT['resolution']}. Looked at the scanner valve."
        await world.upsert(caller("cnv_2"), **{**retold(INCIDENT, 0), "resolution": more})
        for n in range(1, 12):
            loud = await world.upsert(caller("cnv_loud"), **retold(INCIDENT, n))
            assert (loud.status, loud.case.reports) == ("merged", n + 1)
        ((whole,), _) = await CaseReading(world.store).whole(caller("cnv_9"), [one])
        voices = [report.conversation_id for report in whole.reports]
        assert voices == ["cnv_2", *["cnv_loud"] * 3]
        assert "scanner valve" in whole.markdown
        assert "scanner valve" in await body(world)
