"""The stored result of a turn that has ended, or why there is none yet."""

from typing import Any

from gateway.conversations.model import Turn
from gateway.errors import NotStored, ShuttingDown

RETRY_AFTER_S = 5


def finished_result(turn: Turn, *, is_shutting_down: bool) -> dict[str, Any]:
    """Return the result of a turn that nobody needs to wait for any more.

    Raises:
        ShuttingDown: the server stops before the turn ran; it runs after the next start.
        NotStored: nothing could be stored for a while; the turn goes on, and its result waits for that.
    """
    if turn.result is not None:
        return turn.result
    if is_shutting_down:
        raise ShuttingDown(
            "The server is shutting down; the message is kept and is answered after its start.",
            retry_after_s=RETRY_AFTER_S,
        )
    raise NotStored(
        "The server's storage cannot be written right now. The message was taken; its answer stands among the"
        " conversation's messages as soon as there is room, if the server is not stopped before.",
        details={"conversation_id": turn.conversation_id, "turn_id": turn.id},
    )
