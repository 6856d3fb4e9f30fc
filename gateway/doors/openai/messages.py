"""A client's messages as one new message of a person, with its history."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Sequence
from io import BytesIO
from typing import Final

from gateway.chat.threads import Said
from gateway.doors.asked import Conversation
from gateway.doors.openai.bodies import ImagePart, Message, TextPart
from gateway.errors import UnprocessableEntity
from gateway.files.uploads import Upload

MAX_PICTURES: Final = 5
_DATA: Final = re.compile(r"data:image/(png|jpeg|gif|webp);base64,")
"""The beginning of a picture's address that holds the picture itself."""


def read_messages(messages: Sequence[Message]) -> Conversation:
    """Take a client's messages apart; the last must be the person's.

    Raise `UnprocessableEntity` if it is not, is blank, or holds what Candor does not take.
    """
    last = messages[-1]
    if last.role != "user":
        raise UnprocessableEntity("The last message must be the person's: `role` is `user`.")
    text, pictures = _text_of(last), _pictures_of(last)
    if not text.strip() and not pictures:
        raise UnprocessableEntity("The last message is blank.")
    earlier = messages[:-1]
    return Conversation(
        text=text,
        pictures=pictures,
        before=said_in(earlier),
        instructions="\n\n".join(
            _text_of(message) for message in earlier if message.role in {"system", "developer"}
        ).strip(),
    )


def said_in(messages: Sequence[Message]) -> list[Said]:
    """Return what the person and the agent said."""
    return [
        Said(message.role, _text_of(message))
        for message in messages
        if message.role in ("user", "assistant")
    ]


def _text_of(message: Message) -> str:
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    return "\n".join(part.text for part in message.content if isinstance(part, TextPart))


def _pictures_of(message: Message) -> list[Upload]:
    uploads: list[Upload] = []
    for part in message.content if isinstance(message.content, list) else ():
        if isinstance(part, TextPart):
            continue
        if not isinstance(part, ImagePart):
            raise UnprocessableEntity(
                f"Message parts of the type {part.type[:40]!r} are not taken."
            )
        uploads.append(_picture(part.image_url.url, len(uploads) + 1))
    if len(uploads) > MAX_PICTURES:
        raise UnprocessableEntity(f"A message may hold {MAX_PICTURES} pictures at most.")
    return uploads


def _picture(url: str, number: int) -> Upload:
    found = _DATA.match(url)
    if found is None:
        raise UnprocessableEntity(
            "A picture must be in the message itself, as a data: address of a PNG, JPEG, GIF or"
            " WebP; Candor loads none from elsewhere."
        )
    try:
        content = b64decode(url[found.end() :], validate=True)
    except Error:
        raise UnprocessableEntity("The data of a picture are not base64.") from None
    return Upload(name=f"picture-{number}.{found[1]}", content=BytesIO(content))
