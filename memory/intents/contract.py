"""Checks an intent against the registry, before anything is written."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from memory.intents.intent import MemoryIntent
from memory.intents.registry import (
    MAX_KEY_CHARS,
    FieldType,
    IntentForm,
    IntentRefused,
    form_of,
)

EXTENSION: Final = "x_"
"""Fields whose names begin like this may be in every payload; they are masked and bounded like the others."""

_TYPES: Final[Mapping[FieldType, tuple[str, Callable[[Any], bool]]]] = {
    "text": ("text", lambda value: isinstance(value, str)),
    "number": (
        "a number",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    ),
    "flag": ("true or false", lambda value: isinstance(value, bool)),
    "object": ("an object", lambda value: isinstance(value, Mapping)),
    "list": ("a list", lambda value: isinstance(value, list | tuple)),
}


def validate_intent_contract(intent: MemoryIntent) -> IntentForm:
    """Check source kind, fields and types, and that key and payload agree; return the key's form.

    Raises:
        UnknownIntent: the key is not registered.
        IntentRefused: the intent does not match its form; the sentence says where.
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
    for name, field in form.fields.items():
        words, is_of_type = _TYPES[field.type]
        value = intent.payload.get(name)
        if value is None and field.required:
            raise _refused(intent, f"needs the field {name!r}")
        if value is not None and not is_of_type(value):
            raise _refused(intent, f"takes {words} as {name!r}")


def _refused(intent: MemoryIntent, what: str) -> IntentRefused:
    return IntentRefused(f"The intent {intent.key!r} {what}.")
