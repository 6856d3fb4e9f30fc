"""JSON responses, valid for any stored value."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from starlette.responses import Response, StreamingResponse

from gateway.jsonsafe import json_text
from memory.clock import rfc3339


class JsonResponse(Response):
    """JSON in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return json_text(content).encode()


class JsonLines(StreamingResponse):
    """One JSON object a line."""

    media_type = "application/x-ndjson"


def fields_of(value: object, names: Sequence[str]) -> dict[str, Any]:
    """Return the named attributes of a value as JSON values."""
    return {name: _plain(getattr(value, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
