"""The relay's own answer to the warm-up prompt of a prewarmed agent: one short text that costs
nothing.
"""

import json
from typing import Any

WARM_UP_TEXT = "Warm."

_USAGE = {"input_tokens": 0, "output_tokens": 0}


def warm_up_answer(request: bytes) -> bytes:
    """Return the event stream that answers a Messages request."""
    message = {
        "id": "msg_warm_up",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": json.loads(request).get("model", ""),
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    text = {"type": "text_delta", "text": WARM_UP_TEXT}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": text},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": _USAGE},
        {"type": "message_stop"},
    ]
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )
