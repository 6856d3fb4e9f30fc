"""What the OpenAPI description says beyond what FastAPI finds: request bodies and the one error
shape.

Routes read their bodies themselves, within limits, so FastAPI does not see them.
"""

from typing import Any

from pydantic import BaseModel

from gateway.http.schemas import Body


class Error(Body):
    """The content of every error."""

    code: str
    message: str
    retryable: bool
    request_id: str
    details: dict[str, Any]


class ErrorShape(Body):
    """The body of every error response."""

    error: Error


def takes(model: type[Body], *, required: bool = True) -> dict[str, Any]:
    """Return the description of the JSON body that a route reads."""
    content = {"application/json": {"schema": _inlined_schema(model)}}
    return {"requestBody": {"required": required, "content": content}}


def _inlined_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's schema with its definitions inlined; a route's part cannot hold any."""
    schema = model.model_json_schema()
    definitions: dict[str, Any] = schema.pop("$defs", {})

    def resolve(value: Any) -> Any:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            return resolve(definitions[name]) if name else {k: resolve(v) for k, v in value.items()}
        return [resolve(item) for item in value] if isinstance(value, list) else value

    resolved: dict[str, Any] = resolve(schema)
    return resolved


def errors_of(shape: type[Body]) -> dict[int | str, dict[str, Any]]:
    """Return the description of error responses with this body."""
    content = {"application/json": {"schema": _inlined_schema(shape)}}
    return {"default": {"description": "The request failed.", "content": content}}


ERRORS = errors_of(ErrorShape)
"""Of every route, also of those whose success is not JSON."""

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events.",
        "content": {"text/event-stream": {"schema": {"type": "object"}}},
    }
}
