"""Pictures of the workspace that a message names in backticks: the model sees them with the message."""

import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
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
_Found = tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]


async def read_pictures(access: WorkspaceAccess | None, message: str) -> _Found:
    """Read the pictures that a message names, up to the first that is one too many.

    Returns what the journal keeps of each, with `left_out`, a notice's code, if the model does not see it;
    and the content blocks for the model. A file that is missing or that the policy denies is in neither.
    """
    paths = dict.fromkeys(_NAMED.findall(message))
    if access is None or not paths:
        return (), ()
    return await anyio.to_thread.run_sync(_read_blocking, access, list(paths))


def _read_blocking(access: WorkspaceAccess, paths: Sequence[str]) -> _Found:
    named: list[dict[str, Any]] = []
    blocks: list[dict[str, Any]] = []
    for path in paths:
        try:
            descriptor = access.open_blocking(path)
        except (Forbidden, NotFound):
            continue
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(MAX_PICTURE_BYTES + 1)
        if len(data) > MAX_PICTURE_BYTES:
            named.append({"path": path, "left_out": "picture_large"})
        elif (kind := _KINDS.match(data)) is None:
            named.append({"path": path, "left_out": "picture_other"})
        elif len(blocks) == MAX_PICTURES:
            named.append({"path": path, "left_out": "picture_many"})
            break
        else:
            media_type = f"image/{kind.lastgroup}"
            source = {"type": "base64", "media_type": media_type, "data": b64encode(data).decode()}
            blocks.append({"type": "image", "source": source})
            named.append({"path": path, "media_type": media_type, "bytes": len(data)})
    return named, blocks
