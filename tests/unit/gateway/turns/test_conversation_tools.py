"""The tools in use, as turns note them and as the history tells them after a restart."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from gateway.conversations.model import Turn
from gateway.conversations.store import TurnStore
from gateway.ids import ConversationId, TurnId, UserId
from gateway.turns.conversation_memory import ConversationTools
from gateway.turns.evidence import ToolStatus, ToolUse
from gateway.turns.turn_memory import TurnChronicle, TurnMemory
from tests.support.builders import NOON, Memory

STATUSES: tuple[ToolStatus | None, ...] = (*get_args(ToolStatus), None)
TURN = Turn(
    id=TurnId("trn_1"),
    conversation_id=ConversationId("cnv_1"),
    user_id=UserId("ann"),
    seq=1,
    state="completed",
    message="hello",
    created_at=NOON,
)


class History:
    """A store with one turn that made one call."""

    def __init__(self, status: ToolStatus | None) -> None:
        tool = {"tool_use_id": "t1", "name": "Bash", "status": status or "unknown"}
        self._turn = replace(TURN, result={"tools": [tool]})

    async def history(self, *_: object, **__: Any) -> Sequence[Turn]:
        return [self._turn]


async def test_a_call_counts_when_it_came_back_before_a_restart_and_after_it() -> None:
    use = ToolUse(index=1, tool_use_id="t1", name="Bash", input={}, summary="", started_s=0)
    for status in STATUSES:
        live = ConversationTools()
        chronicle = TurnChronicle(TurnMemory(reader=Memory(None), tools=live), TURN, is_on=True)
        chronicle.tool(replace(use, status=status), NOON)
        seeded = ConversationTools(cast("TurnStore", History(status)))
        in_use = ("Bash",) if status in {"ok", "failed"} else ()
        assert await live.of(TURN.conversation_id) == in_use, status
        assert await seeded.of(TURN.conversation_id) == in_use, status
