"""Exact scripts for tests: a fenced `candor-script` block in a prompt lists the model's answers.

A script is a JSON array of steps; each model call of that prompt takes the next. Steps that answer:

    {"text": "…"} {"thinking": "…"} {"tool": "Bash", "input": {…}} {"tools": [{"name": …}, …]}
                                            they combine
    {"repeat": {"tool": …, "input": {…}}, "times": N}    the same call in N model calls
    {"empty": true}                         end_turn without content; with "text": "" an empty block
    {"max_tokens": true, "text": "…"}       another stop reason
    {"stop_reason": "pause_turn", "text": "…"}    any other, sent verbatim
    {"refusal": true}                       stop reason "refusal", twice unless `times` is given
    {"echo": "system" | "context" | "prompt" | "messages" | "memory" | "tools"}
                                            what reached the model

A call's name, `input` and `"id"` may be any JSON value and are sent verbatim; `null` as name or id
leaves the field out, and without an `"id"` one is made up. `"raw_input": "…"` in place of `input`
is sent verbatim: broken JSON, or JSON nested deeper than a script may be.

Steps that fail, for `times` attempts (default 1), and then give way to the next:

    {"status": 529, "times": 2, "error_type": "…", "message": "…", "retry_after": seconds}
    {"drop": true, "times": 1, "after_chars": N, "text": "…"}
                                            cut before an answer, or in the middle of one
    {"hang": true}                          no answer, however often it is asked
    {"hang": true, "after_chars": N, "text": "…"}       silence in the middle of an answer
    {"status": 529, "after_chars": N, "text": "…"}      an `error` event in the stream of a 200
    {"status": 400, "while_picture": true, "message": "…"}
                                            as long as the request holds a picture
    {"status": 400, "while_earlier": "text", "message": "…"}
                                            as long as an earlier message holds the text ("": any)
    {"raw": "…", "content_type": "text/event-stream", "status": 200}    a body sent verbatim

`delay_ms` (before the answer) and `delta_delay_ms` (between chunks) go with any step. An element
`{"on_followup": [steps]}` holds the steps for later prompts without a script of their own.
Answering steps are counted by the answers in the request, so parallel conversations and a restarted
server stay in step. Failing attempts leave no trace in the request; the caller counts them.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from gateway.demo.answer import (
    NEW_ID,
    Answer,
    Block,
    Broken,
    Failure,
    Pace,
    Raw,
    Reply,
    Text,
    Thinking,
    ToolCall,
    say,
)
from gateway.demo.conversation import Conversation
from gateway.nesting import depth_of

SCRIPT_ENDED = "(the script has ended)"

_FENCE = re.compile(
    r"^[ \t]*```candor-script[^\n]*\n(?P<body>.*?)^[ \t]*```", re.DOTALL | re.MULTILINE
)
_TOLD = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_TYPES: Mapping[str, type] = {
    key: kind
    for kind in (str, int, bool, list, dict, object)
    for key in _TOLD["types"][kind.__name__].split()
}
_RANGES = {key: range(least, most + 1) for key, (least, most) in _TOLD["ranges"].items()}
_MAX_DEPTH = 64
"""A deeper script could not be sent back to the model by any agent."""
_FOREVER = 1 << 62
_REFUSALS = 2
"""The agent process asks once more after a refusal; the second one ends the turn."""

CountAttempt: TypeAlias = Callable[[int], int]
"""Counts one more attempt at the step with this index and returns how many there were before."""
_Fields: TypeAlias = Mapping[str, Any]


class ScriptError(ValueError):
    """The fenced block is not a script; the message says why, and becomes the model's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a script, taken for `times` answers or failing attempts."""

    reply: Reply
    times: int = 1
    echo: str | None = None
    while_picture: bool = False
    while_earlier: str | None = None

    def is_due(self, conversation: Conversation) -> bool:
        """Return whether the request is one that this failing step fails."""
        if self.while_picture:
            return _holds_picture(conversation.messages)
        if self.while_earlier is not None:
            return any(self.while_earlier in prompt.text for prompt in conversation.prompts[:-1])
        return True

    @property
    def leaves_answer(self) -> bool:
        """Later requests show that this step was taken. A refusal without text leaves nothing."""
        return isinstance(self.reply, Answer) and (
            self.reply.stop_reason != "refusal" or bool(self.reply.blocks) or self.echo is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The steps for the prompt that holds them, and those for the prompts that follow it."""

    steps: tuple[Step, ...]
    on_followup: tuple[Step, ...] = ()


def find_script(prompt: str) -> Script | None:
    """Return the script in `prompt`, or `None` if there is no fenced block.

    Raise `ScriptError` if the fenced block is not a script.
    """
    fence = _FENCE.search(prompt)
    if fence is None:
        return None
    if depth_of(fence["body"]) > _MAX_DEPTH:
        raise ScriptError(f"the script is nested deeper than {_MAX_DEPTH} levels")
    try:
        elements = json.loads(fence["body"])
        json.dumps(elements, allow_nan=False)
    except ValueError as exc:
        raise ScriptError(f"the script is not JSON: {exc}") from exc
    if not isinstance(elements, list):
        raise ScriptError("the script must be a JSON array")
    own = [element for element in map(_checked, elements) if "on_followup" not in element]
    later = [step for element in elements for step in element.get("on_followup", ())]
    return Script(
        steps=tuple(map(_step, own)), on_followup=tuple(_step(_checked(step)) for step in later)
    )


def choose_step(
    steps: Sequence[Step],
    answered_count: int,
    count_attempt: CountAttempt,
    is_due: Callable[[Step], bool] = lambda _: True,
) -> Step | None:
    """Return the step for the next model call after `answered_count` answers; `None` if all are
    taken.

    `is_due` decides whether a failing step fails this request; `count_attempt` is called only if it
    does.
    """
    remaining = answered_count
    for index, step in enumerate(steps):
        if step.leaves_answer:
            if remaining < step.times:
                return step
            remaining -= step.times
        elif remaining == 0 and is_due(step) and count_attempt(index) < step.times:
            return step
    return None


def play(step: Step | None, conversation: Conversation) -> Reply:
    """Return the reply of `step`, with the echo of `conversation` that it asks for."""
    if step is None:
        return say(SCRIPT_ENDED)
    if step.echo is None or not isinstance(step.reply, Answer):
        return step.reply
    return replace(step.reply, blocks=(*step.reply.blocks, Text(_echo(step.echo, conversation))))


def _echo(part: str, conversation: Conversation) -> str:
    match part:
        case "system" | "memory":
            return str(getattr(conversation, part))
        case "context":
            return "\n\n".join(conversation.context)
        case "prompt":
            return conversation.last.text
        case "tools":
            return "\n".join(sorted(conversation.tools))
        case _:
            return json.dumps(conversation.messages, ensure_ascii=False, indent=1)


def _checked(fields: object) -> _Fields:
    """Return `fields` if it is an object with known keys and values of the right types."""
    if not isinstance(fields, dict):
        raise ScriptError("a step must be a JSON object")
    for key, value in fields.items():
        if key not in _TYPES:
            raise ScriptError(f"a step has the unknown key {key}")
        if not isinstance(value, _TYPES[key]):
            raise ScriptError(f"{key} must be of the type {_TYPES[key].__name__}")
        if key in _RANGES and value not in _RANGES[key]:
            raise ScriptError(f"{key} must be {_RANGES[key][0]} to {_RANGES[key][-1]}")
    return fields


def _step(fields: _Fields) -> Step:
    fields = {**fields, **_checked(fields.get("repeat", {}))}
    pace = Pace(delay_ms=fields.get("delay_ms", 0), delta_delay_ms=fields.get("delta_delay_ms"))
    reply = _failing_reply(fields, pace) or _answer(fields, pace)
    times = _REFUSALS if fields.get("refusal") else 1
    while_picture, while_earlier = fields.get("while_picture", False), fields.get("while_earlier")
    if isinstance(reply, Broken) and reply.ending == "hang":
        times = _FOREVER
    if while_picture or while_earlier is not None:
        times = _FOREVER
    return Step(
        reply=reply,
        times=fields.get("times", times),
        echo=fields.get("echo"),
        while_picture=while_picture,
        while_earlier=while_earlier,
    )


def _holds_picture(content: object) -> bool:
    """Return whether a picture is among content blocks, or in the result of a tool there."""
    blocks = content if isinstance(content, list) else []
    return any(
        block.get("type") == "image" or _holds_picture(block.get("content"))
        for block in blocks
        if isinstance(block, dict)
    )


def _failing_reply(fields: _Fields, pace: Pace) -> Reply | None:
    after_chars = fields.get("after_chars")
    text = fields.get("text", "This answer will be cut off in the middle of a sentence. " * 4)
    if fields.get("drop") or fields.get("hang"):
        ending: Literal["drop", "hang"] = "drop" if fields.get("drop") else "hang"
        return Broken(ending=ending, after_chars=after_chars, text=text, pace=pace)
    if "raw" in fields:
        content_type = fields.get("content_type", "application/json")
        status = fields.get("status", 200)
        return Raw(body=fields["raw"], status=status, content_type=content_type, pace=pace)
    if "status" not in fields:
        return None
    error_type = fields.get(
        "error_type", _TOLD["error_types"].get(str(fields["status"]), "api_error")
    )
    failure = Failure(
        status=fields["status"],
        error_type=error_type,
        message=fields.get("message", f"{error_type} (scripted)"),
        retry_after_s=fields.get("retry_after"),
        pace=pace,
    )
    if after_chars is None:
        return failure
    return Broken(ending=failure, after_chars=after_chars, text=text, pace=pace)


def _answer(fields: _Fields, pace: Pace) -> Answer:
    blocks: list[Block] = []
    if "thinking" in fields:
        blocks.append(Thinking(fields["thinking"]))
    if "text" in fields:
        blocks.append(Text(fields["text"]))
    calls = [_tool_call(each) for each in fields.get("tools", ())]
    if fields.keys() & {"tool", "name"}:
        calls.append(_tool_call(fields))
    stop_reason = fields.get("stop_reason", "tool_use" if calls else "end_turn")
    for key in ("max_tokens", "refusal"):
        if fields.get(key):
            stop_reason = key
    does_something = blocks or calls or stop_reason != "end_turn"
    if not (does_something or fields.get("echo") or fields.get("empty")):
        raise ScriptError(f"a step does nothing: {json.dumps(fields, ensure_ascii=False)}")
    return Answer(blocks=(*blocks, *calls), stop_reason=stop_reason, pace=pace)


def _tool_call(fields: object) -> ToolCall:
    known = _checked(fields)
    if not known.keys() & {"tool", "name"}:
        raise ScriptError("a tool call needs a name")
    return ToolCall(
        name=known.get("tool", known.get("name")),
        arguments=known.get("input", {}),
        raw_arguments=known.get("raw_input"),
        id=known.get("id", NEW_ID),
    )
