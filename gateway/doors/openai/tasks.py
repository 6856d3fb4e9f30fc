"""Small questions of a front end, such as for a title, that must not become turns."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import anyio.to_thread

from gateway.doors.asked import MAX_CHARS
from gateway.doors.openai.bodies import Message
from gateway.doors.openai.messages import read_messages
from gateway.errors import GatewayError, UnprocessableEntity
from memory.remote.small_model import AskModel, ModelUnavailable

TASK_MODEL: Final = "candor-task"
_PREFIX: Final = "### Task:"
"""How Open WebUI begins each of its own questions."""
_DEADLINE_S: Final = 60.0
_SYSTEM: Final = "Do the task of a chat program. Answer with what it asks for and nothing else."


class NoTaskModel(GatewayError, code="no_task_model", status=HTTPStatus.SERVICE_UNAVAILABLE):
    """There is no model for small questions, or it does not answer."""


def is_task(model: str, messages: Sequence[Message], header: str | None) -> bool:
    """Return whether a request is a front end's own question."""
    if model == TASK_MODEL or (header or "").strip():
        return True
    text = messages[0].content if len(messages) == 1 else None
    return isinstance(text, str) and text.startswith(_PREFIX)


async def do_task(ask: AskModel | None, messages: Sequence[Message]) -> str:
    """Return the answer to a front end's question, from the side model, without tools or memory.

    Raise `NoTaskModel` if there is none or it does not answer in time, `UnprocessableEntity` if the
    question is too long.
    """
    asked = await anyio.to_thread.run_sync(read_messages, messages)
    earlier = [f"[{said.role}] {said.text}" for said in asked.before]
    prompt = "\n\n".join(part for part in (asked.instructions, *earlier, asked.text) if part)
    if len(prompt) > MAX_CHARS:
        raise UnprocessableEntity(f"The question is longer than {MAX_CHARS} characters.")
    if ask is None:
        raise NoTaskModel("The demo model answers no small questions such as titles.")
    try:
        return (await ask(system=_SYSTEM, prompt=prompt, timeout_s=_DEADLINE_S)).strip()
    except ModelUnavailable as exc:
        raise NoTaskModel("The model for small questions did not answer.") from exc
