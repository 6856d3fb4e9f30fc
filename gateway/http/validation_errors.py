"""Validation errors of pydantic as one sentence that names the field.

The sentence holds nothing that the client sent except the field's name, clipped.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.errors import UnprocessableEntity
from gateway.jsonsafe import clean_text

_MAX_NAME_CHARS = 80

_SENTENCES: Mapping[str, str] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
"""By the type of pydantic's error."""


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
