"""OpenAI's files: those of the workspace's `uploads` folder.

A file's id is its name there, so nothing is kept beside the file. Who may see the workspace may see
it.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from typing import Any, Final

import anyio.to_thread
from fastapi import APIRouter
from starlette.responses import Response

from gateway.errors import NotFound, UnprocessableEntity
from gateway.files.access import WorkspaceAccess
from gateway.files.uploads import FOLDER
from gateway.http.bodies import CLIENT_FILES, read_uploads
from gateway.http.context import Context
from gateway.http.json_response import JsonResponse

router = APIRouter()

_PREFIX: Final = "file-"
_MAX_FIELDS: Final = 10
_PROPERTIES = {"file": {"type": "string", "format": "binary"}, "purpose": {"type": "string"}}
_SCHEMA = {"title": "File", "type": "object", "required": ["file"], "properties": _PROPERTIES}
_FORM: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _SCHEMA}}}
}


@router.post(CLIENT_FILES, openapi_extra=_FORM)
async def create_file(context: Context) -> Response:
    """Store a file in the workspace's `uploads` folder; `purpose` means nothing here."""
    deadline_s = context.state.limits.upload_deadline_s
    async with read_uploads(context.request, deadline_s, max_fields=_MAX_FIELDS) as uploads:
        if len(uploads) != 1:
            raise UnprocessableEntity("The form must hold one file with a name, as `file`.")
        (stored,) = await context.store(uploads)
    return JsonResponse(await file_fields(await context.files(), _id_of(stored.name)))


@router.get(CLIENT_FILES + "/{file_id}")
async def get_file(context: Context, file_id: str) -> Response:
    """Return what is known of a file."""
    return JsonResponse(await file_fields(await context.files(), file_id))


async def file_fields(files: WorkspaceAccess, file_id: str) -> dict[str, Any]:
    """Return a file as its client sees it; `filename` is its name in the uploads folder.

    Raise `NotFound` if there is none, `Forbidden` if the policy denies reading it.
    """
    name = _name_of(file_id)
    status = await anyio.to_thread.run_sync(_status_blocking, files, f"{FOLDER}/{name}")
    return {
        "id": file_id,
        "object": "file",
        "bytes": status.st_size,
        "created_at": int(status.st_mtime),
        "expires_at": None,
        "filename": name,
        "purpose": "user_data",
        "status": "processed",
    }


def _status_blocking(files: WorkspaceAccess, path: str) -> os.stat_result:
    descriptor = files.open_blocking(path)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _id_of(name: str) -> str:
    return _PREFIX + urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _name_of(file_id: str) -> str:
    """Return the name in a file's id. Raise `NotFound` if it holds none."""
    text = file_id.removeprefix(_PREFIX)
    try:
        name = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (Error, ValueError):
        name = ""
    if not name or "/" in name or name in {".", ".."} or _id_of(name) != file_id:
        raise NotFound("There is no such file.")
    return name
