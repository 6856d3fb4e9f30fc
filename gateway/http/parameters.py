"""Query parameters that several routes share. An empty one counts as not given."""

from typing import Annotated

from fastapi import Query

from gateway.errors import UnprocessableEntity
from gateway.http.validation_errors import bad_field

MAX_LIMIT = 200
MAX_PARAMETER_CHARS = 500

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
DEFAULT_LIMIT = 50
Parameter = Annotated[str, Query(max_length=MAX_PARAMETER_CHARS)]

_SWITCH = {"": False, "0": False, "false": False, "1": True, "true": True}


def read_switch(name: str, text: str) -> bool:
    """Read `1` or `0`.

    Raises:
        UnprocessableEntity: it is neither.
    """
    if text.lower() not in _SWITCH:
        raise bad_field(name, f"`{name}` must be 1 or 0.")
    return _SWITCH[text.lower()]


def read_place(name: str, text: str) -> int | None:
    """Read a place in a list as this server gave it out; None: none was given.

    Raises:
        UnprocessableEntity: it was not given out.
    """
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_PLACE_DIGITS):
        raise unknown_place(name)
    return int(text)


def unknown_place(name: str) -> UnprocessableEntity:
    """Make the error about a place in a list that was never given out."""
    return bad_field(name, f"`{name}` is not a place that this server gave out.")


_MAX_PLACE_DIGITS = 15
"""Fits the integers of the database, doubled."""
