"""The four case tools of an agent, bound to the conversation by the server.

Owner, app, environment and conversation never come from the model. Answers have the form of the
HTTP routes, except whole cases, which are Markdown.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gateway.conversations.model import Conversation
from gateway.engine.own_tools import OwnAnswer, OwnServer, OwnTool
from gateway.turns.case_fields import (
    feedback_fields,
    refusal_fields,
    short_search_fields,
    upsert_fields,
)
from gateway.turns.conversation_memory import ConversationTools
from memory.cases.case import CaseCaller
from memory.cases.results import Refusal, RenderAnswer
from memory.cases.tools import FEEDBACK, SEARCH, SERVER, SKILL, TOOLS, UPSERT, CaseTools, ToolForm
from memory.items.scope import Scope
from memory.text.lines import clipped, flat
from policies.secrets import mask_secrets

_MAX_NAMES: Final = 20
"""How many unknown arguments are named; the rest is counted."""
_MAX_NAME_CHARS: Final = 60
_MAX_READ_NAME: Final = 1_000

CASE_SERVER: Final = OwnServer(
    SERVER,
    tuple(OwnTool(form.name, form.description, form.input_schema) for form in TOOLS),
    skill=SKILL,
)


@dataclass(frozen=True, slots=True)
class CaseCalls:
    """Answers the four tools."""

    cases: CaseTools
    caller: Callable[[], Awaitable[CaseCaller]]
    """Returns who asks."""

    async def __call__(self, name: str, arguments: Mapping[str, Any]) -> OwnAnswer:
        """Answer a call; a refusal is an answer, too."""
        caller = await self.caller()
        tool = name.rpartition("__")[2]
        form = next((form for form in TOOLS if form.name == tool), None)
        if form is None:
            return _answer(Refusal(code="TOOL_NOT_FOUND", message="There is no such tool."))
        answer = await self._run(form, caller, arguments)
        stripped = _unknown_names(form, arguments)
        if isinstance(answer, RenderAnswer):
            return OwnAnswer(_markdown(answer, stripped))
        return _answer(answer, stripped)

    async def _run(
        self, form: ToolForm, caller: CaseCaller, arguments: Mapping[str, Any]
    ) -> Refusal | RenderAnswer | dict[str, Any]:
        get, cases = arguments.get, self.cases
        if form is SEARCH:
            found = await cases.search(caller, get("query"), **_given(arguments, "top_k"))
            return found if isinstance(found, Refusal) else short_search_fields(found)
        if form is UPSERT:
            stored = await cases.upsert(caller, get("case"))
            return stored if isinstance(stored, Refusal) else upsert_fields(stored)
        if form is FEEDBACK:
            given = _given(arguments, "helpful", "signal")
            judged = await cases.feedback(caller, get("case_id"), **given)
            return judged if isinstance(judged, Refusal) else feedback_fields(judged)
        return await cases.render(caller, get("case_ids"))


async def caller_in(conversation: Conversation, tools: ConversationTools) -> CaseCaller:
    """Return who asks in a conversation."""
    return CaseCaller(
        scope=Scope(
            owner_id=conversation.user_id,
            app_code=conversation.app_code,
            environment=conversation.environment,
        ),
        conversation_id=conversation.id,
        root_id=conversation.root_id,
        active_tools=await tools.of(conversation.id),
    )


def _given(arguments: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the optional arguments that were sent."""
    return {name: arguments[name] for name in names if name in arguments}


def _unknown_names(form: ToolForm, arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments that the tool does not have; the server sets owner, scope and
    conversation.
    """
    unknown = [name for name in arguments if name not in form.input_schema["properties"]]
    shown = [_shown_name(name) for name in unknown[:_MAX_NAMES]]
    more = len(unknown) - _MAX_NAMES
    return shown if more <= 0 else [*shown, f"and {more} more"]


def _shown_name(name: str) -> str:
    readable = name[:_MAX_READ_NAME].encode("utf-8", "replace").decode()
    return clipped(flat(mask_secrets(readable)), _MAX_NAME_CHARS)


def _answer(answer: Refusal | Mapping[str, Any], stripped: Sequence[str] = ()) -> OwnAnswer:
    is_error = isinstance(answer, Refusal)
    fields = dict(refusal_fields(answer) if isinstance(answer, Refusal) else answer)
    if stripped:
        fields["stripped"] = [*stripped, *fields.get("stripped", ())]
    return OwnAnswer(json.dumps(fields, ensure_ascii=False), is_error=is_error)


def _markdown(answer: RenderAnswer, stripped: Sequence[str]) -> str:
    parts = [case.markdown for case in answer.cases]
    if answer.missing:
        parts.append(f"No such case: {', '.join(answer.missing)}.")
    if stripped:
        parts.append(f"Left out, for the server says it: {', '.join(stripped)}.")
    return "\n\n---\n\n".join(parts)
