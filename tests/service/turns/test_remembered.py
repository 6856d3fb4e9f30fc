"""What memory gives to a turn reaches the model, the client and the journal."""

from pathlib import Path

from gateway.ids import LOCAL_USER as ME
from memory.recall.query import RECALLED_KINDS, QueryPack
from memory.scope import SearchScope
from tests.support.builders import REMEMBERED, Memory
from tests.support.services import (
    events_of,
    journal_of,
    of_kind,
    result_of,
    running_services,
    script,
    send,
)


async def test_what_memory_gives_reaches_the_model_the_client_and_the_journal(
    tmp_path: Path,
) -> None:
    memory = Memory(REMEMBERED)
    async with running_services(tmp_path, memory=memory, recall_deadline_ms=300) as services:
        accepted = await send(services, script({"echo": "context"}))
        result = await result_of(services, accepted)
        events = await events_of(services, accepted)
        lines = await journal_of(services, result)
    assert result["reply"] == "Ann likes tea."
    assert result["memory"]["injected"][0]["id"] == "epi_1"
    told = of_kind(events, "memory.injected")[0]
    assert {key: told[key] for key in result["memory"]} == result["memory"]
    context = lines[1]
    assert (context["kind"], context["text"]) == ("context", "Ann likes tea.")
    (asked,) = memory.asked
    assert asked.deadline_s is not None
    assert 0 < asked.deadline_s <= 0.24
    assert asked == QueryPack(
        queries=(script({"echo": "context"}),),
        scope=SearchScope(owner_id=ME, or_without=("project_id",)),
        kinds=RECALLED_KINDS,
        conversation_id=result["conversation_id"],
        deadline_s=asked.deadline_s,
    )
