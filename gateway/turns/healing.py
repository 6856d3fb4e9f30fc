"""Go on when the model's service refuses the history of a conversation.

A block that the service cannot read, or a history that no summary can shorten, would be refused
with every later message as well. The turn then asks once more in a new session, with a summary made
of the record. It does so by itself only if nothing is done twice: the turn has shown no text and
called no tool. If the service refuses that too, the history was not the reason, and the old session
stays.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from gateway.conversations.model import Conversation, Turn
from gateway.engine.events import RunFinished
from gateway.engine.protocol import Prompt
from gateway.observability.masking import clip
from gateway.turns.context import TurnContext
from gateway.turns.evidence import Evidence
from gateway.turns.reply import api_status

SUMMARISED_TURNS: Final = 20
"""How many of the last turns the summary has."""
_MESSAGE_CHARS: Final = 400
_REPLY_CHARS: Final = 800
_REFUSED: Final = 400
_ANSWERED: Final = frozenset({"answered", "answered_with_failures"})
_HEAD: Final = (
    "The session that held this conversation could not be read any more. This is a summary of its "
    "last"
    " messages, made of the record; say so if something that is missing here matters."
)


def history_refused(evidence: Evidence, conversation: Conversation) -> bool:
    """Return whether a turn may go on in a new session."""
    if conversation.session_id is None or conversation.fork_at is not None:
        return False
    if evidence.text or evidence.tools or evidence.stopped_by is not None:
        return False
    refused = evidence.prompt_too_long or (
        evidence.model_gave_up and api_status(evidence) == _REFUSED
    )
    return isinstance(evidence.finish, RunFinished) and refused


async def with_summary(prompt: Prompt, context: TurnContext) -> Prompt:
    """Return a turn's prompt that also shows the model a summary of the conversation's record."""
    recalled, conversation_id = prompt.context, context.turn.conversation_id
    turns = await context.parts.turns.history(conversation_id, limit=SUMMARISED_TURNS)
    summary = summarise_record(turns)

    async def both() -> str | None:
        text = await recalled() if recalled is not None else ""
        return None if text is None else "\n\n".join(part for part in (summary, text) if part)

    return replace(prompt, context=both)


def summarise_record(turns: Sequence[Turn]) -> str:
    """Return what was said in the turns that were answered, shortened, in their order."""
    lines = [_HEAD]
    for turn in turns:
        result = turn.result or {}
        if result.get("outcome") not in _ANSWERED:  # its message may be what the service refuses
            continue
        reply = str(result.get("reply", ""))
        lines.append(f"Person: {clip(turn.message, _MESSAGE_CHARS)}")
        lines.append(f"You: {clip(reply, _REPLY_CHARS)}")
    return "\n".join(lines)
