"""Every text field of every route, from the service's own description of itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

Json: TypeAlias = dict[str, Any]
Steps: TypeAlias = tuple[str | int, ...]

_JSON: Final = "application/json"
_LISTED: Final = 20
"""The most items of a list that hold a text; a body must not exceed its own limit."""
_UNLIMITED: Final = 1_000_000
_OTHER: Final = "anything"
"""The name of a field where every name is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextField:
    """A field that takes a text."""

    method: str
    template: str
    place: Literal["path", "query", "body"]
    steps: Steps
    """The names on the way to it."""
    max_chars: int
    copies: int = 1
    """How often it may be repeated, in a list."""

    @property
    def chars(self) -> int:
        """Return how many characters it takes at most, with its copies."""
        return self.max_chars * self.copies

    def __str__(self) -> str:
        """Return a name for people."""
        return f"{self.method} {self.template} {'.'.join(map(str, self.steps))}"


def text_fields(description: Json, bodies: Mapping[str, Json]) -> Iterator[TextField]:
    """Yield the fields; in free objects those that the example bodies have."""
    for template, operations in description["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", []):
                steps = (parameter["name"],)
                for field in _texts(description, parameter["schema"], steps, None):
                    yield TextField(
                        method=method.upper(), template=template, place=parameter["in"], **field
                    )
            content = operation.get("requestBody", {}).get("content", {})
            if _JSON in content:
                example = bodies.get(template)
                for field in _texts(description, content[_JSON]["schema"], (), example):
                    yield TextField(method=method.upper(), template=template, place="body", **field)


def _texts(description: Json, schema: Json, steps: Steps, example: Any) -> Iterator[Json]:
    """Yield what `TextField` needs of each text below a schema."""
    if "$ref" in schema:
        schema = _referred(description, schema["$ref"])
    for name in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(name, []):
            yield from _texts(description, part, steps, example)
    match schema.get("type"):
        case "string" if not {"enum", "format"} & schema.keys():
            yield {"steps": steps, "max_chars": schema.get("maxLength", _UNLIMITED)}
        case "array":
            copies = min(schema.get("maxItems", _LISTED), _LISTED)
            for field in _texts(description, schema["items"], (*steps, 0), None):
                yield {**field, "copies": copies}
        case "object":
            yield from _texts_of_object(description, schema, steps, example)
        case _:
            return


def _texts_of_object(description: Json, schema: Json, steps: Steps, example: Any) -> Iterator[Json]:
    given = example if isinstance(example, dict) else {}
    for name, part in schema.get("properties", {}).items():
        yield from _texts(description, part, (*steps, name), given.get(name))
    match schema.get("additionalProperties"):
        case True:
            for name, value in given.items():
                if isinstance(value, str):
                    yield {"steps": (*steps, name), "max_chars": _UNLIMITED}
        case dict(part):
            yield from _texts(description, part, (*steps, _OTHER), None)
        case _:
            return


def _referred(description: Json, address: str) -> Json:
    found: Json = description
    for name in address.removeprefix("#/").split("/"):
        found = found[name]
    return found


def with_text(body: Json, field: TextField, text: str) -> Json:
    """Return a body with a text in its place, repeated where it is in a list."""
    value: Any = text
    for step in reversed(field.steps[1:]):
        value = [value] * field.copies if step == 0 else {step: value}
    merged: Json = _merged(body, {field.steps[0]: value})
    return merged


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **{name: _merged(one.get(name), value) for name, value in other.items()}}
    return other
