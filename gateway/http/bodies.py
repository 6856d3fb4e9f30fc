"""Request bodies: bounded in size and time before they are read, then JSON by the letter.

`BodyLimit` stands before everything that reads: a body that says it is too large is refused unread,
one that does not say is counted as it comes. `read_body` is how routes read.
"""

import json
from typing import Any, NoReturn, TypeVar

import anyio
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.errors import TooLarge, UnprocessableEntity
from gateway.http.exception_handlers import BodyTimeout, MalformedRequest
from gateway.http.schemas import Body
from gateway.http.validation_errors import validation_error

BodyT = TypeVar("BodyT", bound=Body)

_JSON = "application/json"
_READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_BOM = b"\xef\xbb\xbf"


class BodyLimit:
    """Refuses bodies over `max_bytes`, by what they say and by what they are.

    Also one that says in two ways where it ends: a proxy in front may believe the other one, and would
    take a part of it for the next request.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through with its body counted."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        said = headers.get("content-length", "0")
        if "content-length" in headers and "transfer-encoding" in headers:
            raise MalformedRequest("A body may have a length or come in pieces, not both.")
        if not (said.isascii() and said.isdigit()):
            raise UnprocessableEntity("The Content-Length is not a number.")
        if len(said.lstrip("0")) > len(str(self._max_bytes)) or int(said) > self._max_bytes:
            raise self._too_large()
        if scope["method"] not in _READING_METHODS and headers.get("content-type"):
            _check_type(headers)  # a form of another site can be sent with no body at all, too
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._max_bytes:
                raise self._too_large()
            return message

        await self._app(scope, counted, send)

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"The body is larger than the {self._max_bytes} bytes that are allowed.",
            details={"max_bytes": self._max_bytes},
        )


async def read_body(request: Request, model: type[BodyT], deadline_s: float) -> BodyT:
    """Read the body as JSON that fits `model`.

    Raises:
        UnprocessableEntity: it does not fit; one sentence says where.
        TooLarge: it is over the limit.
        BodyTimeout: it did not arrive within `deadline_s`.
    """
    found = await read_optional_body(request, model, deadline_s)
    if found is None:
        raise UnprocessableEntity("The body is empty; send a JSON object.")
    return found


async def read_optional_body(
    request: Request, model: type[BodyT], deadline_s: float
) -> BodyT | None:
    """Read the body as `read_body` does; None where there is none."""
    try:
        with anyio.fail_after(deadline_s):
            raw = await request.body()
    except TimeoutError:
        raise BodyTimeout("The body did not arrive in time.") from None
    if not raw:
        return None
    _check_type(request.headers)
    return parse_body(raw, model)


def _check_type(headers: Headers) -> None:
    """Refuse what a page elsewhere can make a browser send without being asked first."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != _JSON or len(headers.getlist("content-type")) != 1:
        raise UnprocessableEntity(f"Send the body as {_JSON}, with that Content-Type.")


def parse_body(raw: bytes, model: type[BodyT]) -> BodyT:
    """Read JSON that fits `model`; duplicate keys: the last one counts.

    Raises:
        UnprocessableEntity: it does not fit; one sentence says where.
    """
    try:
        return model.model_validate(_json_value(raw))
    except ValidationError as exc:
        raise validation_error(exc.errors(include_url=False, include_input=False)) from None


def _json_value(raw: bytes) -> Any:
    if raw.startswith(_BOM):
        raise UnprocessableEntity("The body begins with a byte order mark; send plain UTF-8.")
    try:
        return json.loads(raw.decode(), parse_constant=_no_such_number)
    except UnicodeDecodeError:
        raise UnprocessableEntity("The body is not UTF-8.") from None
    except RecursionError:
        raise UnprocessableEntity("The body is nested too deeply.") from None
    except json.JSONDecodeError as exc:
        raise UnprocessableEntity(
            f"The body is not JSON: line {exc.lineno}, column {exc.colno} cannot be read."
        ) from None
    except ValueError:
        raise UnprocessableEntity("The body holds a number that cannot be read.") from None


def _no_such_number(name: str) -> NoReturn:
    raise UnprocessableEntity(f"The body is not JSON: there is no number {name} in it.")
