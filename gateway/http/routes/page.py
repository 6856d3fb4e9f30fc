"""The chat page and its files: those that are in its folder, and nothing else."""

import re
from http import HTTPStatus
from pathlib import Path
from typing import Final

import anyio
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from gateway.errors import NotFound
from gateway.http.middleware import DIAGRAMS
from gateway.http.page_files import INDEX, PageFile, PageFiles, fingerprint

router = APIRouter()

WEB_DIR = Path(__file__).resolve().parent.parent.parent / "web"
"""Holds `index.html` and `static/`."""

_DIAGRAM_DIR: Final = "static/diagram/"
_VERSIONED: Final = re.compile(r"v-([0-9a-f]+)/")
_REVALIDATED: Final = "no-cache"
_KEPT: Final = "public, max-age=31536000, immutable"


class _Cache:
    """The files as they were last read; they are read again when the page is asked for and one has
    changed.
    """

    def __init__(self) -> None:
        self._fingerprint = 0
        self._files: PageFiles | None = None

    def read_blocking(self, *, again: bool) -> PageFiles:
        """Return the files."""
        now = fingerprint(WEB_DIR) if again or self._files is None else self._fingerprint
        if self._files is None or now != self._fingerprint:
            self._files, self._fingerprint = PageFiles(WEB_DIR), now
        return self._files


_cache: Final = _Cache()


@router.head("/", include_in_schema=False, response_class=HTMLResponse)
@router.get("/", response_class=HTMLResponse)
async def page(request: Request) -> Response:
    """Return the chat page."""
    files = await anyio.to_thread.run_sync(lambda: _cache.read_blocking(again=True))
    return await _serve(request, files.get(INDEX), _REVALIDATED)


@router.head("/static/{name:path}", include_in_schema=False, response_class=Response)
@router.get("/static/{name:path}", response_class=Response)
async def static_file(request: Request, name: str) -> Response:
    """Return one of the page's files; under the address of its present version, to be kept for
    ever.
    """
    version = _VERSIONED.match(name)
    path = name[version.end() :] if version else name
    files = await anyio.to_thread.run_sync(lambda: _cache.read_blocking(again=version is None))
    is_present = version is not None and version[1] == files.version
    return await _serve(request, files.get(f"static/{path}"), _KEPT if is_present else _REVALIDATED)


async def _serve(request: Request, file: PageFile | None, cache_control: str) -> Response:
    media_type = None if file is None else file.media_type
    if file is None or media_type is None:
        raise NotFound("There is no such file.")
    encoding, content = await _encoded(request, file)
    etag = f'"{file.etag}{encoding and f"-{encoding}"}"'
    headers = {"ETag": etag, "Cache-Control": cache_control, "Vary": "Accept-Encoding"}
    if encoding:
        headers["Content-Encoding"] = encoding
    if file.name.startswith(_DIAGRAM_DIR):
        host = request.headers["host"]  # checked by `HostGuard`
        headers.update({name: value.format(host=host) for name, value in DIAGRAMS.items()})
    known = request.headers.get("if-none-match", "").split(",")
    if {tag.strip().removeprefix("W/") for tag in known} & {etag, "*"}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type=media_type, headers=headers)


async def _encoded(request: Request, file: PageFile) -> tuple[str, bytes]:
    """Return the content in the best form that the client takes, and that form's name; "" for as it
    is.
    """
    given = request.headers.get("accept-encoding", "").lower().replace(" ", "").split(",")
    taken = {item.split(";")[0] for item in given if not re.search(r";q=0(\.0*)?$", item)}
    if "br" in taken and file.brotli is not None:
        return "br", file.brotli
    if "gzip" in taken:
        content = await anyio.to_thread.run_sync(lambda: file.gzip)
        if content is not None:
            return "gzip", content
    return "", file.content
