"""Errors of requests, with messages for the person who sent them.

    GatewayError
      UnprocessableEntity · TooLarge · Unauthorized · Forbidden · NotFound · Conflict (Busy) ·
      Overloaded · QuotaUsed (QuotaInUse) · ShuttingDown (KeptAtShutDown) · NotStored ·
      WorkspaceUnavailable

A turn that went wrong is not an error: its turn result reports it. Messages never contain exception
text, stacks or paths of the server; the server's log has those under the same request id.
"""

import errno
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar, Final


class GatewayError(Exception):
    """The request could not be served."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR
    retryable: ClassVar[bool] = False

    def __init_subclass__(
        cls, *, code: str, status: HTTPStatus | None = None, retryable: bool = False
    ) -> None:
        """Set what clients see of this error; `status` None: as the class above."""
        cls.code, cls.status, cls.retryable = code, status or cls.status, retryable

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after_s: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Initialise; `headers` are further headers of the response."""
        super().__init__(message)
        self.message = message
        self.specific_code = code or self.code
        self.details: Mapping[str, Any] = details or {}
        self.retry_after_s = retry_after_s
        self.headers: Mapping[str, str] = headers or {}

    def body(self, request_id: str) -> dict[str, Any]:
        """Return the body of an error response, or of an `error` event, which has no headers."""
        retry = {} if self.retry_after_s is None else {"retry_after_s": self.retry_after_s}
        return {
            "error": {
                "code": self.specific_code,
                "message": self.message,
                "retryable": self.retryable,
                "request_id": request_id,
                "details": {**self.details, **retry},
            }
        }


class UnprocessableEntity(
    GatewayError, code="invalid_request", status=HTTPStatus.UNPROCESSABLE_ENTITY
):
    """A body or parameter does not validate."""


class TooLarge(GatewayError, code="body_too_large", status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
    """The body is over the limit."""


class Unauthorized(GatewayError, code="unauthorised", status=HTTPStatus.UNAUTHORIZED):
    """Tokens are configured and the request carries none that is known."""


class Forbidden(GatewayError, code="forbidden", status=HTTPStatus.FORBIDDEN):
    """The request comes from a foreign web page or names a foreign host."""


class NotFound(GatewayError, code="not_found", status=HTTPStatus.NOT_FOUND):
    """The thing does not exist, or belongs to another user."""


class Conflict(GatewayError, code="conflict", status=HTTPStatus.CONFLICT):
    """The request cannot be done in the present state."""


class Busy(Conflict, code="conversation_busy", retryable=True):
    """A turn is running in the conversation and the request asked not to wait."""


class Overloaded(
    GatewayError, code="overloaded", status=HTTPStatus.SERVICE_UNAVAILABLE, retryable=True
):
    """Too many turns at once."""


class QuotaUsed(GatewayError, code="quota_used", status=HTTPStatus.TOO_MANY_REQUESTS):
    """The user has used what one user may."""


class QuotaInUse(QuotaUsed, code="quota_used", retryable=True):
    """The user's own turns use what one user may; the end of one of them frees it."""


class ShuttingDown(
    GatewayError, code="shutting_down", status=HTTPStatus.SERVICE_UNAVAILABLE, retryable=True
):
    """The server shuts down and takes nothing new."""


class KeptAtShutDown(ShuttingDown, code="shutting_down"):
    """The server shuts down with the message stored; a retry would repeat the work."""


class NotStored(GatewayError, code="storage_unavailable", status=HTTPStatus.SERVICE_UNAVAILABLE):
    """The message is stored, its result not yet or out of reach; a retry would repeat the work."""


class WorkspaceUnavailable(
    GatewayError,
    code="workspace_unavailable",
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    retryable=True,
):
    """The workspace cannot be written now."""


class StartError(Exception):
    """The server cannot start: one sentence for the person at the terminal."""


class SettingsError(StartError):
    """A setting is unknown, or its value or what it names cannot be used: no restart helps."""


_LASTING: Final = {
    errno.EACCES,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}


def start_error(sentence: str, exc: OSError) -> StartError:
    """Return the error of something that a setting names and that the system refuses: a
    `SettingsError`, unless a restart may help, as with a full disk or a port in use.
    """
    return (SettingsError if exc.errno in _LASTING else StartError)(sentence)
