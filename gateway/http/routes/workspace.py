"""The workspace's files: list a folder, find, download and upload; all under the agent's own
policy.
"""

import codecs
import os
from collections.abc import AsyncIterator, Mapping
from functools import partial
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Annotated, Any, Final
from urllib.parse import quote

import anyio
from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from gateway.errors import UnprocessableEntity
from gateway.http.bodies import MAX_UPLOADS, UPLOADS, read_uploads
from gateway.http.context import Context
from gateway.http.json_response import JsonResponse, fields_of
from gateway.http.parameters import DEFAULT_LIMIT, Limit, Parameter, bad_field

router = APIRouter()

FilePath = Annotated[str, Query(max_length=4096)]

_PICTURES: Mapping[str, str] = {
    **{f".{kind}": f"image/{kind}" for kind in ("gif", "jpeg", "png", "webp")},
    ".jpg": "image/jpeg",
}
"""What a page may show as a picture; an SVG can hold scripts."""
_TEXT: Final = "text/plain; charset=utf-8"
_BINARY: Final = "application/octet-stream"
_LOOKED_AT_BYTES: Final = 8192
_CHUNK_BYTES: Final = 262_144

_FILE = {"type": "string", "format": "binary"}
_FILES = {"type": "array", "minItems": 1, "maxItems": MAX_UPLOADS, "items": _FILE}
_SCHEMA = {"title": "Files", "type": "object", "required": ["files"], "additionalProperties": False}
_CONTENT = {"multipart/form-data": {"schema": {**_SCHEMA, "properties": {"files": _FILES}}}}
_FORM: dict[str, Any] = {"requestBody": {"required": True, "content": _CONTENT}}


class FileDownload(Response):
    """An open file as a download, `st_size` bytes as of now; closes it."""

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        descriptor, name = self._descriptor, self._name
        try:
            size_bytes = os.fstat(descriptor).st_size
            head = await anyio.to_thread.run_sync(os.pread, descriptor, _LOOKED_AT_BYTES, 0)
            response = StreamingResponse(
                _chunks(descriptor, size_bytes),
                media_type=_PICTURES.get(PurePosixPath(name).suffix.lower()) or _type_of(head),
                headers={
                    "Content-Length": str(size_bytes),
                    "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
                },
            )
            await response(scope, receive, send)
        finally:
            os.close(descriptor)


@router.get("/workspace")
async def list_workspace(
    context: Context,
    path: FilePath = "",
    q: Parameter = "",
    limit: Limit = DEFAULT_LIMIT,
    conversation_id: Parameter = "",
) -> Response:
    """List the folder `path`; with `q` find up to `limit` files of the whole workspace instead."""
    files = await context.files(conversation_id)
    query = q.strip()
    if query and path:
        raise bad_field("path", "`path` and `q` exclude each other.")
    work = (
        partial(files.find_blocking, query, limit) if query else partial(files.list_blocking, path)
    )
    listing = await anyio.to_thread.run_sync(work)
    names = ("name", "path", "kind", "size_bytes", "modified_at", "readable")
    return JsonResponse(
        {
            "path": listing.path,
            "entries": [fields_of(entry, names) for entry in listing.entries],
            "truncated": listing.truncated,
        }
    )


@router.get(
    "/workspace/file",
    response_class=Response,
    responses={
        200: {"content": {kind: {} for kind in (*_PICTURES.values(), "text/plain", _BINARY)}}
    },
)
async def download_file(
    context: Context, path: FilePath, conversation_id: Parameter = ""
) -> Response:
    """Return a file as it is, as a download: no browser opens it as a page."""
    files = await context.files(conversation_id)
    descriptor = await anyio.to_thread.run_sync(files.open_blocking, path)
    return FileDownload(descriptor, PurePosixPath(path).name)


def _type_of(head: bytes) -> str:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return _BINARY
    return _BINARY if b"\0" in head else _TEXT


async def _chunks(descriptor: int, size_bytes: int) -> AsyncIterator[bytes]:
    """Yield `size_bytes` of an open file, fewer if it shrinks meanwhile."""
    done = 0
    while done < size_bytes:
        wanted = min(_CHUNK_BYTES, size_bytes - done)
        chunk = await anyio.to_thread.run_sync(os.pread, descriptor, wanted, done)
        if not chunk:
            return
        done += len(chunk)
        yield chunk


@router.post(UPLOADS, status_code=HTTPStatus.CREATED, openapi_extra=_FORM)
async def upload_files(context: Context, conversation_id: Parameter = "") -> Response:
    """Store files in the workspace's `uploads` folder and return their paths."""
    async with read_uploads(context.request, context.state.limits.upload_deadline_s) as uploads:
        if not uploads:
            raise UnprocessableEntity("The form holds no file with a name.")
        stored = await context.store(uploads, conversation_id)
    files = [fields_of(file, ("path", "name", "size_bytes")) for file in stored]
    return JsonResponse({"files": files}, status_code=HTTPStatus.CREATED)
