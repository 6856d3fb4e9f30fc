"""Is an intent as the register says? Checked before anything is written anywhere."""

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

_CHECKS: Final[Mapping[FieldType, Callable[[Any], bool]]] = {
    "text": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "flag": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "list": lambda value: isinstance(value, list | tuple),
}
_WORDS: Final[Mapping[FieldType, str]] = {
    "text": "text",
    "number": "a number",
    "flag": "true or false",
    "object": "an object",
    "list": "a list",
}


def validate_intent_contract(intent: MemoryIntent) -> IntentForm:
    """Check source kind, fields, types, and that key and payload agree; gives the key's form.

    Raises:
        UnknownIntent: the key is not registered.
        IntentRefused: it is not as registered; the sentence says where.
    """
    form = form_of(intent.key)
    is_key = len(intent.key) <= MAX_KEY_CHARS and intent.key.isprintable()
    if not is_key or (form.is_family and form.key == intent.key):
        raise IntentRefused(f"{intent.key[:120]!r} is no key of an intent.")
    if intent.source_kind != form.source_kind:
        raise _refused(intent, f"comes from {form.source_kind!r}, not {intent.source_kind!r}")
    _check_fields(intent, form)
    _check_agreement(intent, form)
    if not intent.owner_id or not intent.id:
        raise _refused(intent, "needs an id and an owner")
    if intent.occurred_at.tzinfo is None:
        raise _refused(intent, "needs a moment with a zone")
    return form


def _check_fields(intent: MemoryIntent, form: IntentForm) -> None:
    unknown = sorted(set(intent.payload) - set(form.fields))
    if unknown:
        raise _refused(intent, f"has no field {unknown[0]!r}")
    for name, field in form.fields.items():
        value = intent.payload.get(name)
        if value is None:
            if field.required:
                raise _refused(intent, f"needs the field {name!r}")
        elif not _CHECKS[field.type](value):
            raise _refused(intent, f"takes {_WORDS[field.type]} as {name!r}")


def _check_agreement(intent: MemoryIntent, form: IntentForm) -> None:
    """See that the key says what the payload says: `tool.Read.ok` is of Read, and ok."""
    places = form.places(intent.key) or {}
    for name, value in {**form.fixed, **places}.items():
        if intent.payload.get(name) != value:
            raise _refused(intent, f"says {value!r} in its key and something else as {name!r}")


def _refused(intent: MemoryIntent, what: str) -> IntentRefused:
    return IntentRefused(f"The intent {intent.key!r} {what}.")
