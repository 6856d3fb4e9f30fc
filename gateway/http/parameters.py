"""Query parameters that several routes share, and the errors about wrong fields.

An empty parameter counts as not given. A validation error of pydantic becomes one sentence that
names the field; it holds nothing that the client sent except the field's name, clipped.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import Query
from pydantic import BeforeValidator

from gateway.errors import UnprocessableEntity
from gateway.jsonsafe import clean_text

_MAX_NAME_CHARS = 80
_PLACES = frozenset({"query", "path", "header", "body"})
"""Where FastAPI found a field; it may be the field's name, too."""

_SENTENCES: Mapping[str, str] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
"""By the type of pydantic's error."""


def validation_error(
    errors: Sequence[Mapping[str, Any]], value: object = None
) -> UnprocessableEntity:
    """Return the error for the first of pydantic's findings; with the `value` of a body, for the
    deepest one in the same field, which is of the form that the client meant.
    """
    first, loc = errors[0], errors[0].get("loc", ())
    if value is not None:
        within = written_loc(loc, value)
        places = [(written_loc(error.get("loc", ()), value), error) for error in errors]
        places = [place for place in places if place[0][: len(within)] == within]
        loc, first = max(places, key=lambda place: len(place[0]))
    name = field_name(loc)
    template = _SENTENCES.get(str(first.get("type")), "{field} is not valid.")
    values = {key: str(value) for key, value in (first.get("ctx") or {}).items()}
    values.setdefault("reason", values.get("error", "is not valid"))
    return bad_field(name, template.format(**{**values, "field": f"`{name}`"}))


def written_loc(loc: Sequence[str | int], value: object) -> tuple[str | int, ...]:
    """Return where a finding is in the value that the client sent.

    Pydantic also names the members of unions, which are nowhere in it.
    """
    written: list[str | int] = []
    for at, part in enumerate(loc):
        if isinstance(value, dict) and (part in value or at == len(loc) - 1):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            continue
        written.append(part)
    return tuple(written)


def bad_field(name: str, sentence: str) -> UnprocessableEntity:
    """Return the error about one field."""
    return UnprocessableEntity(sentence, details={"field": name})


def field_name(loc: Sequence[str | int]) -> str:
    """Return a field's dotted name, such as `memory.enabled`."""
    parts = loc[1:] if len(loc) > 1 and loc[0] in _PLACES else loc
    name = clean_text(".".join(map(str, parts))) or "body"
    return name if len(name) <= _MAX_NAME_CHARS else f"{name[:_MAX_NAME_CHARS]}…"


Limit = Annotated[int, Query(ge=1, le=200)]
DEFAULT_LIMIT = 50
Parameter = Annotated[str, Query(max_length=500)]
Switch = Annotated[bool, BeforeValidator(lambda text: text or False), Query()]

_MAX_ID_DIGITS = 15
"""Fits the integers of the database, doubled."""


def read_cursor(name: str, text: str) -> int | None:
    """Return a numeric cursor that this server issued; None if none was given.

    Raise `UnprocessableEntity` if it was not issued.
    """
    cursor = read_id(text)
    if text and cursor is None:
        raise unknown_cursor(name)
    return cursor


def read_id(text: str) -> int | None:
    """Return a number of the database; None if the text is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_ID_DIGITS
    return int(text) if is_number else None


def unknown_cursor(name: str) -> UnprocessableEntity:
    """Return the error about a cursor that was never issued."""
    return bad_field(name, f"`{name}` is not a cursor that this server issued.")
