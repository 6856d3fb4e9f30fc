"""Pictures of the workspace that a message names in backticks: the model sees them with the message."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from gateway.engine.protocol import Picture
from gateway.errors import Forbidden, NotFound
from gateway.files.access import WorkspaceAccess

MAX_PICTURES: Final = 5
MAX_PICTURE_BYTES: Final = 3_900_000
"""In base64 it is the 5 MiB that the Messages API takes; five of them stay below its 32 MB."""

_NAMED = re.compile(r"`([^`\n]+\.(?:png|jpe?g|gif|webp))`", re.IGNORECASE)
_BEGINNINGS: Final = (
    ("image/png", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", re.compile(rb"\xff\xd8\xff")),
    ("image/gif", re.compile(rb"GIF8[79]a")),
    ("image/webp", re.compile(rb"RIFF....WEBP", re.DOTALL)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPicture:
    """A picture file that a message names: `picture`, or why the model does not see it."""

    path: str
    picture: Picture | None = None
    reason: Literal["", "picture_large", "picture_many", "picture_other"] = ""

    def fields(self) -> dict[str, Any]:
        """Return what the journal keeps of it."""
        if self.picture is None:
            return {"path": self.path, "left_out": self.reason}
        kept = {"media_type": self.picture.media_type, "bytes": len(self.picture.data)}
        return {"path": self.path, **kept}


def named_pictures(message: str) -> list[str]:
    """Return the paths of picture files that stand in backticks, each once, in order."""
    return list(dict.fromkeys(_NAMED.findall(message)))


def read_pictures_blocking(access: WorkspaceAccess, paths: Sequence[str]) -> list[NamedPicture]:
    """Read the pictures. A file that is missing or that the policy denies is left out without a word."""
    found: list[NamedPicture] = []
    for path in paths:
        try:
            descriptor = access.open_blocking(path)
        except (Forbidden, NotFound):
            continue
        with os.fdopen(descriptor, "rb") as file:
            is_one_more = sum(one.picture is not None for one in found) >= MAX_PICTURES
            data = b"" if is_one_more else file.read(MAX_PICTURE_BYTES + 1)
        kinds = [kind for kind, begins in _BEGINNINGS if begins.match(data)]
        if is_one_more:
            found.append(NamedPicture(path=path, reason="picture_many"))
        elif len(data) > MAX_PICTURE_BYTES:
            found.append(NamedPicture(path=path, reason="picture_large"))
        elif not kinds:
            found.append(NamedPicture(path=path, reason="picture_other"))
        else:
            found.append(NamedPicture(path=path, picture=Picture(media_type=kinds[0], data=data)))
    return found
