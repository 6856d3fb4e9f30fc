"""The registry of all intents: their fields, where they go by default, and their templates.

Only registered keys exist. A key with a place in it, such as `tool.{tool_name}.ok`, is a family;
the payload's field of that name is the place's value.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, get_args

SourceKind = Literal["turn", "llm", "tool", "permission", "memory", "conversation", "delivery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryIntent:
    """What happened; made by the builders, recorded by `record_intent`.

    The payload is raw: secrets in it are masked when it is rendered, and only the result is stored
    or shown.
    """

    id: str
    """Derived from what happened: recording the same again changes nothing."""
    key: str
    """A registered key, such as `tool.Bash.ok`."""
    source_kind: SourceKind
    owner_id: str
    payload: Mapping[str, Any]
    fallback_text: str
    """Used if there is no template."""
    occurred_at: datetime
    conversation_id: str | None = None
    turn_id: str | None = None


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
    """Where an intent goes, and with which template; an empty name means the template named like
    the key.
    """

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
        """Return the values of the family's places in a key; None if the key is not
        of this form.
        """
        found = self._matcher.fullmatch(key)
        return None if found is None else found.groupdict()


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


def _form(key: str, told: Mapping[str, Any]) -> IntentForm:
    named = dict(map(_field, told["fields"].split()))
    switches = {name: value for name, value in told.items() if name.startswith("to_")}
    return IntentForm(
        key=key,
        source_kind=_SOURCES[key.partition(".")[0]],
        fields=named,
        fixed={"status": key.rpartition(".")[2]} if "status" in named else {},
        policy=MemorySinkPolicy(**switches),
        template=told["template"],
    )


def _field(spec: str) -> tuple[str, Field]:
    """Read `name` for a text or `name:type`; a `?` at the end marks a field that may be missing."""
    name, _, kind = spec.rstrip("?").partition(":")
    types: dict[str, FieldType] = {name: name for name in get_args(FieldType)}
    return name, Field(types[kind or "text"], required=not spec.endswith("?"))


_TOLD: Final = tomllib.loads(Path(__file__).with_name("forms.toml").read_text(encoding="utf-8"))
FORMS: Final = tuple(_form(key, told) for key, told in _TOLD.items())

_EXACT: Final = {form.key: form for form in FORMS}
_FAMILIES: Final = tuple(form for form in FORMS if form.is_family)


def required_intent_keys() -> tuple[str, ...]:
    """Return every registered key; families with their places in braces."""
    return tuple(_EXACT)


def form_of(key: str) -> IntentForm:
    """Return what is registered of a key, or of a family's own key.

    Raise `UnknownIntent` if the key is not registered.
    """
    if key in _EXACT:
        return _EXACT[key]
    for family in _FAMILIES:
        if family.places(key) is not None:
            return family
    near = get_close_matches(key[:MAX_KEY_CHARS], _EXACT, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownIntent(f"{key[:120]!r} is not a registered intent.{meant}")


EXTENSION: Final = "x_"
"""Fields whose names begin like this may be in every payload; they are masked and bounded like the
others."""

_TYPES: Final[Mapping[FieldType, tuple[str, tuple[type, ...]]]] = {
    "text": ("text", (str,)),
    "number": ("a number", (int, float)),
    "flag": ("true or false", (bool,)),
    "object": ("an object", (Mapping,)),
    "list": ("a list", (list, tuple)),
}


def validate_intent_contract(intent: MemoryIntent) -> IntentForm:
    """Check source kind, fields and types, and that key and payload agree; return the key's form.

    Raise `UnknownIntent` if the key is not registered, `IntentRefused` if the intent does not match
    its form; the sentence says where.
    """
    form = form_of(intent.key)
    is_key = len(intent.key) <= MAX_KEY_CHARS and intent.key.isprintable()
    if not is_key or (form.is_family and form.key == intent.key):
        raise IntentRefused(f"{intent.key[:120]!r} is not a valid key of an intent.")
    if intent.source_kind != form.source_kind:
        raise _refused(intent, f"comes from {form.source_kind!r}, not {intent.source_kind!r}")
    _check_fields(intent, form)
    for name, value in {**form.fixed, **(form.places(intent.key) or {})}.items():
        if intent.payload.get(name) != value:
            raise _refused(intent, f"says {value!r} in its key and something else as {name!r}")
    if not intent.owner_id or not intent.id:
        raise _refused(intent, "needs an id and an owner")
    if intent.occurred_at.tzinfo is None:
        raise _refused(intent, "needs a moment with a zone")
    return form


def _check_fields(intent: MemoryIntent, form: IntentForm) -> None:
    unknown = sorted(
        name for name in set(intent.payload) - set(form.fields) if not name.startswith(EXTENSION)
    )
    if unknown:
        raise _refused(intent, f"has no field {unknown[0]!r}")
    for name, known in form.fields.items():
        words, types = _TYPES[known.type]
        value = intent.payload.get(name)
        if value is None and known.required:
            raise _refused(intent, f"needs the field {name!r}")
        is_flag_as_number = isinstance(value, bool) and known.type == "number"
        if value is not None and (is_flag_as_number or not isinstance(value, types)):
            raise _refused(intent, f"takes {words} as {name!r}")


def _refused(intent: MemoryIntent, what: str) -> IntentRefused:
    return IntentRefused(f"The intent {intent.key!r} {what}.")
