"""Choose the sentence for a failure of the model's service.

Decided by the fields that the agent program reports (the kind of error, the HTTP status, the terminal
reason). Its text is never shown; only an error code in parentheses is read from it.
"""

import re

from gateway.engine.events import RunFinished
from gateway.turns.evidence import Evidence

Sentence = tuple[str, dict[str, object]]
"""A key of `sentences` and values for its placeholders."""

_BY_KIND = {
    "billing_error": "api_credit",
    "authentication_failed": "api_401",
    "model_not_found": "api_404",
    "rate_limit": "api_429",
    "invalid_request": "api_400",
}
_BY_STATUS = {400: "api_400", 401: "api_401", 402: "api_credit", 403: "api_403", 404: "api_404"}
_BY_STATUS |= {429: "api_429", 503: "api_overloaded", 529: "api_overloaded"}
_SERVER_ERRORS = range(500, 600)
_TOO_MANY_REQUESTS = 429
_LONG_WAIT_S = 10.0
_NETWORK_CODE = re.compile(r"\((E[A-Z]+|[A-Z]+(?:_[A-Z]+)+)\)")
_CONNECTION_CUT = frozenset({"", "ECONNRESET", "ECONNABORTED", "EPIPE"})


def api_status(evidence: Evidence) -> int | None:
    """Return the HTTP status with which the model's service failed last, if one was reported."""
    finish = evidence.finish
    if isinstance(finish, RunFinished) and finish.api_error_status:
        return finish.api_error_status
    if evidence.model_failure is not None or evidence.retry is None:
        return None
    return evidence.retry.status


def describe_service_failure(evidence: Evidence, silence_s: float) -> Sentence:
    """Choose the sentence for a turn that the model's service ended."""
    if evidence.stopped_by == "model_timeout":
        return "model_timeout", {"seconds": f"{silence_s:g}"}
    if evidence.prompt_too_long:
        return "api_too_long", {}
    if evidence.context_full:
        return "api_context_window", {}
    kind = evidence.model_failure.kind if evidence.model_failure else ""
    status = api_status(evidence)
    if kind == "billing_error":
        return "api_credit", {}
    if status is None:
        return _without_status(evidence, kind)
    if status == _TOO_MANY_REQUESTS and evidence.retry is not None:
        wait_s = evidence.retry.delay_ms / 1000
        if evidence.stopped_by is not None and wait_s >= _LONG_WAIT_S:
            return "api_429_wait", {"seconds": f"{wait_s:g}"}
    if status in _BY_STATUS:
        return _BY_STATUS[status], {"status": status, "model": evidence.model}
    return "api_5xx" if status in _SERVER_ERRORS else "api_other", {"status": status}


def _without_status(evidence: Evidence, kind: str) -> Sentence:
    """Choose for a failure without an HTTP status: of the network, or a 200 that is no answer."""
    if kind in _BY_KIND:
        return _BY_KIND[kind], {"model": evidence.model}
    if kind == "unknown":  # the connection was there, and so was a body
        return "api_not_messages", {}
    found = _NETWORK_CODE.search(evidence.model_failure.text if evidence.model_failure else "")
    code = found[1] if found else ""
    key = "api_connection" if code in _CONNECTION_CUT else "api_unreachable"
    return key, {"code": f" ({code})" if code else ""}
