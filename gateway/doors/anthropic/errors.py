"""Errors in the shape of Anthropic's clients, with our own fields beside theirs.

These clients repeat a request after 409: what cannot be done in the present state is 400 here.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, Literal

from gateway.errors import GatewayError
from gateway.http.openapi import Error
from gateway.http.schemas import Body


class AnthropicErrorContent(Error):
    """What went wrong, in both of their words."""

    type: str


class AnthropicError(Body):
    """The body of every error response of this door."""

    type: Literal["error"]
    error: AnthropicErrorContent
    request_id: str


_KINDS: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.NOT_FOUND: "not_found_error",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "request_too_large",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
    HTTPStatus.SERVICE_UNAVAILABLE: "overloaded_error",
}
_AS_BAD_REQUEST: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY})


def write_anthropic_error(error: GatewayError, request_id: str) -> tuple[int, dict[str, Any]]:
    """Return the status and the body of an error."""
    is_fault = error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    kind = _KINDS.get(error.status, "api_error" if is_fault else "invalid_request_error")
    own = error.body(request_id)["error"]
    status = HTTPStatus.BAD_REQUEST if error.status in _AS_BAD_REQUEST else error.status
    body = {"type": "error", "error": {"type": kind, **own}, "request_id": request_id}
    return status, body
