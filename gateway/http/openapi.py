"""What the app's own OpenAPI says beyond what FastAPI finds by itself: bodies, and the one error shape.

Routes read their bodies themselves, within limits, so FastAPI does not see them.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict

from gateway.http.schemas import Body


class Fault(BaseModel):
    """What is inside of every error."""

    model_config = ConfigDict(extra="forbid")

    code: str
    message: str
    retryable: bool
    request_id: str
    details: dict[str, Any]


class ErrorShape(BaseModel):
    """The body of every answer that is an error."""

    model_config = ConfigDict(extra="forbid")

    error: Fault


def takes(model: type[Body], *, required: bool = True) -> dict[str, Any]:
    """Describe the JSON body that a route reads."""
    schema = _without_refs(model.model_json_schema())
    return {
        "requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}
    }


def _without_refs(schema: dict[str, Any]) -> dict[str, Any]:
    """Put definitions where they are used: a route's own part of the document has no place for them."""
    definitions: dict[str, Any] = schema.pop("$defs", {})

    def resolve(value: Any) -> Any:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            return resolve(definitions[name]) if name else {k: resolve(v) for k, v in value.items()}
        return [resolve(one) for one in value] if isinstance(value, list) else value

    resolved: dict[str, Any] = resolve(schema)
    return resolved


ERRORS: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "It could not be served.",
        "content": {"application/json": {"schema": _without_refs(ErrorShape.model_json_schema())}},
    }
}
"""Of every route, also of those that answer something else than JSON when all is well."""

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events.",
        "content": {"text/event-stream": {"schema": {"type": "object"}}},
    }
}
