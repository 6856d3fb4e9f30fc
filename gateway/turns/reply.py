"""The reply of a turn: outcome, stop reason and text, decided from evidence.

Order of precedence: what ended the turn from outside (the model's service, a crash, a stop, a
limit), then text, then failed tools, then a run that broke off, and last "finished without text".
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.engine.events import ModelRetrying, RunFinished
from gateway.relay.reports import ServiceReport, meant_wait
from gateway.turns.evidence import SERVICE_FAILURES, Evidence, Notice, StopReason, ToolUse
from gateway.turns.sentences import Language, describe_memory_refusal, say
from memory.recall.tools import SERVER

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
_LONG_WAIT_S = 10.0
"""Longer than the agent program waits by itself."""
_OF_MEMORY = f"mcp__{SERVER}__"
_NETWORK_CODE = re.compile(r"\((E[A-Z]+|[A-Z]+(?:_[A-Z]+)+)\)")
_CONNECTION_CUT = frozenset({"", "ECONNRESET", "ECONNABORTED", "EPIPE"})


def api_status(evidence: Evidence) -> int | None:
    """Return the HTTP status with which the model's service failed last, if one was reported."""
    if evidence.service is not None:
        return evidence.service.status
    finish = evidence.finish
    if isinstance(finish, RunFinished) and finish.api_error_status:
        return finish.api_error_status
    if evidence.model_failure is not None or evidence.retry is None:
        return None
    return evidence.retry.status


def report_of(retry: ModelRetrying) -> ServiceReport:
    """Return what the agent program's own words say of a failure that the relay did not see."""
    wait_s = retry.delay_ms / 1000
    return ServiceReport(
        kind="refused" if retry.status else "cut",
        status=retry.status,
        retry_after_s=meant_wait(wait_s) if wait_s >= _LONG_WAIT_S and retry.status else None,
    )


def describe_failure(report: ServiceReport, language: Language) -> str:
    """Return what the relay saw of a failure in a few words, without a full stop."""
    match report.kind:
        case "refused" if report.status in {429, 529}:
            what = say(language, f"what_{report.status}")
        case "refused" | "redirected":
            what = say(language, "what_status", status=report.status)
        case "not_messages" | "relay_lost":
            what = say(language, f"what_{report.kind}")
        case _ if report.detail in _CONNECTION_CUT:
            what = say(language, "what_connection")
        case _:
            what = say(language, "what_unreachable", code=report.detail)
    if report.retry_after_s:
        wait = describe_duration(report.retry_after_s, language)
        what = say(language, "what_wait", what=what, wait=wait)
    return what


def describe_duration(seconds: float, language: Language) -> str:
    """Return a duration in whole seconds, minutes or hours, rounded up."""
    for unit, length_s in (("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length_s:
            return say(language, unit, count=math.ceil(seconds / length_s))
    return say(language, "seconds", count=math.ceil(seconds))


def describe_service_failure(evidence: Evidence, ending: "Ending") -> Sentence:
    """Choose the sentence for a turn that the model's service ended."""
    is_down = evidence.service is not None and evidence.service.kind == "relay_lost"
    if evidence.stopped_by == "model_timeout" and not is_down:
        return "model_timeout", {"seconds": f"{ending.silence_s:g}"}
    if evidence.context_full:
        return "api_too_long" if evidence.prompt_too_long else "api_context_window", {}
    kind = evidence.model_failure.kind if evidence.model_failure else ""
    status, seen = api_status(evidence), evidence.service
    if kind == "billing_error":
        return "api_credit", {}
    if seen is not None and seen.kind == "redirected":
        place = f" ({seen.detail})" if seen.detail else ""
        return "api_redirected", {"status": status, "place": place}
    if status is None:
        return _without_status(evidence, kind)
    told = seen or (report_of(evidence.retry) if evidence.retry else None)
    if told is not None and (told.retry_after_s or 0) >= _LONG_WAIT_S:
        return "api_wait", {"what": describe_failure(told, ending.language)}
    if status in _BY_STATUS:
        return _BY_STATUS[status], {"status": status, "model": evidence.model}
    return "api_5xx" if status in _SERVER_ERRORS else "api_other", {"status": status}


def _without_status(evidence: Evidence, kind: str) -> Sentence:
    """Choose for a failure without an HTTP status: of the network, or a 200 that is no answer."""
    seen = evidence.service
    if seen is None and kind in _BY_KIND:
        return _BY_KIND[kind], {"model": evidence.model}
    if seen.kind == "not_messages" if seen else kind == "unknown":
        return "api_not_messages", {}  # the connection was there, and so was a body
    if seen is not None and seen.kind == "relay_lost":
        return "api_relay_lost", {}
    if seen is not None:
        code = seen.detail
    else:
        found = _NETWORK_CODE.search(evidence.model_failure.text if evidence.model_failure else "")
        code = found[1] if found else ""
    if "CERTIFICATE" in code or "SSL" in code or "TLS" in code:
        return "api_tls", {"code": code}
    key = "api_connection" if code in _CONNECTION_CUT else "api_unreachable"
    return key, {"code": f" ({code})" if code else ""}


Outcome = Literal[
    "answered",
    "answered_with_failures",
    "tool_failed",
    "interrupted",
    "stopped",
    "engine_failed",
    "empty",
]

Cause = Literal[
    "left",
    "shutdown",
    "crashed",
    "database_lost",
    "unavailable",
    "untrusted",
    "unjudged",
    "internal",
    "waiting",
]
"""Why a turn ended, if the stop reason alone does not say it."""

_ERROR_CHARS = 300
_STOP_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_SHOWN_TOOLS = 6

_SUBTYPE_STOPS: dict[str, StopReason] = {
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "budget",
}
_LIMITS: frozenset[StopReason] = frozenset({"doom_loop", "max_turns", "timeout", "budget"})
_INTERRUPTS: frozenset[StopReason | None] = frozenset(
    {"user_interrupt", "policy_interrupt", "shutdown"}
)
_FAULT_KEYS: Mapping[Cause | None, str] = {
    "crashed": "crashed",
    "database_lost": "database_lost",
    "internal": "internal",
    "unavailable": "engine_unavailable",
    "untrusted": "workspace_untrusted",
    "unjudged": "workspace_unjudged",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the text about an ending needs besides the evidence."""

    language: Language
    log_file: str
    cause: Cause | None = None
    untrusted: str = ""
    """For the causes `untrusted` and `unjudged`: what keeps agents from starting, in words."""
    timeout_s: float = 0
    silence_s: float = 0
    doom_loop_threshold: int = 0


def stop_reason_of(evidence: Evidence, ending: Ending) -> StopReason:
    """Return why the turn ended."""
    if ending.cause == "waiting":
        return "waiting"
    if evidence.stopped_by is not None:
        return evidence.stopped_by
    if evidence.context_full:
        return "context_window"
    if evidence.model_gave_up:
        return "api_error"
    if evidence.lost or ending.cause in _FAULT_KEYS:
        return "engine_crash"
    finish = evidence.finish
    if isinstance(finish, RunFinished) and finish.subtype in _SUBTYPE_STOPS:
        return _SUBTYPE_STOPS[finish.subtype]
    if broke_off(evidence):
        return "policy_interrupt" if evidence.denials else "engine_crash"
    return "refusal" if evidence.refused else "end_turn"


def outcome_of(evidence: Evidence, ending: Ending) -> Outcome:
    """Return the one outcome that the evidence supports."""
    reason = stop_reason_of(evidence, ending)
    if evidence.stopped_by in _INTERRUPTS or ending.cause == "waiting":
        return "interrupted"
    if reason in _LIMITS:
        return "stopped"
    if _service_failed(evidence, reason) or evidence.lost or ending.cause in _FAULT_KEYS:
        return "engine_failed"
    failed = bool(failures(evidence))
    if evidence.text:
        return "answered_with_failures" if failed else "answered"
    if failed:
        return "tool_failed"
    return "interrupted" if broke_off(evidence) else "empty"


def _service_failed(evidence: Evidence, reason: StopReason) -> bool:
    """Return whether the model's service ended the turn; an answer cut by a full context is an
    answer.
    """
    if reason == "context_window":
        return evidence.prompt_too_long or evidence.last_was_tool or not evidence.text
    return reason in SERVICE_FAILURES


def build_reply_text(evidence: Evidence, ending: Ending) -> str:
    """Return the reply for the person; never empty, never another program's error text."""
    closing = closing_text(evidence, ending)
    return "\n\n".join(text for text in (evidence.text, closing) if text)


def closing_text(evidence: Evidence, ending: Ending) -> str:
    """Return the gateway's own words at the end of the reply; empty if the model's text stands
    alone.
    """
    outcome = outcome_of(evidence, ending)
    if outcome in {"answered", "answered_with_failures"}:
        return ""
    return _completion(evidence, ending, outcome)


def failures(evidence: Evidence) -> list[ToolUse]:
    """List the calls that did not succeed."""
    return [use for use in evidence.tools.values() if use.status != "ok"]


def describe_tools(uses: list[ToolUse], language: Language) -> str:
    """Describe the results of some calls in one line."""
    lines = [describe_tool(use, language) for use in uses[:_SHOWN_TOOLS]]
    if len(uses) > _SHOWN_TOOLS:
        lines.append("…")
    return ("；" if language == "zh" else "; ").join(lines)


def describe_tool(use: ToolUse, language: Language) -> str:
    """Describe the result of one call."""
    told = use.error or ""
    if use.name.startswith(_OF_MEMORY):
        told = describe_memory_refusal(told, language)
    error = _short(told) or say(language, "no_reason")
    name = _shown_name(use.name)
    summary = f"{name}: {use.summary}" if use.summary else name
    kind = use.status or "unknown" if use.has_begun or use.error is None else "not_begun"
    return say(language, f"tool_line_{kind}", summary=summary, error=error)


def _shown_name(tool: str) -> str:
    """Return a tool's name for people: `tool` for `mcp__server__tool`."""
    return tool.rpartition("__")[2] if tool.startswith("mcp__") else tool


def _short(error: str | None) -> str:
    """Return an error's text as part of a sentence: one line, no full stop."""
    line = " ".join((error or "").split())
    short = line if len(line) <= _ERROR_CHARS else f"{line[: _ERROR_CHARS - 1]}…"
    return short.rstrip(" .。")


def broke_off(evidence: Evidence) -> bool:
    """Return whether the agent itself reports that the run broke off."""
    return (
        isinstance(evidence.finish, RunFinished)
        and not evidence.refused
        and not evidence.cut_off
        and not evidence.context_full
        and evidence.unusual_stop is None
        and evidence.finish.subtype not in _SUBTYPE_STOPS
        and (evidence.finish.subtype == "error_during_execution" or evidence.finish.is_error)
    )


def _done(uses: Iterable[ToolUse], language: Language) -> str:
    which = describe_tools(list(uses), language)
    return say(language, "done_so_far", which=which) if which else ""


def _completion(evidence: Evidence, ending: Ending, outcome: Outcome) -> str:
    language = ending.language
    if outcome == "tool_failed":
        failed = failures(evidence)
        done = _done((use for use in evidence.tools.values() if use not in failed), language)
        which = describe_tools(failed, language)
        return done + say(language, "tool_failed", which=which, log_file=ending.log_file)
    if outcome == "empty":
        return _nothing_said(evidence, ending)
    key, extra = _ending_key(evidence, ending, outcome)
    return say(
        language,
        key,
        done=_done(evidence.tools.values(), language),
        log_file=ending.log_file,
        **extra,
    ).strip()


def describe_unusual_stop(stop_reason: str, language: Language) -> Notice:
    """Return a notice about a stop reason that the gateway does not act on."""
    if stop_reason == "pause_turn":
        return Notice("pause_turn", say(language, "pause_turn"))
    shown = stop_reason if _STOP_NAME.fullmatch(stop_reason) else "?"
    return Notice("unknown_stop_reason", say(language, "unknown_stop_reason", reason=shown))


def _nothing_said(evidence: Evidence, ending: Ending) -> str:
    if evidence.refused:
        return say(ending.language, "refusal")
    if evidence.unusual_stop is not None:
        return describe_unusual_stop(evidence.unusual_stop, ending.language).message
    if evidence.tools:
        which = describe_tools(list(evidence.tools.values()), ending.language)
        return say(ending.language, "empty_after_tools", which=which)
    return say(ending.language, "empty")


def _ending_key(
    evidence: Evidence, ending: Ending, outcome: Outcome
) -> tuple[str, dict[str, object]]:
    """Choose the sentence for an ending from outside, and fill its own places."""
    reason = stop_reason_of(evidence, ending)
    if outcome == "engine_failed":
        if reason in {*SERVICE_FAILURES, "context_window"}:
            return describe_service_failure(evidence, ending)
        return _FAULT_KEYS.get(ending.cause, "engine_crash"), {"which": ending.untrusted}
    if reason == "waiting":
        return "waiting", {}
    if reason == "shutdown":
        return "shutdown", {}
    if reason == "user_interrupt":
        return "interrupted_left" if ending.cause == "left" else "interrupted_user", {}
    if evidence.stopped_by == "policy_interrupt":
        denied = _short(next(reversed(evidence.denials.values()), ""))
        return "interrupted_policy", {"reason": denied or say(ending.language, "no_reason")}
    if outcome == "interrupted":
        return "interrupted_error", {}
    last = evidence.last_tool
    return f"stopped_{reason}", {
        "summary": f"{_shown_name(last.name)} {last.summary}".strip() if last else "",
        "count": ending.doom_loop_threshold,
        "seconds": f"{ending.timeout_s:g}",
    }
