from http import HTTPStatus

from gateway import errors
from gateway.errors import Busy, GatewayError, NotFound, Overloaded, StartError

KINDS = {
    "UnprocessableEntity": ("invalid_request", 422, False),
    "TooLarge": ("body_too_large", 413, False),
    "Unauthorized": ("unauthorised", 401, False),
    "Forbidden": ("forbidden", 403, False),
    "NotFound": ("not_found", 404, False),
    "Conflict": ("conflict", 409, False),
    "Busy": ("conversation_busy", 409, True),
    "Overloaded": ("overloaded", 503, True),
    "ShuttingDown": ("shutting_down", 503, True),
    "NotStored": ("storage_unavailable", 503, False),
    "WorkspaceUnavailable": ("workspace_unavailable", 503, True),
    "GatewayError": ("internal_error", 500, False),
}


def test_each_error_has_the_status_of_the_contract() -> None:
    found = {
        name: (kind.code, int(kind.status), kind.retryable)
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, GatewayError)
    }
    assert found == KINDS
    assert all(name in (errors.__doc__ or "") for name in KINDS)


def test_the_body_is_the_one_shape() -> None:
    details = {"field": "message"}
    fault = NotFound("There is none.", code="unknown_event", details=details, retry_after_s=3)
    assert fault.body("req_1") == {
        "error": {
            "code": "unknown_event",
            "message": "There is none.",
            "retryable": False,
            "request_id": "req_1",
            "details": {"field": "message"},
        }
    }
    assert str(fault) == "There is none."
    assert fault.status is HTTPStatus.NOT_FOUND
    fault.body("x")["error"]["details"]["field"] = "changed"
    assert details == {"field": "message"}
    assert Busy("b").body("r")["error"]["details"] == {}
    assert Overloaded("o", retry_after_s=5).retry_after_s == 5


def test_a_server_that_cannot_start_is_no_answer_to_a_request() -> None:
    assert not issubclass(StartError, GatewayError)
