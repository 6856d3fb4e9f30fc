"""Request bodies: bounded in size and time, then parsed as strict JSON.

`BodyLimit` refuses a body whose `Content-Length` is too large unread, and counts the bytes of any
other as they arrive. Routes read bodies with `read_body`.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any, NoReturn, TypeVar

import anyio
import anyio.to_thread
from pydantic import ValidationError
from starlette.datastructures import Headers, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import TooLarge, UnprocessableEntity
from gateway.files.uploads import Upload
from gateway.http.exception_handlers import BodyTimeout, MalformedRequest
from gateway.http.parameters import bad_field, field_name, validation_error
from gateway.http.schemas import Body

BodyT = TypeVar("BodyT", bound=Body)

_JSON = "application/json"
_FORM = "multipart/form-data"
UPLOADS = "/workspace/files"
CLIENT_FILES = "/openai/v1/files"
FORMS = frozenset({UPLOADS, CLIENT_FILES})
"""The paths that take a form."""
_HISTORIES = ("/ag-ui", "/anthropic/", "/openai/")
"""Paths of other protocols, whose clients send all messages again each time, pictures and all."""
_PARSED_AT_ONCE_BYTES = 65_536
"""A larger body is parsed in a thread; streams would wait for it on the loop."""
MAX_UPLOADS = 20
"""The most files in one form."""
_QUOTE = "%22"
"""How browsers write a quotation mark in the name of a form's file; they escape no percent sign."""
_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_BOM = b"\xef\xbb\xbf"


class BodyLimit:
    """Refuses bodies over `max_bytes`, by their `Content-Length` and by their real size.

    A form that is sent to one of `FORMS`, and what is sent to a path of another protocol, may have
    `max_upload_bytes` instead.

    Refuses a body with two framings as well: a proxy in front may trust the other one and take a
    part of the body for the next request.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, max_upload_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request and count its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        if "content-length" in headers and "transfer-encoding" in headers:
            raise MalformedRequest("A body may have a length or come in pieces, not both.")
        if not (length.isascii() and length.isdigit()):
            raise UnprocessableEntity("The Content-Length is not a number.")
        is_upload = scope["path"] in FORMS and _media_type(headers) == _FORM
        is_large = is_upload or scope["path"].startswith(_HISTORIES)
        max_bytes = self._max_upload_bytes if is_large else self._max_bytes
        if len(length.lstrip("0")) > len(str(max_bytes)) or int(length) > max_bytes:
            raise _too_large(max_bytes)
        if scope["method"] not in _READING_METHODS and headers.get("content-type"):
            # another site can send a form without a body, too; `HostGuard` has refused that for
            # uploads
            check_type(headers, _FORM if scope["path"] in FORMS else _JSON)
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > max_bytes:
                raise _too_large(max_bytes)
            return message

        await self._app(scope, counted, send)


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(
        f"The body is larger than the limit of {max_bytes} bytes.",
        details={"max_bytes": max_bytes},
    )


async def read_body(request: Request, model: type[BodyT], deadline_s: float) -> BodyT | None:
    """Read the body as JSON and validate it as `model`; return None if it is empty.

    Keep its SHA-256 as `request.state.body_digest`; the body itself cannot be read again.

    Raise `UnprocessableEntity` if it is not valid, `TooLarge` if it is over the limit,
    `BodyTimeout` if it did not arrive within `deadline_s`.
    """
    chunks = await read_chunks(request, deadline_s)
    if not any(chunks):
        return None
    check_type(request.headers)
    if sum(map(len, chunks)) > _PARSED_AT_ONCE_BYTES:
        parsed = await anyio.to_thread.run_sync(_parse_and_clear, chunks, model)
    else:
        parsed = _parse_and_clear(chunks, model)
    if isinstance(parsed, UnprocessableEntity):
        raise parsed
    request.state.body_digest, body = parsed
    return body


async def read_chunks(request: Request, deadline_s: float) -> list[bytes]:
    """Read the body as it is, in pieces.

    Raise `TooLarge` if it is over the limit, `BodyTimeout` if it did not arrive within
    `deadline_s`.
    """
    try:
        with anyio.fail_after(deadline_s):
            return [chunk async for chunk in request.stream()]
    except TimeoutError:
        raise BodyTimeout("The body did not arrive in time.") from None


def _parse_and_clear(
    chunks: list[bytes], model: type[BodyT]
) -> tuple[bytes, BodyT] | UnprocessableEntity:
    """Return the body's digest and the body, or why it is not valid; empty `chunks`.

    To join 20 MB, and to free them, takes milliseconds: here, not on the loop.
    """
    raw = b"".join(chunks)
    chunks.clear()
    try:
        return sha256(raw).digest(), parse_body(raw, model)
    except UnprocessableEntity as exc:
        exc.__context__ = None
        return exc.with_traceback(None)


def check_type(headers: Headers, wanted: str = _JSON) -> None:
    """Refuse other types: another site's page can make a browser send some without a preflight
    request.
    """
    if _media_type(headers) != wanted or len(headers.getlist("content-type")) != 1:
        raise UnprocessableEntity(f"Send the body as {wanted}, with that Content-Type.")


def _media_type(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


@asynccontextmanager
async def read_uploads(
    request: Request, deadline_s: float, *, max_fields: int = 0
) -> AsyncIterator[list[Upload]]:
    """Read the body as a form, and return its files that have names; they are open in the block.

    Raise `UnprocessableEntity` if it is no form, or holds something else than 1 to `MAX_UPLOADS`
    named files and `max_fields` fields; else as `read_body` does.
    """
    check_type(request.headers, _FORM)
    try:
        with anyio.fail_after(deadline_s):
            form = await request.form(max_files=MAX_UPLOADS, max_fields=max_fields)
    except TimeoutError:
        raise BodyTimeout("The body did not arrive in time.") from None
    except HTTPException:
        raise UnprocessableEntity(
            f"The body must be a form of 1 to {MAX_UPLOADS} files and nothing else."
        ) from None
    try:
        yield [
            Upload(name=value.filename.replace(_QUOTE, '"'), content=value.file)
            for _, value in form.multi_items()
            if isinstance(value, UploadFile) and value.filename
        ]
    finally:
        await form.close()


def parse_body(raw: bytes, model: type[BodyT]) -> BodyT:
    """Parse JSON and validate it as `model`. The last of duplicate keys counts.

    Raise `UnprocessableEntity` if it is not valid.
    """
    value: Any = None
    try:
        value = _json_value(raw)
        _refuse_invalid_text(value)
        return model.model_validate(value)
    except RecursionError:
        raise UnprocessableEntity("The body is nested too deeply.") from None
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_input=False)
        raise validation_error(errors, value) from None


def _json_value(raw: bytes) -> Any:
    if raw.startswith(_BOM):
        raise UnprocessableEntity("The body begins with a byte order mark; send plain UTF-8.")
    try:
        return json.loads(raw.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise UnprocessableEntity("The body is not UTF-8.") from None
    except json.JSONDecodeError as exc:
        raise UnprocessableEntity(
            f"The body is not JSON: line {exc.lineno}, column {exc.colno} cannot be read."
        ) from None
    except ValueError:
        raise UnprocessableEntity("The body holds a number that cannot be read.") from None


def _refuse_invalid_text(value: Any, loc: tuple[str, ...] = ()) -> None:
    """Refuse NUL, at which databases and files cut a text, and lone surrogates, which have no
    UTF-8.
    """
    if isinstance(value, dict):
        for name, item in value.items():
            _refuse_invalid_text(name, loc)
            _refuse_invalid_text(item, (*loc, name))
    elif isinstance(value, list):
        for item in value:
            _refuse_invalid_text(item, loc)
    elif isinstance(value, str) and (what := _invalid_part(value)):
        name = field_name(loc)
        raise bad_field(name, f"`{name}` holds {what}, which is not valid text.")


def _invalid_part(text: str) -> str | None:
    """Return what makes a text invalid, if anything.

    Encoding a megabyte takes less than 1 ms, an expression that looks for surrogates takes 7, and
    meanwhile no other thread computes.
    """
    if "\0" in text:
        return "NUL"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "a lone surrogate"
    return None


def _refuse_constant(name: str) -> NoReturn:
    raise UnprocessableEntity(f"The body is not JSON, which has no number {name}.")
