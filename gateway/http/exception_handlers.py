"""What only HTTP can get wrong, and how anything that was raised becomes the one error shape.

Nothing of an exception's own text reaches a client; the server's log has it under the request id.
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from gateway.errors import GatewayError, NotFound
from gateway.http.json_response import JsonResponse
from gateway.http.validation_errors import validation_error
from memory.errors import StoreDamaged, StoreUnavailable

_log = logging.getLogger(__name__)

_RETRY_AFTER_S = 5


class MethodNotAllowed(GatewayError):
    """The route is there, but not for this method."""

    code = "method_not_allowed"
    status = HTTPStatus.METHOD_NOT_ALLOWED


class MalformedRequest(GatewayError):
    """This is not HTTP, or HTTP that two readers could understand differently."""

    code = "malformed_request"
    status = HTTPStatus.BAD_REQUEST


class BodyTimeout(GatewayError):
    """The body did not arrive in time."""

    code = "body_timeout"
    status = HTTPStatus.REQUEST_TIMEOUT
    retryable = True


class StorageUnavailable(GatewayError):
    """The database cannot be read or written at present."""

    code = "storage_unavailable"
    status = HTTPStatus.SERVICE_UNAVAILABLE
    retryable = True


class StorageDamaged(GatewayError):
    """What the database holds cannot be understood; only whoever keeps the server can help."""

    code = "storage_unavailable"
    status = HTTPStatus.SERVICE_UNAVAILABLE


class MemoryNotOpened(GatewayError):
    """Memory could not be opened when the server started; only a restart can help."""

    code = "storage_unavailable"
    status = HTTPStatus.SERVICE_UNAVAILABLE


def to_gateway_error(exc: Exception, request_id: str) -> GatewayError:
    """Say in words for the client what was raised; what is our own failure is logged."""
    match exc:
        case GatewayError():
            return exc
        case RequestValidationError():
            return validation_error(exc.errors())
        case HTTPException(status_code=HTTPStatus.NOT_FOUND):
            return NotFound("There is no such route.")
        case StoreDamaged():
            _log.error("storage_damaged", exc_info=exc, extra={"request_id": request_id})
            return StorageDamaged(
                "The server's storage is damaged, and trying again will not help: "
                "its file has to be replaced by a copy, or mended."
            )
        case StoreUnavailable():
            _log.error("storage_unavailable", exc_info=exc, extra={"request_id": request_id})
            return StorageUnavailable(
                "The server's storage cannot be used right now; try again in a moment.",
                retry_after_s=_RETRY_AFTER_S,
            )
        case _:
            pass
    _log.error("request_failed", exc_info=exc, extra={"request_id": request_id})
    return GatewayError(
        "The server failed on this request; its log has the reason under the request id."
    )


def error_response(
    fault: GatewayError, request_id: str, headers: Mapping[str, str] | None = None
) -> JsonResponse:
    """Write a fault as the response of the contract."""
    extra = dict(headers or {})
    if fault.retry_after_s is not None:
        extra["Retry-After"] = str(fault.retry_after_s)
    if not fault.retryable:  # clients of other services repeat every 409 and 5xx unless told
        extra["X-Should-Retry"] = "false"
    if fault.status == HTTPStatus.UNAUTHORIZED:
        extra["WWW-Authenticate"] = "Bearer"
    if fault.status == HTTPStatus.BAD_REQUEST:  # where the next request begins is not certain
        extra["Connection"] = "close"
    return JsonResponse(error_body(fault, request_id), status_code=fault.status, headers=extra)


def error_body(fault: GatewayError, request_id: str) -> dict[str, Any]:
    """Give the error shape, the same in a body and in an `error` event."""
    body = fault.body(request_id)
    if fault.retry_after_s is not None:  # an event has no header to say it in
        body["error"]["details"]["retry_after_s"] = fault.retry_after_s
    return body
