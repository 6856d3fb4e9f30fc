"""Validation errors of pydantic as one sentence that names the field.

The sentence holds nothing that the client sent except the field's name, clipped.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.errors import UnprocessableEntity
from gateway.jsonsafe import clean_text

_MAX_NAME_CHARS = 80

_SENTENCES: Mapping[str, str] = {
    "missing": "{field} is missing.",
    "extra_forbidden": "{field} is not a known field.",
    "list_type": "{field} must be a list.",
    "too_short": "{field} must hold at least {min_length}.",
    "too_long": "{field} may hold at most {max_length}.",
    "datetime_from_date_parsing": "{field} must be a valid date-time, such as 2026-01-31T09:30:00Z.",
    "timezone_aware": "{field} must have a time zone, such as 2026-01-31T09:30:00Z.",
    "string_type": "{field} must be text.",
    "string_unicode": "{field} holds a lone surrogate, which is not valid text.",
    "string_too_short": "{field} must not be empty.",
    "string_too_long": "{field} may have at most {max_length} characters.",
    "bool_type": "{field} must be true or false.",
    "bool_parsing": "{field} must be 1 or 0.",
    "int_type": "{field} must be a whole number.",
    "int_parsing": "{field} must be a whole number.",
    "int_parsing_size": "{field} must be a whole number.",
    "greater_than_equal": "{field} must be at least {ge}.",
    "less_than_equal": "{field} must be at most {le}.",
    "literal_error": "{field} must be one of {expected}.",
    "model_type": "{field} must be a JSON object.",
    "model_attributes_type": "{field} must be a JSON object.",
    "dict_type": "{field} must be a JSON object.",
    "value_error": "{field} {reason}.",
}


def validation_error(errors: Sequence[Mapping[str, Any]]) -> UnprocessableEntity:
    """Return the error for the first of pydantic's findings."""
    first = errors[0]
    name = field_name(first.get("loc", ()))
    template = _SENTENCES.get(str(first.get("type")), "{field} is not valid.")
    values = {key: str(value) for key, value in (first.get("ctx") or {}).items()}
    values.setdefault("reason", values.get("error", "is not valid"))
    return bad_field(name, template.format(**{**values, "field": f"`{name}`"}))


def bad_field(name: str, sentence: str) -> UnprocessableEntity:
    """Return the error about one field."""
    return UnprocessableEntity(sentence, details={"field": name})


def field_name(loc: Sequence[str | int]) -> str:
    """Return a field's dotted name, such as `memory.enabled`."""
    parts = [str(part) for part in loc if part not in {"query", "path", "header", "body"}]
    name = clean_text(".".join(parts)) or "body"
    return name if len(name) <= _MAX_NAME_CHARS else f"{name[:_MAX_NAME_CHARS]}…"
