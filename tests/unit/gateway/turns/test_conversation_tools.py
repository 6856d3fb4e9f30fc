"""The tools in use, as turns note them and as the history tells them after a restart."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from gateway.conversations.model import Turn
from gateway.conversations.sql.turns import TurnStore
from gateway.turns.conversation_memory import MAX_CONVERSATIONS, ConversationTools
from gateway.turns.evidence import ToolStatus, ToolUse
from gateway.turns.turn_memory import TurnChronicle, TurnMemory
from policies.content.parameters import signature
from policies.inputs import PARAMETERS
from tests.conformance.suites.conversation_values import turn
from tests.support.builders import NOON, Memory

STATUSES: tuple[ToolStatus | None, ...] = (*get_args(ToolStatus), None)
TURN = turn("1", "1", state="completed")


class History:
    """A store with one turn that made one call."""

    def __init__(self, status: ToolStatus | None) -> None:
        tool: Mapping[str, object] = {
            "tool_use_id": "t1",
            "name": "mcp__x__find",
            "status": status or "unknown",
            "parameters": ["page_size"],
        }
        self._turn = replace(TURN, result={"tools": [tool]})

    async def history(self, *_: object, **__: Any) -> Sequence[Turn]:
        return [self._turn]


async def test_a_call_counts_when_it_came_back_before_a_restart_and_after_it() -> None:
    use = ToolUse(
        index=1,
        tool_use_id="t1",
        name="mcp__x__find",
        input={"page_size": "a value", "no name": 1},
        summary="",
        started_s=0,
    )
    for status in STATUSES:
        live = ConversationTools()
        chronicle = TurnChronicle(TurnMemory(reader=Memory(None), tools=live), TURN, is_on=True)
        await chronicle.tool(replace(use, status=status), NOON)
        seeded = ConversationTools(cast("TurnStore", History(status)))
        in_use = ("mcp__x__find(page_size)",) if status in {"ok", "failed"} else ()
        assert await live.of(TURN.conversation_id) == in_use, status
        assert await seeded.of(TURN.conversation_id) == in_use, status


async def test_offered_tools_are_in_use_from_the_start_with_all_parameters_that_are_known() -> None:
    tools = ConversationTools(offered=["Read", "Grep"])
    tools.note("cnv_1", "Grep", ["pattern"])
    tools.note("cnv_1", "mcp__memory__memory_search")
    read, grep, search = await tools.of("cnv_1")
    assert await tools.of("cnv_2") == (signature("Grep", PARAMETERS["Grep"]), read)
    assert read == "Read(file_path, pages, offset, limit)"
    assert grep.startswith("Grep(pattern, path, ")
    assert "head_limit" in grep
    assert search == "mcp__memory__memory_search(query, kinds, since, until, limit)"


async def test_the_tools_used_last_stand_at_the_end_at_most_twenty_with_their_parameters() -> None:
    tools = ConversationTools()
    for name, parameters in (("find", ["a", "b"]), ("list", []), ("find", ["a", "c"])):
        tools.note("cnv_1", name, parameters)
    assert await tools.of("cnv_1") == ("list", "find(a, c, b)")
    tools.note("cnv_1", "list", [f"p{number}" for number in range(30)])
    assert (await tools.of("cnv_1"))[-1].endswith(", p19)")
    for number in range(25):
        tools.note("cnv_1", f"t{number}")
    assert await tools.of("cnv_1") == tuple(f"t{number}" for number in range(5, 25))


async def test_a_conversation_is_read_from_its_history_once_and_dropped_when_silent_longest() -> (
    None
):
    tools = ConversationTools(cast("TurnStore", History("ok")))
    for number in range(MAX_CONVERSATIONS):
        tools.note(f"cnv_{number}", "Skill")
    assert len(await tools.of("cnv_0")) == 1, "it is known"
    tools.note("cnv_0", "Skill")
    assert await tools.of("cnv_new") == ("mcp__x__find(page_size)",)
    assert await tools.of("cnv_1") == ("mcp__x__find(page_size)",), "it was dropped and read anew"
    assert (await tools.of("cnv_0"))[0].startswith("Skill(")


async def test_further_tools_are_in_use_while_they_are_offered_with_all_their_parameters() -> None:
    further = {"mcp__files__read_file": ["path", "head_lines"]}
    tools = ConversationTools(offered=["Read"], further=lambda: further)
    tools.note("cnv_1", "mcp__files__read_file", ["path"])
    assert (await tools.of("cnv_1"))[-1] == "mcp__files__read_file(path, head_lines)"
    assert "mcp__files__read_file(path, head_lines)" in await tools.of("cnv_2")
    further.clear()
    assert "files" not in str(await tools.of("cnv_2"))
