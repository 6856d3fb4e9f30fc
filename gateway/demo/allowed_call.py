"""The gateway's prompt after a person allowed a call whose run had ended: the demo model makes that
call.

The prompt holds the call in a fenced `tool-call` block: `{"name": …, "input": {…}}`.
"""

import json
import re

from gateway.demo.answer import Reply, ToolCall, call, say
from gateway.demo.conversation import Conversation

_FENCE = re.compile(r"^```tool-call\n(?P<body>[^\n]+)\n```$", re.MULTILINE)
"""JSON on one line."""


def make_allowed_call(conversation: Conversation) -> Reply | None:
    """Return the call, and then what came of it; None if the last prompt allows none."""
    fence = _FENCE.search(conversation.last.text)
    if fence is None:
        return None
    if not conversation.last.outcomes:
        allowed = json.loads(fence["body"])
        return call(ToolCall(allowed["name"], allowed["input"]))
    last = conversation.last.outcomes[-1]
    return say(f"{last.name}: {last.text_for_people}".strip())
