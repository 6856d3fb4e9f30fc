"""What a server says of its tools, and what of it the operator has accepted.

A description is read by the model like an instruction. So agents are offered the accepted
definition alone, and a tool whose definition has changed since is off until it is accepted.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from gateway.nesting import depth_of
from policies.inputs import MAX_DEPTH

MAX_TOOLS: Final = 200
MAX_DEFINITION_CHARS: Final = 20_000
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PROPERTY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What the model's service accepts; with another name it would refuse every request."""

ToolState = Literal["offered", "changed", "new", "missing", "unusable"]
"""In use; waits for the operator, because it changed or is new; the server does not have it now;
its definition cannot be offered."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as its server describes it, reduced to what an agent sees."""

    name: str
    description: str
    input_schema: Mapping[str, Any]

    @classmethod
    def read(cls, name: str, description: str, schema: Mapping[str, Any]) -> "ToolDefinition":
        """Take a definition from outside; of its schema the arguments are kept."""
        properties = schema.get("properties")
        fields = properties if isinstance(properties, Mapping) else {}
        required = schema.get("required")
        kept: dict[str, Any] = {
            "type": "object",
            "properties": {
                str(key): value if isinstance(value, Mapping) else {}
                for key, value in fields.items()
            },
            "required": [
                key
                for key in (required if isinstance(required, list) else [])
                if isinstance(key, str) and key in fields
            ],
        }
        definitions = {
            key: schema[key]
            for key in ("$defs", "definitions")
            if isinstance(schema.get(key), Mapping)
        }
        return cls(name, description, {**kept, **definitions})

    @property
    def text(self) -> str:
        """The whole definition as text."""
        return json.dumps([self.name, self.description, self.input_schema], sort_keys=True)

    @property
    def digest(self) -> str:
        """The SHA-256 of the definition."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def is_usable(self) -> bool:
        """True if a model's service takes it."""
        return (
            _NAME.fullmatch(self.name) is not None
            and len(self.text) <= MAX_DEFINITION_CHARS
            and _is_json(self.input_schema)
            and depth_of(self.text) <= MAX_DEPTH
            and all(_PROPERTY.fullmatch(name) for name in self.input_schema["properties"])
        )


def _is_json(value: object) -> bool:
    """Return whether a value can be sent: its numbers are finite, as JSON has them."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


Definitions = Mapping[str, ToolDefinition]
"""By the tool's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What becomes of a server's tools."""

    states: Mapping[str, ToolState]
    accepted: Definitions
    waiting: Definitions
    """As the server describes them now, where that is not accepted."""

    @property
    def offered(self) -> list[ToolDefinition]:
        """The tools that agents get; one that is missing now may come back."""
        kept = {"offered", "missing"}
        return [tool for name, tool in self.accepted.items() if self.states[name] in kept]


def review(
    wanted: Collection[str] | None, accepted: Definitions | None, listed: Iterable[ToolDefinition]
) -> Review:
    """Compare what a server lists with what was accepted.

    `wanted` are the tools that the operator names; None: all. What is seen of a server for the
    first time (`accepted` is None), and what is named and was never seen, is accepted as it is.
    """
    found = {tool.name: tool for tool in listed if wanted is None or tool.name in wanted}
    known = dict(accepted or {})
    states: dict[str, ToolState] = {}
    for name, tool in found.items():
        if not tool.is_usable:
            states[name] = "unusable"
        elif name not in known and (accepted is None or wanted is not None):
            known[name], states[name] = tool, "offered"
        elif name not in known:
            states[name] = "new"
        else:
            states[name] = "offered" if known[name].digest == tool.digest else "changed"
    kept = {name: tool for name, tool in known.items() if wanted is None or name in wanted}
    for name in [*kept, *(wanted or ())]:
        states.setdefault(name, "missing")
    waiting = {name: found[name] for name, state in states.items() if state in {"changed", "new"}}
    return Review(states=states, accepted=kept, waiting=waiting)
