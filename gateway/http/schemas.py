"""The bodies that clients send. Nothing is coerced; an unknown field is an error that names it."""

from typing import Annotated, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)

from gateway.conversations.model import ConversationChange, Unsettable
from gateway.turns.requests import ChatRequest, WhenBusy
from policies.secrets import mask_secrets


def without_nul(text: str) -> str:
    """Refuse a text that databases and files would cut short."""
    if "\0" in text:
        raise ValueError("must not hold a NUL character")
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("must hold more than white space")
    return without_nul(text)


def name_or_nothing(text: str) -> str:
    """Refuse what no name can be, in a parameter that need not be given."""
    return _filled(text) if text else text


def label(text: str) -> str:
    """Read an app or environment; refuse what no label can be."""
    if not text.isprintable():
        raise ValueError("must be one line of printable characters")
    if mask_secrets(text) != text:
        raise ValueError("must be a name; this looks like a secret")
    return text.strip()


def _model_name(text: str) -> str:
    """Refuse what the agent program could take for something else than a name."""
    if not text.isprintable() or text.startswith("-"):
        raise ValueError("must be the name of a model")
    return text


# Text with a bound on its length is refused by pydantic where it holds a lone surrogate; without one not.
Message = Annotated[str, Field(min_length=1, max_length=200_000), AfterValidator(_filled)]
MAX_NAME_CHARS = 200
Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS), AfterValidator(_filled)]
Label = Annotated[str, Field(max_length=MAX_NAME_CHARS), AfterValidator(label)]
"""An app or an environment; an empty one means any."""
Remark = Annotated[str, Field(max_length=10_000), AfterValidator(without_nul)]


class Body(BaseModel):
    """A request's JSON object."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class ChatBody(Body):
    """`POST /chat` and `POST /chat/stream`."""

    message: Message
    conversation_id: Name | None = None
    new_conversation: bool = False
    when_busy: WhenBusy = "enqueue"
    idempotency_key: Name | None = None

    def request(self) -> ChatRequest:
        """Give what it asks for."""
        return ChatRequest(
            message=self.message,
            conversation_id=self.conversation_id,
            new_conversation=self.new_conversation,
            when_busy=self.when_busy,
            idempotency_key=self.idempotency_key,
        )


class NewConversationBody(Body):
    """`POST /new-conversation`."""

    conversation_id: Name | None = None
    title: Name | None = None


class Change(Body):
    """A field that is absent stays as it is; null unsets what can be unset, and else is refused."""

    unsettable: ClassVar[tuple[Unsettable, ...]] = ()

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_null(cls, value: object, field: ValidationInfo) -> object:
        if value is None and field.field_name not in cls.unsettable:
            raise ValueError("must not be null; leave it out to keep it as it is")
        return value


class MemoryChange(Change):
    """What a conversation may remember."""

    enabled: bool | None = None
    case_memory: bool | None = None


class ConversationBody(Change):
    """`PATCH /conversations/{id}`; an empty label is none."""

    unsettable = ("model", "app_code", "environment")

    title: Name | None = None
    model: Annotated[Name, AfterValidator(_model_name)] | None = None
    memory: MemoryChange = MemoryChange()
    app_code: Label | None = None
    environment: Label | None = None

    def change(self) -> ConversationChange:
        """Give what it asks for."""
        return ConversationChange(
            title=self.title,
            model=self.model,
            memory_enabled=self.memory.enabled,
            case_memory=self.memory.case_memory,
            app_code=self.app_code,
            environment=self.environment,
            unset=[
                name
                for name in self.unsettable
                if name in self.model_fields_set and not getattr(self, name)
            ],
        )


class ForkBody(Body):
    """`POST /conversations/{id}/fork`."""

    turn_id: Name


class ApprovalBody(Body):
    """`POST /approvals/{id}`."""

    decision: Literal["allow", "deny"]
    message: Remark = ""
    remember: Literal["once", "conversation"] = "once"
