"""`/compact`: the agent program summarises the conversation, and the model goes on with the
summary.
"""

import anyio

from gateway.engine.events import TextDone
from gateway.engine.protocol import Prompt, ToolGatekeeper
from gateway.transcripts import SessionOwner
from gateway.turns.context import TurnContext
from gateway.turns.event_emitter import EventEmitter


def compaction_prompt(words: str, gatekeeper: ToolGatekeeper, owner: SessionOwner) -> Prompt:
    """Return the agent program's own command; `words` of the person say what the summary must keep.

    Without `@` nothing in them names a file that the agent program would add.
    """
    text = f"/compact {words.replace('@', ' ')}".strip()
    return Prompt(text=text, gatekeeper=gatekeeper, owner=owner, is_command=True)


async def tell_compaction(context: TurnContext, emitter: EventEmitter) -> None:
    """Reply with how it went, unless the run ended in another way, which the result tells."""
    evidence = context.evidence
    if evidence.finish is None or evidence.lost or evidence.model_gave_up or evidence.stopped_by:
        return
    text = context.say("compacted" if evidence.is_summarised else "compact_failed")
    reply = TextDone(text=text)
    await emitter.emit(reply)
    evidence.take(reply, anyio.current_time())
