"""Reports that were merged into a case: which of them are looked at, searched and told."""

from typing import Any

from memory.cases.case_reader import CaseReader
from tests.support.cases import INCIDENT, CaseWorld, caller


def retold(incident: Any, n: int, *, code: str = "") -> dict[str, Any]:
    return {
        **incident,
        "symptom_summary": f"{incident['symptom_summary']} (10:{n:02d})",
        "diagnosis": f"{incident['diagnosis']} {code}".strip(),
    }


async def body(world: CaseWorld) -> str:
    ((text,),) = [tuple(row) for row in await world.database.rows("SELECT body FROM items")]
    return str(text)


async def test_one_conversation_pushes_out_no_report_of_another(world: CaseWorld) -> None:
    one = (await world.upsert(caller(), **INCIDENT)).case.case_id
    more = f"{INCIDENT['resolution']}. Looked at the scanner valve."
    await world.upsert(caller("cnv_2"), **{**retold(INCIDENT, 0), "resolution": more})
    for n in range(1, 12):
        loud = await world.upsert(caller("cnv_loud"), **retold(INCIDENT, n))
        assert (loud.status, loud.case.reports) == ("merged", n + 1)
    ((whole,), _) = await CaseReader(world.store).whole(caller("cnv_9"), [one])
    voices = [report.conversation_id for report in whole.reports]
    assert voices == ["cnv_2", *["cnv_loud"] * 3]
    assert "scanner valve" in whole.markdown
    assert "scanner valve" in await body(world)
