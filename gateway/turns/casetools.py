"""Case memory as an agent has it in a turn: the four tools, bound to the conversation by the server.

Which app and environment, whose, and which conversation: none of it comes from the model. The answers
are told as the HTTP routes tell them, but for whole cases, which are Markdown to read.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.conversations.model import Conversation
from gateway.engine.owntools import OwnAnswer, OwnServer, OwnTool
from gateway.turns.casefields import feedback_fields, refusal_fields, search_fields, upsert_fields
from gateway.turns.recent import ConversationTools
from memory.cases import schemas
from memory.cases.case import CaseCaller
from memory.cases.results import Refusal, RenderAnswer
from memory.cases.tools import CaseTools
from memory.scope import Scope

CASE_SERVER: Final = OwnServer(
    schemas.SERVER,
    tuple(OwnTool(one.name, one.description, one.input_schema) for one in schemas.TOOLS),
    skill=schemas.SKILL,
)


@dataclass(frozen=True, slots=True)
class CaseCalls:
    """Answers the four tools in one turn."""

    cases: CaseTools
    conversation: Conversation
    tools: ConversationTools

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call; a refusal is an answer, too."""
        caller = CaseCaller(
            scope=Scope(
                owner_id=self.conversation.user_id,
                app_code=self.conversation.app_code,
                environment=self.conversation.environment,
            ),
            conversation_id=self.conversation.id,
            root_id=self.conversation.root_id,
            active_tools=await self.tools.of(self.conversation.id),
        )
        does = _DOES.get(name.rpartition("__")[2])
        if does is None:
            return _told(Refusal(code="TOOL_NOT_FOUND", message="There is no such tool."))
        return await does(self.cases, caller, arguments)


async def _search(cases: CaseTools, caller: CaseCaller, arguments: Mapping[str, Any]) -> OwnAnswer:
    answer = await cases.search(caller, arguments.get("query"), **_given(arguments, "top_k"))
    return _told(answer if isinstance(answer, Refusal) else search_fields(answer))


async def _upsert(cases: CaseTools, caller: CaseCaller, arguments: Mapping[str, Any]) -> OwnAnswer:
    answer = await cases.upsert(caller, arguments.get("case"))
    return _told(answer if isinstance(answer, Refusal) else upsert_fields(answer))


async def _feedback(
    cases: CaseTools, caller: CaseCaller, arguments: Mapping[str, Any]
) -> OwnAnswer:
    answer = await cases.feedback(
        caller, arguments.get("case_id"), **_given(arguments, "helpful", "signal")
    )
    return _told(answer if isinstance(answer, Refusal) else feedback_fields(answer))


async def _render(cases: CaseTools, caller: CaseCaller, arguments: Mapping[str, Any]) -> OwnAnswer:
    answer = await cases.render(caller, arguments.get("case_ids"))
    return _told(answer) if isinstance(answer, Refusal) else OwnAnswer(_read_out(answer))


_Does = Callable[[CaseTools, CaseCaller, Mapping[str, Any]], Awaitable[OwnAnswer]]
_DOES: Final[Mapping[str, _Does]] = {
    schemas.SEARCH.name: _search,
    schemas.UPSERT.name: _upsert,
    schemas.FEEDBACK.name: _feedback,
    schemas.RENDER.name: _render,
}


def _given(arguments: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Give the optional arguments that were sent."""
    return {name: arguments[name] for name in names if name in arguments}


def _told(answer: Refusal | Mapping[str, Any]) -> OwnAnswer:
    is_error = isinstance(answer, Refusal)
    fields = refusal_fields(answer) if isinstance(answer, Refusal) else answer
    return OwnAnswer(json.dumps(fields, ensure_ascii=False), is_error=is_error)


def _read_out(answer: RenderAnswer) -> str:
    parts = [one.markdown for one in answer.cases]
    if answer.missing:
        parts.append(f"No such case: {', '.join(answer.missing)}.")
    return "\n\n---\n\n".join(parts)
