"""The register of all intents: what each may say, where it goes by default, and in which words.

A key stands here or it does not exist: nothing is registered on the fly. A key with a place in it, such
as `tool.{tool_name}.ok`, is a family; the payload's field of that name is the place's value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Final, Literal

from memory.intents.intent import SourceKind

MAX_KEY_CHARS: Final = 256
MAX_TOOL_NAME_CHARS: Final = 128

FieldType = Literal["text", "number", "flag", "object", "list"]


class IntentRefused(Exception):
    """An intent or a policy is not as the register says; the text is one sentence for people."""


class UnknownIntent(IntentRefused):
    """The key is not registered."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a payload."""

    type: FieldType
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySinkPolicy:
    """Where an intent goes, and by which template it is told there."""

    to_chronicle: bool = True
    to_runtime_log: bool = True
    to_llm_context: bool = False
    chronicle_template: str = ""
    """Empty: the one that is named like the key."""
    runtime_log_template: str = ""
    llm_context_template: str = ""


@dataclass(frozen=True, kw_only=True)
class IntentForm:
    """What is registered of a key: a key without these parts does not come into being."""

    key: str
    source_kind: SourceKind
    fields: Mapping[str, Field]
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Fields whose value the key gives: `tool.….ok` has the status `ok`."""
    policy: MemorySinkPolicy = field(default_factory=MemorySinkPolicy)
    template: str = ""
    """The words in which it is told, with `$field` places."""

    @property
    def is_family(self) -> bool:
        """Whether the key has places."""
        return "{" in self.key

    @cached_property
    def _matcher(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.key)
        texts = (
            re.escape(one) if at % 2 == 0 else f"(?P<{one}>.+)" for at, one in enumerate(parts)
        )
        return re.compile("".join(texts))

    def places(self, key: str) -> Mapping[str, str] | None:
        """Give the values of the family's places in a key; None: the key is not of this form."""
        found = self._matcher.fullmatch(key)
        return None if found is None else found.groupdict()


_TEXT, _NUMBER, _FLAG = Field("text"), Field("number"), Field("flag")
_MAYBE_TEXT, _MAYBE_NUMBER = Field("text", required=False), Field("number", required=False)

_TOOL_FIELDS: Final = {
    "tool_name": _TEXT,
    "status": _TEXT,
    "tool_use_id": _TEXT,
    "args": Field("object"),
    "result": _TEXT,
    "duration_ms": _MAYBE_NUMBER,
}
_DELIVERY_FIELDS: Final = {
    "backend": _TEXT,
    "operation": _TEXT,
    "item_id": _TEXT,
    "attempts": _NUMBER,
    "error": _MAYBE_TEXT,
}
_QUIET: Final = MemorySinkPolicy(to_runtime_log=False)


def _tool(status: str, words: str, *, to_llm_context: bool = False) -> IntentForm:
    return IntentForm(
        key=f"tool.{{tool_name}}.{status}",
        source_kind="tool",
        fields=_TOOL_FIELDS,
        fixed={"status": status},
        policy=MemorySinkPolicy(to_llm_context=to_llm_context),
        template=f"$tool_name {words}: $args → $result",
    )


def _delivery(status: str, words: str) -> IntentForm:
    return IntentForm(
        key=f"delivery.{status}",
        source_kind="delivery",
        fields=_DELIVERY_FIELDS,
        policy=_QUIET,
        template=f"$item_id {words} $backend ($operation, attempt $attempts) $error",
    )


def _breaker(state: str, words: str) -> IntentForm:
    return IntentForm(
        key=f"breaker.{state}",
        source_kind="delivery",
        fields={"backend": _TEXT},
        policy=_QUIET,
        template=f"$backend {words}",
    )


def _conversation(what: str, words: str) -> IntentForm:
    return IntentForm(
        key=f"conversation.{what}",
        source_kind="conversation",
        fields={"from_conversation_id": _MAYBE_TEXT},
        policy=_QUIET,
        template=f"The conversation {words} $from_conversation_id",
    )


FORMS: Final[tuple[IntentForm, ...]] = (
    IntentForm(
        key="turn.received",
        source_kind="turn",
        fields={"message": _TEXT, "labels": Field("object", required=False)},
        template="The person said: $message",
    ),
    IntentForm(
        key="turn.completed",
        source_kind="turn",
        fields={
            "outcome": _TEXT,
            "stop_reason": _TEXT,
            "reply": _TEXT,
            "tool_calls": _NUMBER,
            "duration_ms": _NUMBER,
        },
        template="The turn ended: $outcome ($stop_reason, $tool_calls tool calls). $reply",
    ),
    IntentForm(
        key="turn.cut_off",
        source_kind="turn",
        fields={"outcome": _TEXT, "stop_reason": _TEXT, "message": _TEXT, "tools": _TEXT},
        policy=MemorySinkPolicy(to_runtime_log=False, to_llm_context=True),
        template="The turn before was cut off ($outcome, $stop_reason). It was asked: $message. $tools",
    ),
    IntentForm(
        key="llm.response",
        source_kind="llm",
        fields={"text": _TEXT, "model": _TEXT},
        template="The model $model said: $text",
    ),
    _tool("ok", "succeeded"),
    _tool("blocked", "was denied"),
    _tool("error", "failed"),
    _tool("interrupted", "was interrupted, what it did is not certain", to_llm_context=True),
    *(
        IntentForm(
            key=f"permission.{what}",
            source_kind="permission",
            fields={"tool_name": _TEXT, "tool_use_id": _TEXT, "rule": _TEXT, "reason": _TEXT},
            template=f"$tool_name was {what} by $rule: $reason",
        )
        for what in ("allowed", "denied")
    ),
    IntentForm(
        key="approval.requested",
        source_kind="permission",
        fields={"approval_id": _TEXT, "tool_name": _TEXT, "summary": _TEXT},
        template="A person was asked about $tool_name: $summary",
    ),
    IntentForm(
        key="approval.resolved",
        source_kind="permission",
        fields={"approval_id": _TEXT, "decision": _TEXT, "by": _TEXT},
        template="The answer was $decision, by $by",
    ),
    IntentForm(
        key="memory.injected",
        source_kind="memory",
        fields={"ids": Field("list"), "titles": Field("list")},
        template="Shown to the model: $titles",
    ),
    IntentForm(
        key="memory.suppressed",
        source_kind="memory",
        fields={"ids": Field("list"), "reasons": Field("list")},
        template="Held back from the model: $ids ($reasons)",
    ),
    IntentForm(
        key="memory.forgotten",
        source_kind="memory",
        fields={"item_kind": _TEXT},
        policy=_QUIET,
        template="Something was forgotten on request ($item_kind).",
    ),
    _conversation("started", "was started"),
    _conversation("reset", "was left for a fresh one; it came from"),
    _conversation("forked", "was branched off from"),
    _delivery("delivered", "was taken by"),
    _delivery("failed", "was not taken by"),
    _delivery("dead", "is given up for"),
    _breaker("opened", "fails again and again and is left alone for a while."),
    _breaker("half_opened", "is tried again."),
    _breaker("closed", "works again."),
)


def required_intent_keys() -> tuple[str, ...]:
    """List every key there is; families with their places in braces."""
    return tuple(one.key for one in FORMS)


_EXACT: Final = {one.key: one for one in FORMS}
_FAMILIES: Final = tuple(one for one in FORMS if one.is_family)


def form_of(key: str) -> IntentForm:
    """Give what is registered of a key; a family's own key counts as well.

    Raises:
        UnknownIntent: nothing is.
    """
    if key in _EXACT:
        return _EXACT[key]
    for one in _FAMILIES:
        if one.places(key) is not None:
            return one
    near = get_close_matches(key[:MAX_KEY_CHARS], _EXACT, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownIntent(f"{key[:120]!r} is not a registered intent.{meant}")
