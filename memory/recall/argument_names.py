"""The names of the arguments that a model gives to memory's tools."""

from collections.abc import Mapping
from typing import Any, Final

from memory.text.lines import clipped

_MAX_NAME_CHARS: Final = 60


def unknown_argument(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str | None:
    """Return a sentence for the model if a tool with this schema does not have one of these
    arguments; None if it has them all.
    """
    known = schema["properties"]
    unknown = next((name for name in arguments if name not in known), None)
    if unknown is None:
        return None
    named = clipped(unknown, _MAX_NAME_CHARS)
    return f"`{named}` is not an argument of this tool. It takes: {', '.join(known)}."
