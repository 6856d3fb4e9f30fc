"""A new message of a client that sends its history, and the message of a turn that it becomes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.chat.threads import Said
from gateway.errors import UnprocessableEntity
from gateway.files.uploads import Upload

MAX_CHARS: Final = 200_000
"""Of a message with what is quoted in it; the limit of `POST /chat`."""
_INSTRUCTIONS: Final = "--- Instructions of the client ---"
_EARLIER: Final = "--- Earlier messages, as the client sent them ---"
_LEFT_OUT: Final = "[older messages left out]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a client sent."""

    text: str
    """The new message."""
    pictures: Sequence[Upload]
    """Those of the new message."""
    before: Sequence[Said]
    instructions: str
    """Its system messages."""
    files: Sequence[str] = ()
    """Ids of files that were sent before the new message."""


def compose(
    conversation: Conversation, paths: Sequence[str], *, is_new: bool, knows_history: bool
) -> str:
    """Return the message of the turn: the person's words first, then the pictures' paths, and in a
    new conversation the client's instructions and the history that the conversation does not have.

    Raise `UnprocessableEntity` if the person's own words are too long.
    """
    parts = [conversation.text.strip(), " ".join(f"`{path}`" for path in paths)]
    if is_new and conversation.instructions:
        parts += [f"{_INSTRUCTIONS}\n{conversation.instructions}"]
    text = "\n\n".join(part for part in parts if part)
    if len(text) > MAX_CHARS:
        raise UnprocessableEntity(f"The message is longer than {MAX_CHARS} characters.")
    if not knows_history:
        text += _quoted(conversation.before, MAX_CHARS - len(text))
    return text


def _quoted(before: Sequence[Said], room: int) -> str:
    """Return a history as text of at most `room` characters, the newest messages of it."""
    head = f"\n\n{_EARLIER}"
    room -= len(head) + len(_LEFT_OUT) + 1
    kept: list[str] = []
    for said in reversed(before):
        line = f"\n[{said.role}] {said.text.strip()}"
        room -= len(line)
        if room < 0:
            kept.append(f"\n{_LEFT_OUT}")
            break
        kept.append(line)
    return head + "".join(reversed(kept)) if kept else ""
