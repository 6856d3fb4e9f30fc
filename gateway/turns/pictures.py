"""Pictures of the workspace that a message names in backticks: the model sees them with the message."""

import os
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio.to_thread

from gateway.errors import Forbidden, NotFound
from gateway.files.access import WorkspaceAccess

MAX_PICTURES: Final = 5
MAX_PICTURE_BYTES: Final = 3_900_000
"""In base64 it is the 5 MiB that the Messages API takes; five of them stay below its 32 MB."""

_NAMED = re.compile(r"`([^`\n]+\.(?:png|jpe?g|gif|webp))`", re.IGNORECASE)
_KINDS = re.compile(
    rb"(?P<png>\x89PNG\r\n\x1a\n)|(?P<jpeg>\xff\xd8\xff)|(?P<gif>GIF8[79]a)|(?P<webp>RIFF.{4}WEBP)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPicture:
    """A picture file that a message names."""

    path: str
    data: bytes
    media_type: str
    left_out: str = ""
    """The notice that says why the model does not see it; empty if it does."""

    def fields(self) -> dict[str, Any]:
        """Return what the journal keeps of it."""
        told = {"left_out": self.left_out} if self.left_out else {"media_type": self.media_type}
        return {"path": self.path, "bytes": len(self.data), **told}

    def block(self) -> dict[str, Any]:
        """Return it as a content block of the Messages API."""
        data = b64encode(self.data).decode()
        source = {"type": "base64", "media_type": self.media_type, "data": data}
        return {"type": "image", "source": source}


async def read_pictures(access: WorkspaceAccess | None, message: str) -> Sequence[NamedPicture]:
    """Read the pictures that a message names, up to the first that is one too many.

    A file that is missing or that the policy denies is left out without a word.
    """
    paths = list(dict.fromkeys(_NAMED.findall(message)))
    if access is None or not paths:
        return ()
    return await anyio.to_thread.run_sync(_read_blocking, access, paths)


def _read_blocking(access: WorkspaceAccess, paths: Sequence[str]) -> Sequence[NamedPicture]:
    found: list[NamedPicture] = []
    for path in paths:
        try:
            descriptor = access.open_blocking(path)
        except (Forbidden, NotFound):
            continue
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MAX_PICTURE_BYTES + 1)
        kind = _KINDS.match(data)
        left_out = "" if kind else "picture_other"
        if len(data) > MAX_PICTURE_BYTES:
            left_out = "picture_large"
        elif sum(not picture.left_out for picture in found) == MAX_PICTURES:
            left_out = "picture_many"
        media_type = f"image/{kind.lastgroup}" if kind else ""
        found.append(NamedPicture(path=path, data=data, media_type=media_type, left_out=left_out))
        if left_out == "picture_many":
            break
    return found
