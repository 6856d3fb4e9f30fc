"""The registry of all intents: their fields, where they go by default, and their templates.

Only registered keys exist. A key with a place in it, such as `tool.{tool_name}.ok`, is a family; the
payload's field of that name is the place's value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Final, Literal, get_args

from memory.intents.intent import SourceKind

MAX_KEY_CHARS: Final = 256
MAX_TOOL_NAME_CHARS: Final = 128

FieldType = Literal["text", "number", "flag", "object", "list"]


class IntentRefused(Exception):
    """An intent or a policy does not match the registry; the text is one sentence for people."""


class UnknownIntent(IntentRefused):
    """The key is not registered."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a payload."""

    type: FieldType
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySinkPolicy:
    """Where an intent goes, and with which template; an empty name means the template named like the key."""

    to_chronicle: bool = True
    to_runtime_log: bool = True
    to_llm_context: bool = False
    chronicle_template: str = ""
    runtime_log_template: str = ""
    llm_context_template: str = ""


@dataclass(frozen=True, kw_only=True)
class IntentForm:
    """What is registered of a key or a family."""

    key: str
    source_kind: SourceKind
    fields: Mapping[str, Field]
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Fields whose value the key determines: `tool.….ok` has the status `ok`."""
    policy: MemorySinkPolicy = field(default_factory=MemorySinkPolicy)
    template: str = ""
    """Text with `$field` places."""

    @property
    def is_family(self) -> bool:
        """True if the key has places."""
        return "{" in self.key

    @cached_property
    def _matcher(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.key)
        texts = (
            re.escape(part) if at % 2 == 0 else f"(?P<{part}>.+)" for at, part in enumerate(parts)
        )
        return re.compile("".join(texts))

    def places(self, key: str) -> Mapping[str, str] | None:
        """Return the values of the family's places in a key; None if the key is not of this form."""
        found = self._matcher.fullmatch(key)
        return None if found is None else found.groupdict()


_QUIET: Final = MemorySinkPolicy(to_runtime_log=False)
_TO_PROMPT: Final = MemorySinkPolicy(to_llm_context=True)
_SOURCES: Final[Mapping[str, SourceKind]] = {
    "turn": "turn",
    "guard": "turn",
    "llm": "llm",
    "tool": "tool",
    "permission": "permission",
    "approval": "permission",
    "memory": "memory",
    "conversation": "conversation",
    "delivery": "delivery",
    "breaker": "delivery",
}
"""By the first part of a key."""


def _form(
    key: str, fields: str, template: str, policy: MemorySinkPolicy | None = None
) -> IntentForm:
    """Register a key; `fields` are separated by spaces, see `_field`."""
    named = dict(map(_field, fields.split()))
    return IntentForm(
        key=key,
        source_kind=_SOURCES[key.partition(".")[0]],
        fields=named,
        fixed={"status": key.rpartition(".")[2]} if "status" in named else {},
        policy=policy or MemorySinkPolicy(),
        template=template,
    )


def _field(spec: str) -> tuple[str, Field]:
    """Read `name` for a text or `name:type`; a `?` at the end marks a field that may be missing."""
    name, _, kind = spec.rstrip("?").partition(":")
    types: dict[str, FieldType] = {name: name for name in get_args(FieldType)}
    return name, Field(types[kind or "text"], required=not spec.endswith("?"))


def _tool(status: str, words: str, policy: MemorySinkPolicy | None = None) -> IntentForm:
    fields = "tool_name status tool_use_id args:object result duration_ms:number?"
    key = f"tool.{{tool_name}}.{status}"
    return _form(key, fields, f"$tool_name {words}: $args → $result", policy)


def _permission(decision: str) -> IntentForm:
    template = f"$tool_name was {decision} by $rule: $reason"
    return _form(f"permission.{decision}", "tool_name tool_use_id rule reason", template)


def _delivery(status: str, words: str) -> IntentForm:
    fields = "backend operation item_id attempts:number error?"
    template = f"$item_id {words} $backend ($operation, attempt $attempts) $error"
    return _form(f"delivery.{status}", fields, template, _QUIET)


def _breaker(state: str, words: str) -> IntentForm:
    return _form(f"breaker.{state}", "backend", f"$backend {words}", _QUIET)


def _conversation(change: str, words: str) -> IntentForm:
    template = f"The conversation {words} $from_conversation_id"
    return _form(f"conversation.{change}", "from_conversation_id?", template, _QUIET)


FORMS: Final[tuple[IntentForm, ...]] = (
    _form("turn.received", "message labels:object?", "The person said: $message"),
    _form(
        "turn.completed",
        "outcome stop_reason reply tool_calls:number duration_ms:number",
        "The turn ended: $outcome ($stop_reason, $tool_calls tool calls). $reply",
    ),
    _form(
        "turn.cut_off",
        "outcome stop_reason message tools",
        "The turn before was cut off ($outcome, $stop_reason). It was asked: $message. $tools",
        replace(_TO_PROMPT, to_runtime_log=False),
    ),
    _form(
        "guard.doom_loop", "tools", "The same calls were repeated, and the turn was stopped: $tools"
    ),
    _form(
        "guard.forced_summary",
        "tools",
        "The run ended without text and was asked for a summary of: $tools",
    ),
    _form(
        "guard.model_retries", "count:number", "The model's service was asked again $count times"
    ),
    _form("llm.response", "text model", "The model $model said: $text"),
    _tool("ok", "succeeded"),
    _tool("blocked", "was denied"),
    _tool("error", "failed"),
    _tool("interrupted", "was interrupted, what it did is not certain", _TO_PROMPT),
    _permission("allowed"),
    _permission("denied"),
    _form(
        "approval.requested",
        "approval_id tool_name summary",
        "A person was asked about $tool_name: $summary",
    ),
    _form("approval.resolved", "approval_id decision by", "The answer was $decision, by $by"),
    _form("memory.injected", "ids:list titles:list", "Shown to the model: $titles"),
    _form(
        "memory.suppressed",
        "ids:list reasons:list",
        "Held back from the model: $ids ($reasons)",
    ),
    _form(
        "memory.saved",
        "ids:list item_kind text origin supersedes:list evidence?",
        "Saved ($item_kind, $origin): $text",
        _QUIET,
    ),
    _form(
        "memory.forgotten",
        "item_kind",
        "Something was forgotten on request ($item_kind).",
        _QUIET,
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

_EXACT: Final = {form.key: form for form in FORMS}
_FAMILIES: Final = tuple(form for form in FORMS if form.is_family)


def required_intent_keys() -> tuple[str, ...]:
    """Return every registered key; families with their places in braces."""
    return tuple(_EXACT)


def form_of(key: str) -> IntentForm:
    """Return what is registered of a key, or of a family's own key.

    Raises:
        UnknownIntent: the key is not registered.
    """
    if key in _EXACT:
        return _EXACT[key]
    for family in _FAMILIES:
        if family.places(key) is not None:
            return family
    near = get_close_matches(key[:MAX_KEY_CHARS], _EXACT, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownIntent(f"{key[:120]!r} is not a registered intent.{meant}")
