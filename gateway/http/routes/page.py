"""The chat page and its files: what is listed is served, nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path

import anyio
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from gateway.errors import NotFound
from gateway.http.context import State

router = APIRouter()

_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""Our own list: the system's may call a script plain text, and `nosniff` would forbid it then."""

_INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class WebFile:
    """A file of the page as it is now."""

    content: bytes
    media_type: str
    etag: str


@router.head("/", include_in_schema=False, response_class=HTMLResponse)
@router.get("/", response_class=HTMLResponse)
async def page(request: Request, state: State) -> Response:
    """Give the chat page."""
    return await _serve(request, state, _INDEX)


@router.head("/static/{name:path}", include_in_schema=False, response_class=Response)
@router.get("/static/{name:path}", response_class=Response)
async def static_file(request: Request, state: State, name: str) -> Response:
    """Give one of the page's files."""
    return await _serve(request, state, f"static/{name}")


async def _serve(request: Request, state: State, name: str) -> Response:
    file = await anyio.to_thread.run_sync(read_web_file_blocking, state.web_dir, name)
    if file is None:
        raise NotFound("There is no such file.")
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if _is_known(file.etag, request.headers.get("if-none-match", "")):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


def read_web_file_blocking(directory: Path, name: str) -> WebFile | None:
    """Read a listed file of a known type; None for any other name."""
    media_type = _TYPES.get(Path(name).suffix)
    path = _listed(directory).get(name)
    if media_type is None or path is None:
        return None
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return WebFile(content, media_type, f'"{sha256(content).hexdigest()[:32]}"')


def _listed(directory: Path) -> dict[str, Path]:
    found = (one for one in directory.rglob("*") if one.is_file() and not one.is_symlink())
    return {one.relative_to(directory).as_posix(): one for one in found}


def _is_known(etag: str, given: str) -> bool:
    tags = [one.strip().removeprefix("W/") for one in given.split(",")]
    return etag in tags or "*" in tags
