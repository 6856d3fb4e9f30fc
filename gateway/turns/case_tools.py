"""Case memory as an agent has it in a turn: the four tools, bound to the conversation by the server.

Which app and environment, whose, and which conversation: none of it comes from the model. The answers
are told as the HTTP routes tell them, but for whole cases, which are Markdown to read.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.conversations.model import Conversation
from gateway.engine.own_tools import OwnAnswer, OwnServer, OwnTool
from gateway.turns.case_fields import feedback_fields, refusal_fields, search_fields, upsert_fields
from gateway.turns.conversation_tools import ConversationTools
from memory.cases import schemas
from memory.cases.case import CaseCaller
from memory.cases.results import Refusal, RenderAnswer
from memory.cases.tools import CaseTools
from memory.scope import Scope
from memory.text_lines import clipped, flat
from policies.secrets import mask_secrets

_MAX_NAMES: Final = 20
"""Of what a call may not name; so many are told, the rest is counted."""
_MAX_NAME_CHARS: Final = 60
_MAX_READ_NAME: Final = 1_000

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
    left_out = _left_out(schemas.SEARCH, arguments)
    return _told(answer if isinstance(answer, Refusal) else search_fields(answer), left_out)


async def _upsert(cases: CaseTools, caller: CaseCaller, arguments: Mapping[str, Any]) -> OwnAnswer:
    answer = await cases.upsert(caller, arguments.get("case"))
    left_out = _left_out(schemas.UPSERT, arguments)
    return _told(answer if isinstance(answer, Refusal) else upsert_fields(answer), left_out)


async def _feedback(
    cases: CaseTools, caller: CaseCaller, arguments: Mapping[str, Any]
) -> OwnAnswer:
    answer = await cases.feedback(
        caller, arguments.get("case_id"), **_given(arguments, "helpful", "signal")
    )
    left_out = _left_out(schemas.FEEDBACK, arguments)
    return _told(answer if isinstance(answer, Refusal) else feedback_fields(answer), left_out)


async def _render(cases: CaseTools, caller: CaseCaller, arguments: Mapping[str, Any]) -> OwnAnswer:
    answer = await cases.render(caller, arguments.get("case_ids"))
    left_out = _left_out(schemas.RENDER, arguments)
    if isinstance(answer, Refusal):
        return _told(answer, left_out)
    return OwnAnswer(_read_out(answer, left_out))


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


def _left_out(form: schemas.ToolForm, arguments: Mapping[str, Any]) -> list[str]:
    """Name what was sent that the tool has no field for: whose, where and when says the server."""
    other = [one for one in arguments if one not in form.input_schema["properties"]]
    told = [_shown_name(one) for one in other[:_MAX_NAMES]]
    return told if len(other) <= _MAX_NAMES else [*told, f"and {len(other) - _MAX_NAMES} more"]


def _shown_name(name: str) -> str:
    readable = name[:_MAX_READ_NAME].encode("utf-8", "replace").decode()
    return clipped(flat(mask_secrets(readable)), _MAX_NAME_CHARS)


def _told(answer: Refusal | Mapping[str, Any], left_out: Sequence[str] = ()) -> OwnAnswer:
    is_error = isinstance(answer, Refusal)
    fields = dict(refusal_fields(answer) if isinstance(answer, Refusal) else answer)
    if left_out:
        fields["stripped"] = [*left_out, *fields.get("stripped", ())]
    return OwnAnswer(json.dumps(fields, ensure_ascii=False), is_error=is_error)


def _read_out(answer: RenderAnswer, left_out: Sequence[str]) -> str:
    parts = [one.markdown for one in answer.cases]
    if answer.missing:
        parts.append(f"No such case: {', '.join(answer.missing)}.")
    if left_out:
        parts.append(f"Left out, for the server says it: {', '.join(left_out)}.")
    return "\n\n---\n\n".join(parts)
