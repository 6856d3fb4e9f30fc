"""Exact scripts for tests: a fenced `candor-script` block in a prompt says what the model answers, call by call.

A script is a JSON array of steps; each model call of that prompt takes the next. Steps that answer:

    {"text": "…"}   {"thinking": "…"}   {"tool": "Bash", "input": {…}}   {"tools": [{"name": …, "input": …}, …]}   (they combine)
    {"repeat": {"tool": …, "input": {…}}, "times": N}     the same call in N model calls
    {"empty": true}                                       end_turn without content; with "text": "" one empty text block
    {"max_tokens": true, "text": "…"}                     another stop reason
    {"stop_reason": "pause_turn", "text": "…"}            any other, sent verbatim
    {"refusal": true}                                     stop reason "refusal", twice unless `times` says otherwise
    {"echo": "system" | "context" | "prompt" | "messages" | "memory" | "tools"}   what reached the model

A call's name, `input` and `"id"` may be any JSON value and are sent as they are; `null` as name or id leaves the field out, and without an
`"id"` one is made up. `"raw_input": "…"` in place of `input` is sent as it is: broken JSON, or JSON nested deeper than a script may be.

Steps that fail, for `times` attempts (default 1), and then give way to the next:

    {"status": 529, "times": 2, "error_type": "…", "message": "…", "retry_after": seconds}
    {"drop": true, "times": 1, "after_chars": N, "text": "…"}    cut before an answer, or in the middle of one
    {"hang": true}                                               no answer, however often it is asked
    {"hang": true, "after_chars": N, "text": "…"}                silence in the middle of an answer
    {"status": 529, "after_chars": N, "text": "…"}               an `error` event in the stream of a 200
    {"raw": "…", "content_type": "text/event-stream", "status": 200}    a body sent verbatim

`delay_ms` (before the answer) and `delta_delay_ms` (between chunks) go with any step. An element `{"on_followup": [steps]}` holds the steps for
later prompts without a script of their own. Answering steps are counted by the answers in the request, so parallel conversations and a
restarted server stay in step; only failing attempts, which leave no trace there, are counted by the caller.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from gateway.demo.answer import (
    NEW_ID,
    Answer,
    Block,
    Broken,
    Failure,
    Pace,
    Raw,
    Reply,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    call,
    say,
)
from gateway.demo.conversation import Conversation
from gateway.nesting import depth_of

SCRIPT_ENDED = "(the script has ended)"

_FENCE = re.compile(
    r"^[ \t]*```candor-script[^\n]*\n(?P<body>.*?)^[ \t]*```", re.DOTALL | re.MULTILINE
)
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
_KEYS = frozenset(
    [
        "text",
        "thinking",
        "tool",
        "input",
        "raw_input",
        "id",
        "tools",
        "repeat",
        "times",
        "empty",
        "max_tokens",
        "refusal",
        "echo",
        "status",
        "error_type",
        "message",
        "retry_after",
        "drop",
        "after_chars",
        "hang",
        "raw",
        "content_type",
        "stop_reason",
        "delay_ms",
        "delta_delay_ms",
        "on_followup",
    ]
)
_FOREVER = 1 << 62
# Bounds of what a script may ask for: beyond them no server could send the answer, or no agent read it.
_MAX_DEPTH = 64
_MAX_PAUSE_MS = 86_400_000
_MAX_RETRY_AFTER_S = 86_400
_STATUSES = range(400, 600)
# The agent process asks once more after a refusal; only a second one is the end of the turn.
_REFUSALS = 2

CountAttempt: TypeAlias = Callable[[int], int]
"""Given a step's index, notes one more attempt at it and returns how many there were before."""


class ScriptError(ValueError):
    """The fenced block is no script; its message says why, and becomes the model's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step; `times` answers or failing attempts."""

    reply: Reply
    times: int = 1
    echo: str | None = None

    @property
    def leaves_answer(self) -> bool:
        """Whether the request shows afterwards that this step was taken; a refusal without words leaves nothing."""
        return isinstance(self.reply, Answer) and (
            self.reply.stop_reason != "refusal" or bool(self.reply.blocks) or self.echo is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The steps for the prompt that holds them, and those for the prompts that follow it."""

    steps: tuple[Step, ...]
    on_followup: tuple[Step, ...] = ()


def find_script(prompt: str) -> Script | None:
    """The script in `prompt`, or `None` where it holds none.

    Raises:
        ScriptError: there is a fenced block, but it is no script.
    """
    fence = _FENCE.search(prompt)
    if fence is None:
        return None
    elements = _parse(fence["body"])
    followups: list[Step] = []
    steps: list[Step] = []
    for element in _list(elements, "the script"):
        fields = _object(element, "a step")
        if "on_followup" in fields:
            followups += [
                _step(_object(each, "a step"))
                for each in _list(fields["on_followup"], "on_followup")
            ]
        else:
            steps.append(_step(fields))
    return Script(steps=tuple(steps), on_followup=tuple(followups))


def _parse(body: str) -> object:
    """Read JSON of a depth and with numbers that can be written as JSON again."""
    if depth_of(body) > _MAX_DEPTH:
        raise ScriptError(f"the script is nested deeper than {_MAX_DEPTH} levels")
    try:
        return json.loads(body, parse_constant=_no_number, parse_float=_float)
    except ScriptError:
        raise
    except ValueError as exc:
        raise ScriptError(f"the script is not JSON: {exc}") from exc


def _no_number(name: str) -> object:
    raise ScriptError(f"{name} is no number that JSON has")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        _no_number(digits[:40])
    return value


def choose_step(
    steps: Sequence[Step], answered_count: int, count_attempt: CountAttempt
) -> Step | None:
    """The step for the next model call after `answered_count` answers, or `None` when all are taken.

    `count_attempt` is called only for failing steps that are due.
    """
    remaining = answered_count
    for index, step in enumerate(steps):
        if step.leaves_answer:
            if remaining < step.times:
                return step
            remaining -= step.times
        elif remaining == 0 and count_attempt(index) < step.times:
            return step
    return None


def play(step: Step | None, conversation: Conversation) -> Reply:
    """The reply of `step`, with an echo filled in from `conversation`."""
    if step is None:
        return say(SCRIPT_ENDED)
    if step.echo is None or not isinstance(step.reply, Answer):
        return step.reply
    return replace(step.reply, blocks=(*step.reply.blocks, Text(_echo(step.echo, conversation))))


def _echo(part: str, conversation: Conversation) -> str:
    match part:
        case "system":
            return conversation.system
        case "context":
            return "\n\n".join(conversation.context)
        case "memory":
            return conversation.memory
        case "prompt":
            return conversation.last.text
        case "tools":
            return "\n".join(sorted(conversation.tools))
        case _:
            return json.dumps(conversation.messages, ensure_ascii=False, indent=1)


def _step(fields: Mapping[str, object]) -> Step:
    unknown = sorted(set(fields) - _KEYS)
    if unknown:
        raise ScriptError(f"a step has unknown keys: {', '.join(unknown)}")
    pace = Pace(
        delay_ms=_pause(fields, "delay_ms") or 0, delta_delay_ms=_pause(fields, "delta_delay_ms")
    )
    times = _int(fields, "times", _REFUSALS if fields.get("refusal") else 1)
    failing = _failing_reply(fields, pace)
    if failing is not None:
        forever = isinstance(failing, Broken) and failing.ending == "hang"
        return Step(reply=failing, times=_int(fields, "times", _FOREVER) if forever else times)
    if "repeat" in fields:
        repeated = _tool_call(_object(fields["repeat"], "repeat"))
        return Step(
            reply=replace(call(repeated, before=_str(fields, "text", "")), pace=pace), times=times
        )
    return _answering_step(fields, pace, times)


def _failing_reply(fields: Mapping[str, object], pace: Pace) -> Reply | None:
    after_chars = _optional_int(fields, "after_chars")
    words = _str(fields, "text", "This answer will be cut off in the middle of a sentence. " * 4)
    for ending in ("drop", "hang"):
        if fields.get(ending):
            return Broken(
                ending="drop" if ending == "drop" else "hang",
                after_chars=after_chars,
                text=words,
                pace=pace,
            )
    if "raw" in fields:
        return Raw(
            body=_str(fields, "raw", ""),
            status=_int(fields, "status", 200),
            content_type=_str(fields, "content_type", "application/json"),
            pace=pace,
        )
    if "status" not in fields:
        return None
    failure = _failure(fields, pace)
    if after_chars is None:
        return failure
    return Broken(ending=failure, after_chars=after_chars, text=words, pace=pace)


def _answering_step(fields: Mapping[str, object], pace: Pace, times: int) -> Step:
    blocks: list[Block] = []
    if "thinking" in fields:
        blocks.append(Thinking(_str(fields, "thinking", "")))
    if "text" in fields:
        blocks.append(Text(_str(fields, "text", "")))
    calls = [
        _tool_call(_object(each, "a tool call")) for each in _list(fields.get("tools", []), "tools")
    ]
    if "tool" in fields:
        calls.append(_tool_call(fields))
    stop: StopReason = _str(fields, "stop_reason", "tool_use" if calls else "end_turn")
    if fields.get("max_tokens"):
        stop = "max_tokens"
    if fields.get("refusal"):
        stop = "refusal"
    echo = _str(fields, "echo", "") or None
    if not (blocks or calls or echo or fields.get("empty") or stop != "end_turn"):
        raise ScriptError(f"a step that does nothing: {json.dumps(fields, ensure_ascii=False)}")
    return Step(
        reply=Answer(blocks=(*blocks, *calls), stop_reason=stop, pace=pace), times=times, echo=echo
    )


def _failure(fields: Mapping[str, object], pace: Pace) -> Failure:
    status = _int(fields, "status", 500)
    if status not in _STATUSES:
        raise ScriptError(f"status must be {_STATUSES[0]} to {_STATUSES[-1]}")
    error_type = _str(fields, "error_type", _ERROR_TYPES.get(status, "api_error"))
    return Failure(
        status=status,
        error_type=error_type,
        message=_str(fields, "message", f"{error_type} (scripted)"),
        retry_after_s=_retry_after(fields),
        pace=pace,
    )


def _retry_after(fields: Mapping[str, object]) -> float | None:
    seconds = fields.get("retry_after")
    if seconds is None:
        return None
    if not isinstance(seconds, int | float) or not 0 <= seconds <= _MAX_RETRY_AFTER_S:
        raise ScriptError(f"retry_after must be a number, 0 to {_MAX_RETRY_AFTER_S}")
    return float(seconds)


def _pause(fields: Mapping[str, object], key: str) -> int | None:
    pause_ms = _optional_int(fields, key)
    if pause_ms is not None and not 0 <= pause_ms <= _MAX_PAUSE_MS:
        raise ScriptError(f"{key} must be 0 to {_MAX_PAUSE_MS}")
    return pause_ms


def _tool_call(fields: Mapping[str, object]) -> ToolCall:
    if not fields.keys() & {"tool", "name"}:
        raise ScriptError("a tool call needs a name")
    return ToolCall(
        name=fields.get("tool", fields.get("name")),
        arguments=fields.get("input", {}),
        raw_arguments=_str(fields, "raw_input", "") if "raw_input" in fields else None,
        id=fields.get("id", NEW_ID),
    )


def _object(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ScriptError(f"{what} must be a JSON object")
    return value


def _list(value: object, what: str) -> Sequence[object]:
    if not isinstance(value, list):
        raise ScriptError(f"{what} must be a JSON array")
    return value


def _str(fields: Mapping[str, object], key: str, default: str) -> str:
    value = fields.get(key, default)
    if not isinstance(value, str):
        raise ScriptError(f"{key} must be a string")
    return value


def _int(fields: Mapping[str, object], key: str, default: int) -> int:
    value = fields.get(key, default)
    if not isinstance(value, int):
        raise ScriptError(f"{key} must be a whole number")
    return int(value)


def _optional_int(fields: Mapping[str, object], key: str) -> int | None:
    return _int(fields, key, 0) if key in fields else None
