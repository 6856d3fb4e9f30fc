"""The bodies of requests about conversations. Values are not coerced; unknown fields are errors."""

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from gateway.conversations.model import ConversationChange, Unsettable
from gateway.conversations.webhooks import WebhookEvent
from gateway.turns.approval_answer import Reply
from gateway.turns.requests import ChatRequest, WhenBusy
from policies.permits import Reach
from policies.secrets import mask_secrets
from policies.web import MAX_URL_CHARS


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def name_or_nothing(text: str) -> str:
    """Validate an optional parameter that is a name."""
    if "\0" in text:
        raise ValueError("must not hold NUL")
    return _filled(text) if text else text


def label(text: str) -> str:
    """Validate an app or environment and trim it."""
    if not text.isprintable():
        raise ValueError("must be one line of printable characters")
    if mask_secrets(text) != text:
        raise ValueError("must be a name; this looks like a secret")
    return text.strip()


def model_name(text: str) -> str:
    """Refuse a name that the agent program could take for an option."""
    if not text.isprintable() or text.startswith("-"):
        raise ValueError("must be the name of a model")
    return text


Message = Annotated[str, Field(min_length=1, max_length=200_000), AfterValidator(_filled)]
MAX_NAME_CHARS = 200
_DAY_S = 86_400
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS), AfterValidator(_filled)]
Label = Annotated[str, Field(max_length=MAX_NAME_CHARS), AfterValidator(label)]
"""An app, an environment or a project; an empty one means any."""
Project = Annotated[Name, AfterValidator(label)]


class Body(BaseModel):
    """A request's JSON object; `parse_body` has refused NUL and lone surrogates in it."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ForeignBody(Body):
    """A request of another protocol; fields that Candor has no use for are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class ChatBody(Body):
    """`POST /chat` and `POST /chat/stream`."""

    message: Message
    conversation_id: Name | None = None
    new_conversation: bool = False
    when_busy: WhenBusy = "enqueue"
    idempotency_key: Name | None = None
    project_id: Project | None = None

    def request(self) -> ChatRequest:
        """Return the request for a turn."""
        return ChatRequest(**self.model_dump())


class NewConversationBody(Body):
    """`POST /new-conversation`."""

    conversation_id: Name | None = None
    title: Name | None = None
    project_id: Project | None = None


class Change(Body):
    """A partial change. An absent field stays; null is valid only for `unsettable` fields."""

    unsettable: ClassVar[tuple[str, ...]] = ()

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_null(cls, value: object, field: ValidationInfo) -> object:
        if value is None and field.field_name not in cls.unsettable:
            raise ValueError("must not be null; leave it out to keep it as it is")
        return value


class MemoryChange(Change):
    """Which memory a conversation uses."""

    enabled: bool | None = None
    case_memory: bool | None = None


class ConversationBody(Change):
    """`PATCH /conversations/{id}`; an empty label unsets it."""

    unsettable: ClassVar[tuple[Unsettable, ...]] = (
        "model",
        "app_code",
        "environment",
        "project_id",
    )

    title: Name | None = None
    model: Annotated[Name, AfterValidator(model_name)] | None = None
    memory: MemoryChange = MemoryChange()
    app_code: Label | None = None
    environment: Label | None = None
    project_id: Label | None = None
    pinned: bool | None = None

    def change(self) -> ConversationChange:
        """Return the change of the conversation."""
        return ConversationChange(
            **self.model_dump(exclude={"memory"}),
            memory_enabled=self.memory.enabled,
            case_memory=self.memory.case_memory,
            unset=[
                name
                for name in self.unsettable
                if name in self.model_fields_set and not getattr(self, name)
            ],
        )


class ForkBody(Body):
    """`POST /conversations/{id}/fork`."""

    turn_id: Name
    before: bool = False


class ApprovalBody(Body):
    """`POST /approvals/{id}`."""

    decision: Literal["allow", "deny"]
    message: Annotated[str, StringConstraints(strip_whitespace=True, max_length=10_000)] = ""
    remember: Literal["once", "conversation"] = "once"
    reach: Reach = "exact"
    answers: Annotated[
        dict[str, Annotated[str, Field(max_length=10_000)]], Field(max_length=16)
    ] = {}
    """To the agent's questions, by their texts."""

    @field_validator("reach")
    @classmethod
    def _refuse_without_rule(cls, reach: Reach, body: ValidationInfo) -> Reach:
        if body.data.get("remember") == "once":
            raise ValueError('goes with `"remember": "conversation"`: send both, or neither')
        return reach

    def reply(self) -> Reply:
        """Return the person's answer."""
        return Reply(**self.model_dump())


Cron = Annotated[str, Field(min_length=1, max_length=200)]
TimeZone = Annotated[str, Field(min_length=1, max_length=100)]


class ScheduleBody(Body):
    """`POST /schedules`."""

    name: Name
    cron: Cron
    time_zone: TimeZone
    message: Message
    conversation_id: Name | None = None
    project_id: Project | None = None
    enabled: bool = True


class ScheduleChangeBody(Change):
    """`PATCH /schedules/{id}`."""

    unsettable = ("conversation_id", "project_id")

    name: Name | None = None
    cron: Cron | None = None
    time_zone: TimeZone | None = None
    message: Message | None = None
    conversation_id: Name | None = None
    project_id: Project | None = None
    enabled: bool | None = None


class RunScheduleBody(Body):
    """`POST /schedules/{id}/run`."""

    idempotency_key: Name | None = None


class WebhookBody(Body):
    """`POST /webhooks`."""

    url: Annotated[str, Field(min_length=1, max_length=MAX_URL_CHARS)]
    events: Annotated[
        list[WebhookEvent], Field(min_length=1, max_length=len(get_args(WebhookEvent)))
    ]


class WebhookSwitchBody(Body):
    """`PATCH /webhooks/{id}`."""

    state: Literal["on", "off"]


class NewSecretBody(Body):
    """`POST /webhooks/{id}/secret`."""

    overlap_s: Annotated[int, Field(ge=0, le=7 * _DAY_S)] = _DAY_S
    """For how long messages are signed with the secret before, too."""
