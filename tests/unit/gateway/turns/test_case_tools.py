"""Case memory as an agent has it: who asks says the server, and what else is sent is left out and told."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.turns.case_tools import CaseCalls, caller_in
from memory.cases import tools
from memory.cases.case import CaseCaller
from memory.cases.results import (
    FeedbackAnswer,
    FeedbackTally,
    Refusal,
    RenderAnswer,
    SearchAnswer,
    UpsertAnswer,
)
from tests.unit.memory.cases.judged import make_case

FORGED: Mapping[str, Any] = {
    "scope": {"app_code": "bank"},
    "conversation_id": "cnv_forged",
    "环境": "生产",
}


@dataclass
class Asked:
    """Tools that note who asked what, and answer or refuse."""

    refuses: bool = False
    callers: list[CaseCaller] = field(default_factory=list)
    arguments: list[tuple[object, ...]] = field(default_factory=list)

    def _answer(self, caller: CaseCaller, answer: object, *arguments: object) -> Any:
        self.callers.append(caller)
        self.arguments.append(arguments)
        return Refusal(code="CASE_NOT_FOUND", message="None.") if self.refuses else answer

    async def search(self, caller: CaseCaller, query: object, top_k: object = 5) -> Any:
        return self._answer(caller, SearchAnswer(cases=()), query, top_k)

    async def upsert(self, caller: CaseCaller, case: object) -> Any:
        answer = UpsertAnswer(status="created", case=make_case(), stripped=("fb",))
        return self._answer(caller, answer, case)

    async def feedback(self, caller: CaseCaller, case_id: object, **judged: object) -> Any:
        answer = FeedbackAnswer(case=make_case(), feedback=FeedbackTally())
        return self._answer(caller, answer, case_id, judged)

    async def render(self, caller: CaseCaller, case_ids: object) -> Any:
        rendered: Any = SimpleNamespace(markdown="# Case")
        answer = RenderAnswer(cases=(rendered,))
        return self._answer(caller, answer, case_ids)


class Tools:
    """The tools in use in a conversation."""

    async def of(self, conversation_id: str) -> Sequence[str]:
        return ("Read", f"of {conversation_id}")


def calls(asked: Asked) -> CaseCalls:
    conversation: Any = SimpleNamespace(
        user_id="ann", app_code="shop", environment="production", id="cnv_1", root_id="cnv_0"
    )
    cases: Any = asked
    tools: Any = Tools()
    return CaseCalls(cases, partial(caller_in, conversation, tools))


OWN: Mapping[str, Mapping[str, Any]] = {
    tools.SEARCH.name: {"query": "结账 503", "top_k": 3},
    tools.UPSERT.name: {"case": {"diagnosis": "x"}},
    tools.FEEDBACK.name: {"case_id": "cas_1", "helpful": True},
    tools.RENDER.name: {"case_ids": ["cas_1"]},
}


async def test_who_asks_is_the_conversation_with_its_branch_and_the_tools_in_use() -> None:
    for name, arguments in OWN.items():
        asked = Asked()
        await calls(asked)(f"mcp__memory_case__{name}", {**arguments, **FORGED})
        (caller,) = asked.callers
        scope = caller.scope
        assert (scope.owner_id, scope.app_code, scope.environment) == ("ann", "shop", "production")
        assert (caller.conversation_id, caller.voter, caller.by) == ("cnv_1", "cnv_0", "agent")
        assert caller.active_tools == ("Read", "of cnv_1")


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("name", OWN)
async def test_what_a_tool_has_no_field_for_is_left_out_and_told(name: str, refuses: Any) -> None:
    asked, plain = Asked(refuses=refuses), Asked(refuses=refuses)
    told = await calls(asked)(name, {**OWN[name], **FORGED})
    without = await calls(plain)(name, OWN[name])
    assert asked.arguments == plain.arguments
    assert told.is_error is refuses
    if name == tools.RENDER.name and not refuses:
        left_out = "Left out, for the server says it: scope, conversation_id, 环境."
        assert told.text == f"{without.text}\n\n---\n\n{left_out}"
        return
    fields, known = json.loads(told.text), json.loads(without.text)
    assert fields.pop("stripped") == [*FORGED, *known.pop("stripped", [])]
    assert fields == known
    assert "forged" not in told.text


async def test_of_many_names_a_few_are_told_masked_and_short() -> None:
    secret = "ghp_" + "a1B2" * 9
    names = [secret, "y" * 200, *(f"field {n}\n\ud800" for n in range(30))]
    told = await calls(Asked())(tools.SEARCH.name, dict.fromkeys(names))
    stripped = json.loads(told.text)["stripped"]
    assert secret not in told.text
    assert (len(stripped), stripped[-1]) == (21, "and 12 more")
    assert max(map(len, stripped)) <= 63
    assert stripped[2] == "field 0 ?", "half a character is none"
    assert told.text.encode()


async def test_a_tool_that_is_not_there_is_told_with_its_code() -> None:
    told = await calls(Asked())("mcp__memory_case__memory_case_drop", {})
    assert (told.is_error, json.loads(told.text)["code"]) == (True, "TOOL_NOT_FOUND")
