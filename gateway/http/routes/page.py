"""The chat page and its files: those that are in its folder, and nothing else."""

from collections.abc import Mapping
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path

import anyio
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from gateway.errors import NotFound

router = APIRouter()

WEB_DIR = Path(__file__).resolve().parent.parent.parent / "web"
"""Holds `index.html` and `static/`."""

_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
"""The system's own table may call a script plain text, which `nosniff` forbids."""


@router.head("/", include_in_schema=False, response_class=HTMLResponse)
@router.get("/", response_class=HTMLResponse)
async def page(request: Request) -> Response:
    """Return the chat page."""
    return await _serve(request, "index.html")


@router.head("/static/{name:path}", include_in_schema=False, response_class=Response)
@router.get("/static/{name:path}", response_class=Response)
async def static_file(request: Request, name: str) -> Response:
    """Return one of the page's files."""
    return await _serve(request, f"static/{name}")


async def _serve(request: Request, name: str) -> Response:
    media_type = _TYPES.get(Path(name).suffix)
    content = await anyio.to_thread.run_sync(_read_blocking, name)
    if media_type is None or content is None:
        raise NotFound("There is no such file.")
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    known = request.headers.get("if-none-match", "").split(",")
    if {tag.strip().removeprefix("W/") for tag in known} & {etag, "*"}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


def _read_blocking(name: str) -> bytes | None:
    """Return a file by its listed name; no other spelling, and no link, finds it."""
    for path in WEB_DIR.rglob("*"):
        is_named = path.relative_to(WEB_DIR).as_posix() == name
        if is_named and path.is_file() and not path.is_symlink():
            return path.read_bytes()
    return None
