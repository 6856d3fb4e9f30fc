"""A request for an answer in words alone."""

import json


def offer_no_tools(request: bytes) -> bytes:
    """Return a Messages request with which the service lets the model call no tool.

    The list of tools stays: a history with calls needs it, and the service has it in its cache. A
    request that has none is returned as it is.
    """
    try:
        told = json.loads(request)
    except (ValueError, RecursionError):
        return request
    if not isinstance(told, dict) or not told.get("tools"):
        return request
    return json.dumps({**told, "tool_choice": {"type": "none"}}).encode()
