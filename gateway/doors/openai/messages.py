"""A client's messages as one new message of a person, with its history."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Sequence
from io import BytesIO
from typing import Final

from gateway.chat.threads import Said
from gateway.doors.asked import Conversation
from gateway.doors.openai.bodies import FilePart, ImagePart, Message, OtherPart, TextPart
from gateway.errors import UnprocessableEntity
from gateway.files.uploads import Upload

MAX_PICTURES: Final = 5
MAX_FILES: Final = 20
_DATA: Final = re.compile(r"data:image/(png|jpeg|gif|webp);base64,")
"""The beginning of a picture's address that holds the picture itself."""


def read_messages(messages: Sequence[Message]) -> Conversation:
    """Take a client's messages apart; the last must be the person's.

    Raise `UnprocessableEntity` if it is not, is blank, or holds what Candor does not take.
    """
    last = messages[-1]
    if last.role != "user":
        raise UnprocessableEntity("The last message must be the person's: `role` is `user`.")
    text, pictures, files = text_of(last), _uploads_of(last), _files_of(last)
    if not text.strip() and not pictures and not files:
        raise UnprocessableEntity("The last message is blank.")
    earlier = messages[:-1]
    return Conversation(
        text=text,
        pictures=pictures,
        before=said_in(earlier),
        instructions="\n\n".join(
            text_of(message) for message in earlier if message.role in {"system", "developer"}
        ).strip(),
        files=files,
    )


def said_in(messages: Sequence[Message]) -> list[Said]:
    """Return what the person and the agent said, and what tools of the client returned."""
    said: list[Said] = []
    for message in messages:
        match message.role:
            case "user" | "assistant" | "tool":
                said.append(Said(message.role, text_of(message)))
            case "function":
                said.append(Said("tool", text_of(message)))
            case "system" | "developer":
                pass
    return said


def text_of(message: Message) -> str:
    """Return the texts of a message, a line each."""
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    return "\n".join(part.text for part in message.content if isinstance(part, TextPart))


def _uploads_of(message: Message) -> list[Upload]:
    """Return the pictures and files that a message holds itself."""
    uploads: list[Upload] = []
    for part in message.content if isinstance(message.content, list) else ():
        match part:
            case ImagePart():
                uploads.append(_picture(part.image_url.url, len(uploads) + 1))
            case FilePart() if part.file.file_data is not None:
                uploads.append(_file(part.file.file_data, part.file.filename))
            case TextPart() | FilePart():
                pass
            case OtherPart():
                raise UnprocessableEntity(
                    f"Message parts of the type {part.type[:40]!r} are not taken."
                )
    if len(uploads) > MAX_PICTURES:
        raise UnprocessableEntity(f"A message may hold {MAX_PICTURES} pictures and files at most.")
    return uploads


def _files_of(message: Message) -> list[str]:
    """Return the ids of the files that a message refers to."""
    parts = message.content if isinstance(message.content, list) else []
    named = [part.file for part in parts if isinstance(part, FilePart)]
    if any(file.file_id is None and file.file_data is None for file in named):
        raise UnprocessableEntity("A file must have a `file_id`, or its content as `file_data`.")
    return [file.file_id for file in named if file.file_id is not None][:MAX_FILES]


def _picture(url: str, number: int) -> Upload:
    found = _DATA.match(url)
    if found is None:
        raise UnprocessableEntity(
            "A picture must be in the message itself, as a data: address of a PNG, JPEG, GIF or"
            " WebP; Candor loads none from elsewhere."
        )
    return Upload(name=f"picture-{number}.{found[1]}", content=_content(url[found.end() :]))


def _file(data: str, name: str) -> Upload:
    _, _, encoded = data.rpartition(",")
    return Upload(name=name, content=_content(encoded))


def _content(encoded: str) -> BytesIO:
    try:
        return BytesIO(b64decode(encoded, validate=True))
    except Error:
        raise UnprocessableEntity("The data of a picture or a file are not base64.") from None
