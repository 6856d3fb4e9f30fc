"""A JSON response that can always be written: whatever a stored value holds, valid JSON comes out."""

from typing import Any

from starlette.responses import Response

from gateway.jsonsafe import json_text


class JsonResponse(Response):
    """JSON in UTF-8."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write the body."""
        return json_text(content).encode()
