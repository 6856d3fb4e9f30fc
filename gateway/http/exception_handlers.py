"""Exceptions to responses: the errors that only HTTP knows, and the one error shape.

A client never sees the text of an unexpected exception; the server's log has it under the request
id.
"""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from gateway.errors import GatewayError, NotFound
from gateway.http.json_response import JsonResponse
from gateway.http.parameters import validation_error
from memory.errors import StoreDamaged, StoreUnavailable

_log = logging.getLogger(__name__)

RETRY_AFTER_S = 5


class MethodNotAllowed(
    GatewayError, code="method_not_allowed", status=HTTPStatus.METHOD_NOT_ALLOWED
):
    """The route does not take this method."""


class MalformedRequest(GatewayError, code="malformed_request", status=HTTPStatus.BAD_REQUEST):
    """The request is not HTTP/1.1, or is ambiguous."""


class BodyTimeout(
    GatewayError, code="body_timeout", status=HTTPStatus.REQUEST_TIMEOUT, retryable=True
):
    """The body did not arrive in time."""


class StorageUnavailable(
    GatewayError, code="storage_unavailable", status=HTTPStatus.SERVICE_UNAVAILABLE, retryable=True
):
    """The database cannot be read or written now."""


class StorageFailed(
    GatewayError, code="storage_unavailable", status=HTTPStatus.SERVICE_UNAVAILABLE
):
    """The database is damaged, or memory could not be opened; a retry does not help."""


def to_gateway_error(exc: Exception, request_id: str) -> GatewayError:
    """Return an exception as an error for the client; failures of the server are logged."""
    match exc:
        case GatewayError():
            return exc
        case RequestValidationError():
            return validation_error(exc.errors())
        case HTTPException(status_code=HTTPStatus.NOT_FOUND):
            return NotFound("There is no such route.")
        case StoreUnavailable():
            event = "storage_damaged" if isinstance(exc, StoreDamaged) else "storage_unavailable"
            _log.error(event, exc_info=exc, extra={"request_id": request_id})
            return storage_error(exc)
        case _:
            _log.error("request_failed", exc_info=exc, extra={"request_id": request_id})
            return GatewayError(
                "The server failed on this request; its log has the reason under the request id."
            )


def storage_error(exc: StoreUnavailable) -> GatewayError:
    """Return a failure of the store as an error for the client; nothing is logged."""
    if isinstance(exc, StoreDamaged):
        return StorageFailed(
            "The server's storage is damaged, and a retry does not help. "
            "Its file must be restored from a backup."
        )
    return StorageUnavailable(
        "The server's storage cannot be used right now; try again in a moment.",
        retry_after_s=RETRY_AFTER_S,
    )


ErrorWriter = Callable[[GatewayError, str], tuple[int, Mapping[str, Any]]]
"""Returns the status and the body of an error in the shape of a protocol."""


def write_error(error: GatewayError, request_id: str) -> tuple[int, Mapping[str, Any]]:
    """Return the status and the body of an error in our own shape."""
    return error.status, error.body(request_id)


def error_response(
    error: GatewayError,
    request_id: str,
    headers: Mapping[str, str] | None = None,
    *,
    write: ErrorWriter = write_error,
) -> JsonResponse:
    """Return the response for an error."""
    extra = {**error.headers, **(headers or {})}
    if error.retry_after_s is not None:
        extra["Retry-After"] = str(error.retry_after_s)
    if not error.retryable:  # otherwise clients of other services repeat every 409 and 5xx
        extra["X-Should-Retry"] = "false"
    if error.status == HTTPStatus.UNAUTHORIZED:
        extra["WWW-Authenticate"] = "Bearer"
    if error.status == HTTPStatus.BAD_REQUEST:  # the start of the next request is not certain
        extra["Connection"] = "close"
    status, body = write(error, request_id)
    return JsonResponse(body, status_code=status, headers=extra)
