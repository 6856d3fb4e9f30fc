"""Pictures of the workspace that reach the model: named in a message in backticks, or read by the
agent.

Each is opened first: the model's service refuses a whole request because of one picture that it
cannot use, and does so again with every later one.
"""

import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import PurePath
from typing import Any, Final

import anyio.to_thread

from gateway.errors import Forbidden, NotFound
from gateway.files.access import WorkspaceAccess
from gateway.files.picture import PictureFault, PictureKind, inspect_picture_blocking
from gateway.turns.context import TurnContext
from policies.calls import ToolCall
from policies.verdict import Deny

MAX_PICTURES: Final = 5
MAX_PICTURE_BYTES: Final = 3_900_000
"""In base64 it is the 5 MiB that the Messages API takes; five of them stay below its 32 MB."""

_SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""What the agent program's Read opens as a picture."""
_NAMED = re.compile(r"`([^`\n]+\.(?:png|jpe?g|gif|webp))`", re.IGNORECASE)
"""A picture's path in backticks."""
_READ_FAULTS: Final[Mapping[PictureFault, Deny]] = {
    "broken": Deny(
        rule="picture_broken",
        reason="The picture's data are damaged or incomplete, so it cannot be shown.",
    ),
    "other": Deny(
        rule="picture_other",
        reason="The file's content is no PNG, JPEG, GIF or WebP picture, so it cannot be shown.",
    ),
    "animated": Deny(
        rule="picture_animated",
        reason="The picture has several frames, so it cannot be shown.",
        hint="A single frame, stored as PNG, can.",
    ),
}
"""Why a Read is refused. The agent program itself makes large pictures smaller."""
_Found = tuple[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]


async def read_pictures(context: TurnContext) -> _Found:
    """Read the pictures that a message names, up to the first that is one too many.

    Returns what the journal keeps of each, with `left_out`, the reason, if the model does not see
    it; and the content blocks for the model. A file that is missing or that the policy denies is in
    neither.
    """
    paths = dict.fromkeys(_NAMED.findall(context.turn.message))
    if not context.parts.shows_pictures or not paths:
        return (), ()
    access = context.workspace.files
    named, blocks = await anyio.to_thread.run_sync(_read_blocking, access, list(paths))
    context.evidence.has_picture = bool(blocks)
    return named, blocks


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
            named.append({"path": path, "left_out": "large"})
            continue
        if len(blocks) == MAX_PICTURES:
            named.append({"path": path, "left_out": "many"})
            break
        kind = inspect_picture_blocking(BytesIO(data))
        if not isinstance(kind, PictureKind):
            named.append({"path": path, "left_out": kind})
            continue
        source = {"type": "base64", "media_type": kind.media_type, "data": b64encode(data).decode()}
        blocks.append({"type": "image", "source": source})
        named.append({"path": path, "media_type": kind.media_type, "bytes": len(data)})
    return named, blocks


def tell_left_out(context: TurnContext, path: str, reason: str) -> None:
    """Report a picture that the model is not shown."""
    shown = context.sanitizer.line(path)
    context.notice("picture_left_out", path=shown, reason=context.say(f"picture_{reason}"))


async def refuse_picture(context: TurnContext, call: ToolCall) -> Deny | None:
    """Return, and report, why an allowed Read must not show its picture to the model; None if it
    may.
    """
    access, path = context.workspace.files, call.input.get("file_path")
    if not context.parts.shows_pictures or call.name != "Read" or not isinstance(path, str):
        return None
    if not path.lower().endswith(_SUFFIXES):
        return None
    fault = await anyio.to_thread.run_sync(_fault_blocking, access, path, call.cwd)
    if fault is None or fault not in _READ_FAULTS:
        return None
    tell_left_out(context, path, fault)
    return _READ_FAULTS[fault]


def _fault_blocking(access: WorkspaceAccess, path: str, cwd: str) -> PictureFault | None:
    below = os.path.relpath(PurePath(cwd) / path, access.root)
    try:
        descriptor = access.open_blocking(below)
    except (Forbidden, NotFound):
        return None  # the agent program says so itself
    with os.fdopen(descriptor, "rb") as file:
        kind = inspect_picture_blocking(file)
    return None if isinstance(kind, PictureKind) else kind
