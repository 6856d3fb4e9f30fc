"""From what pydantic found wrong to one plain sentence that names the field.

The sentence never holds what the client sent, but for a field's name, clipped.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.errors import UnprocessableEntity
from gateway.jsonsafe import clean_text

_MAX_NAME_CHARS = 80

_SENTENCES: Mapping[str, str] = {
    "missing": "{field} is missing.",
    "extra_forbidden": "{field} is not a field that can be given here.",
    "list_type": "{field} must be a list.",
    "too_short": "{field} must hold at least {min_length}.",
    "too_long": "{field} may hold at most {max_length}.",
    "datetime_from_date_parsing": "{field} must be a day and an hour that there are.",
    "timezone_aware": "{field} must name its time zone, as in 2026-01-31T09:30:00Z.",
    "string_type": "{field} must be text.",
    "string_unicode": "{field} holds half of a character (a lone surrogate), which is no valid text.",
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
    """Make the error out of pydantic's list; the first one is told."""
    first = errors[0]
    name = field_name(first.get("loc", ()))
    template = _SENTENCES.get(str(first.get("type")), "{field} is not valid.")
    values = {key: str(one) for key, one in (first.get("ctx") or {}).items()}
    values.setdefault("reason", values.get("error", "is not valid"))
    return bad_field(name, template.format(**{**values, "field": f"`{name}`"}))


def bad_field(name: str, sentence: str) -> UnprocessableEntity:
    """Make the error about one field."""
    return UnprocessableEntity(sentence, details={"field": name})


def field_name(loc: Sequence[str | int]) -> str:
    """Name a field as a person would: `memory.enabled`."""
    parts = [str(one) for one in loc if one not in {"query", "path", "header", "body"}]
    name = clean_text(".".join(parts)) or "body"
    return name if len(name) <= _MAX_NAME_CHARS else f"{name[:_MAX_NAME_CHARS]}…"
