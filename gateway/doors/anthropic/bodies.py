"""The bodies of Managed Agents. What Candor has no use for is ignored; what it cannot honour is
refused.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from gateway.errors import UnprocessableEntity
from gateway.http.schemas import ForeignBody, Name, model_name

MAX_CHARS: Final = 200_000
"""Of a message with the agent's instructions; the limit of `POST /chat`."""
_TOOLSET: Final = "agent_toolset_"
_MAX_EVENTS: Final = 50


Metadata = Annotated[
    dict[
        Annotated[str, Field(max_length=64)],
        Annotated[str, Field(max_length=512)],
    ],
    Field(max_length=16),
]
ModelName = Annotated[Name, AfterValidator(model_name)]


class ModelConfig(ForeignBody):
    """A model by its id; other fields have no meaning here."""

    id: ModelName


class AgentChange(ForeignBody):
    """`POST /anthropic/v1/agents/{id}`: a field that is absent stays."""

    model: ModelName | ModelConfig | None = None
    name: Name | None = None
    version: int | None = None
    description: Annotated[str, Field(max_length=2048)] | None = None
    system: Annotated[str, Field(max_length=100_000)] | None = None
    metadata: Metadata = Field(default_factory=dict)
    tools: Annotated[list[dict[str, Any]], Field(max_length=256)] | None = None
    mcp_servers: Any = None
    skills: Any = None
    multiagent: Any = None

    def fields(self) -> dict[str, Any]:
        """Return what is stored of it. Raise `UnprocessableEntity` for what cannot be honoured."""
        refuse(self, mcp_servers="MCP servers", skills="Skills", multiagent="Further agents")
        for tool in self.tools or ():
            if not str(tool.get("type")).startswith(_TOOLSET):
                raise UnprocessableEntity(
                    "Custom tools and MCP tools of a client are not taken; the agent has Candor's"
                    " own."
                )
        if "name" in self.model_fields_set and self.name is None:
            raise UnprocessableEntity(
                "An agent has a name; leave `name` out to keep it.", details={"field": "name"}
            )
        names = {"name", "description", "system", "metadata"} & self.model_fields_set
        stored = {name: getattr(self, name) for name in names}
        if self.model is not None:
            stored["model"] = self.model if isinstance(self.model, str) else self.model.id
        if self.tools is not None:
            stored["tools"] = [{"type": str(tool["type"])} for tool in self.tools]
        return stored


class AgentBody(AgentChange):
    """`POST /anthropic/v1/agents`."""

    model: ModelName | ModelConfig
    name: Name


class EnvironmentBody(ForeignBody):
    """`POST /anthropic/v1/environments`."""

    name: Name
    description: Annotated[str, Field(max_length=2048)] | None = None
    metadata: Metadata = Field(default_factory=dict)
    config: dict[str, Any] | None = None


class AgentReference(ForeignBody):
    """An agent by its id; what would override it is refused."""

    id: Name
    type: str = "agent"
    version: int | None = None
    model: Any = None
    system: Any = None
    tools: Any = None
    mcp_servers: Any = None
    skills: Any = None


class TextPart(ForeignBody):
    """A part of a message that is text."""

    type: Literal["text"]
    text: Annotated[str, Field(max_length=MAX_CHARS)]


class OtherPart(ForeignBody):
    """A part of a kind that Candor does not take."""

    type: Name


def _part_kind(part: object) -> str:
    is_text = isinstance(part, dict) and part.get("type") == "text"
    return "text" if is_text else "other"


Part = Annotated[
    Annotated[TextPart, Tag("text")] | Annotated[OtherPart, Tag("other")],
    Discriminator(_part_kind),
]


class UserMessage(ForeignBody):
    """A message of the person."""

    type: Literal["user.message"]
    content: Annotated[list[Part], Field(min_length=1, max_length=100)]

    def text(self) -> str:
        """Return its text. Raise `UnprocessableEntity` if it is blank or holds something else."""
        for part in self.content:
            if not isinstance(part, TextPart):
                raise UnprocessableEntity(
                    f"Message parts of the type {part.type[:40]!r} are not taken; send text."
                )
        text = "\n".join(part.text for part in self.content if isinstance(part, TextPart)).strip()
        if not text:
            raise UnprocessableEntity("The message is blank.")
        return text


class UserInterrupt(ForeignBody):
    """The person stops the agent."""

    type: Literal["user.interrupt"]


class ToolConfirmation(ForeignBody):
    """The person's answer to a call that waits."""

    type: Literal["user.tool_confirmation"]
    tool_use_id: Name
    result: Literal["allow", "deny"]
    deny_message: Annotated[str, Field(max_length=10_000)] | None = None


class OtherEvent(ForeignBody):
    """An event of a kind that Candor does not take."""

    type: Name


_TAKEN: Final = frozenset({"user.message", "user.interrupt", "user.tool_confirmation"})


def _event_kind(event: object) -> str:
    kind = event.get("type") if isinstance(event, dict) else None
    return kind if isinstance(kind, str) and kind in _TAKEN else "other"


UserEvent = Annotated[
    Annotated[UserMessage, Tag("user.message")]
    | Annotated[UserInterrupt, Tag("user.interrupt")]
    | Annotated[ToolConfirmation, Tag("user.tool_confirmation")]
    | Annotated[OtherEvent, Tag("other")],
    Discriminator(_event_kind),
]


class EventsBody(ForeignBody):
    """`POST /anthropic/v1/sessions/{id}/events`."""

    events: Annotated[list[UserEvent], Field(min_length=1, max_length=_MAX_EVENTS)]


class SessionBody(ForeignBody):
    """`POST /anthropic/v1/sessions`."""

    agent: Name | AgentReference
    environment_id: Name
    title: Annotated[str, Field(max_length=200)] | None = None
    metadata: Metadata = Field(default_factory=dict)
    initial_events: list[UserEvent] = Field(default_factory=list, max_length=_MAX_EVENTS)
    resources: Any = None
    vault_ids: Any = None
    budget: Any = None


class SessionChange(ForeignBody):
    """`POST /anthropic/v1/sessions/{id}`: a field that is absent stays."""

    title: Annotated[str, Field(max_length=200)] | None = None
    metadata: Metadata | None = None
    agent: Any = None
    vault_ids: Any = None
    budget: Any = None


def refuse(body: ForeignBody, **names: str) -> None:
    """Raise `UnprocessableEntity` if one of these fields is given: it cannot be honoured here."""
    for field, told in names.items():
        if getattr(body, field):
            raise UnprocessableEntity(
                f"{told} of a client are not taken here; leave `{field}` out.",
                details={"field": field},
            )


def refuse_packages(config: Mapping[str, Any] | None) -> None:
    """Raise `UnprocessableEntity` if an environment wants packages: there is one, as it is."""
    if config and config.get("packages"):
        raise UnprocessableEntity(
            "Packages cannot be added: the agent works where this server runs.",
            details={"field": "config"},
        )
