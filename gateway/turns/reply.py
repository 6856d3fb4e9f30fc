"""The reply of a turn: outcome, stop reason and text, decided from evidence.

Order of precedence: what ended the turn from outside (the model's service, a crash, a stop, a limit),
then text, then failed tools, then a run that broke off, and last "finished without text".
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gateway.engine.events import RunFinished
from gateway.turns.evidence import SERVICE_FAILURES, Evidence, Notice, StopReason, ToolUse
from gateway.turns.sentences import Language, say
from gateway.turns.service_failure import describe_service_failure

Outcome = Literal[
    "answered",
    "answered_with_failures",
    "tool_failed",
    "interrupted",
    "stopped",
    "engine_failed",
    "empty",
]

Cause = Literal["left", "shutdown", "crashed", "unavailable", "untrusted", "internal"]
"""Why a turn ended, if the stop reason alone does not say it."""

_ERROR_CHARS = 300
_STOP_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_SHOWN_TOOLS = 6

_SUBTYPE_STOPS: dict[str, StopReason] = {
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "budget",
}
_LIMITS: frozenset[StopReason] = frozenset({"doom_loop", "max_turns", "timeout", "budget"})
_INTERRUPTS: frozenset[StopReason | None] = frozenset({"user_interrupt", "policy_interrupt"})
_FAULTS: frozenset[Cause | None] = frozenset({"crashed", "unavailable", "untrusted", "internal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the text about an ending needs besides the evidence."""

    language: Language
    log_file: str
    cause: Cause | None = None
    untrusted: str = ""
    """For the cause of that name: what was not approved, in words."""
    timeout_s: float = 0
    silence_s: float = 0
    doom_loop_threshold: int = 0


def stop_reason_of(evidence: Evidence, ending: Ending) -> StopReason:
    """Return why the turn ended."""
    if evidence.stopped_by is not None:
        return evidence.stopped_by
    if evidence.context_full:
        return "context_window"
    if evidence.model_gave_up:
        return "api_error"
    if evidence.lost or ending.cause in _FAULTS:
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
    if evidence.stopped_by in _INTERRUPTS:
        return "interrupted"
    if reason in _LIMITS:
        return "stopped"
    if _service_failed(evidence, reason) or evidence.lost or ending.cause in _FAULTS:
        return "engine_failed"
    failed = bool(failures(evidence))
    if evidence.text:
        return "answered_with_failures" if failed else "answered"
    if failed:
        return "tool_failed"
    return "interrupted" if broke_off(evidence) else "empty"


def _service_failed(evidence: Evidence, reason: StopReason) -> bool:
    """Return whether the model's service ended the turn; an answer cut by a full context is an answer."""
    if reason == "context_window":
        return evidence.prompt_too_long or evidence.last_was_tool or not evidence.text
    return reason in SERVICE_FAILURES


def build_reply_text(evidence: Evidence, ending: Ending) -> str:
    """Return the reply for the person; never empty, never another program's error text."""
    outcome = outcome_of(evidence, ending)
    if outcome in {"answered", "answered_with_failures"}:
        return evidence.text
    closing = _completion(evidence, ending, outcome)
    if evidence.text:
        return f"{evidence.text}\n\n{closing}"
    return closing


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
    error = _short(use.error) or say(language, "no_reason")
    name = _shown_name(use.name)
    summary = f"{name}: {use.summary}" if use.summary else name
    return say(language, f"tool_line_{use.status or 'unknown'}", summary=summary, error=error)


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
            return describe_service_failure(evidence, ending.silence_s)
        return _fault_key(ending.cause), {"which": ending.untrusted}
    if reason == "user_interrupt":
        return _interrupt_key(ending.cause), {}
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


def _interrupt_key(cause: Cause | None) -> str:
    if cause == "shutdown":
        return "shutdown"
    return "interrupted_left" if cause == "left" else "interrupted_user"


def _fault_key(cause: Cause | None) -> str:
    match cause:
        case "crashed" | "internal":
            return cause
        case "unavailable":
            return "engine_unavailable"
        case "untrusted":
            return "workspace_untrusted"
        case _:
            return "engine_crash"
