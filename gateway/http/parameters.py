"""Query parameters that several routes share. An empty one counts as not given."""

from typing import Annotated

from fastapi import Query
from pydantic import BeforeValidator

from gateway.errors import UnprocessableEntity
from gateway.http.validation_errors import bad_field

Limit = Annotated[int, Query(ge=1, le=200)]
DEFAULT_LIMIT = 50
Parameter = Annotated[str, Query(max_length=500)]
Switch = Annotated[bool, BeforeValidator(lambda text: text or False), Query()]

_MAX_ID_DIGITS = 15
"""Fits the integers of the database, doubled."""


def read_cursor(name: str, text: str) -> int | None:
    """Return a numeric cursor that this server issued; None if none was given.

    Raises:
        UnprocessableEntity: it was not issued.
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
