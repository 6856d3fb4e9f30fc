"""Record a final verdict on a call, in the turn's log and its chronicle."""

from functools import partial

from gateway.turns.context import TurnContext
from memory.intents.builders import intent_from_permission
from policies.calls import ToolCall
from policies.verdict import Allow, Deny


def write_permission(context: TurnContext, call: ToolCall, verdict: Allow | Deny) -> None:
    """Record the verdict."""
    allowed = isinstance(verdict, Allow)
    allowed_by = context.evidence.allowed_by.get(call.index) if allowed else None
    build = partial(
        intent_from_permission,
        allowed=allowed,
        index=call.index,
        tool_name=call.name,
        tool_use_id=call.tool_use_id,
        rule=verdict.rule,
        reason=context.sanitizer.text(verdict.reason),
        allowed_by=allowed_by,
    )
    noted = context.chronicle.note(build, context.parts.now())
    context.journal.write(
        "permission",
        index=call.index,
        tool=call.name,
        tool_use_id=call.tool_use_id,
        input=call.input,
        verdict="allow" if allowed else "deny",
        rule=verdict.rule,
        reason=verdict.reason,
        runs=verdict.updated_input if isinstance(verdict, Allow) else None,
        allowed_by=allowed_by,
        **noted,
    )
