"""The bodies of OpenAI's responses and conversations; what the input holds, as messages."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from gateway.doors.openai.bodies import Message
from gateway.doors.openai.messages import text_of
from gateway.errors import UnprocessableEntity
from gateway.http.schemas import ForeignBody

_MAX_ITEMS = 10_000
_ROLES = frozenset({"system", "developer", "user", "assistant"})
_COMPACTED = "compaction"
_TOOL_RESULT = "function_call_output"


Name = Annotated[str, Field(max_length=200)]
_FileName = Annotated[str, Field(max_length=400)]
"""As in chat completions."""


class InputPart(ForeignBody):
    """A part of a message of the input."""

    type: Name
    text: str = ""
    image_url: str | None = None
    file_id: _FileName | None = None
    file_data: str | None = None
    filename: _FileName | None = None


class InputItem(ForeignBody):
    """One item of the input: a message, or what a client sends back of an output."""

    type: Name = "message"
    role: str = ""
    content: str | list[InputPart] | None = None
    encrypted_content: str | None = None
    output: str | list[InputPart] | None = None


class ConversationName(ForeignBody):
    """A conversation by its id."""

    id: str


Input = str | Annotated[list[InputItem], Field(max_length=_MAX_ITEMS)]


class ResponseBody(ForeignBody):
    """`POST /openai/v1/responses`."""

    model: str = "candor"
    input: Input
    instructions: str | None = None
    conversation: Name | ConversationName | None = None
    previous_response_id: Name | None = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None

    @property
    def conversation_id(self) -> str | None:
        """The conversation that is named."""
        named = self.conversation
        return named.id if isinstance(named, ConversationName) else named

    @property
    def behind(self) -> str | None:
        """The response that the new one goes on behind."""
        return _compacted_response(self.input) or self.previous_response_id


class CompactBody(ForeignBody):
    """`POST /openai/v1/responses/compact`."""

    model: str = "candor"
    previous_response_id: Name | None = None
    input: Input | None = None
    instructions: str | None = None

    @property
    def behind(self) -> str | None:
        """The response whose conversation is meant; None if only its history says which."""
        return self.previous_response_id or _compacted_response(self.input or "")


class NewConversation(ForeignBody):
    """`POST /openai/v1/conversations`."""

    items: list[Any] | None = None
    metadata: dict[str, Any] | None = None


def read_input(body: ResponseBody) -> list[Message]:
    """Return the messages of an input, behind its last compaction if it has one; the instructions
    are the first.

    What a client sends back of an output beside messages is left out: Candor has it. Results of the
    client's own tools are kept.
    """
    first = [Message(role="system", content=body.instructions)] if body.instructions else []
    if isinstance(body.input, str):
        return [*first, Message(role="user", content=body.input)]
    compacted = _last_compaction(body.input)
    items = body.input if compacted is None else body.input[compacted + 1 :]
    if not items or items[-1].type != "message":
        raise UnprocessableEntity("The last item of the input must be the person's message.")
    return [*first, *_joined(_messages(items))]


def read_history(body: CompactBody) -> list[Message]:
    """Return the messages of a history that is to be compacted."""
    if body.input is None or isinstance(body.input, str):
        return [Message(role="user", content=body.input)] if body.input else []
    return _joined(_messages(body.input))


def _compacted_response(items: Input) -> str | None:
    """Return the response that the last compaction in an input stands for."""
    compacted = _last_compaction(items)
    return None if compacted is None else items[compacted].encrypted_content  # type: ignore[union-attr]


def _last_compaction(items: str | Sequence[InputItem]) -> int | None:
    if isinstance(items, str):
        return None
    found = [
        at for at, item in enumerate(items) if item.type == _COMPACTED and item.encrypted_content
    ]
    return found[-1] if found else None


def _messages(items: Sequence[InputItem]) -> list[Message]:
    return [_message(item) for item in items if item.type in {"message", _TOOL_RESULT}]


def _message(item: InputItem) -> Message:
    if item.type == _TOOL_RESULT:
        parts = item.output if isinstance(item.output, list) else []
        text = item.output if isinstance(item.output, str) else "\n".join(p.text for p in parts)
        return Message(role="tool", content=text)
    if item.role not in _ROLES:
        raise UnprocessableEntity(
            "The `role` of a message is user, assistant, system or developer."
        )
    content: Any = item.content
    if isinstance(content, list):
        content = list(map(_part, content))
    return Message.model_validate({"role": item.role, "content": content})


def _part(part: InputPart) -> dict[str, Any]:
    """Return a part as chat completions write it.

    Raise `UnprocessableEntity` if it is one of theirs.
    """
    if part.type in {"image_url", "file"}:
        raise UnprocessableEntity(
            f"Message parts of the type {part.type!r} are not taken here; send"
            " `input_image` or `input_file`."
        )
    if part.type == "input_image" and part.image_url is not None:
        return {"type": "image_url", "image_url": {"url": part.image_url}}
    if part.type == "input_file":
        file = part.model_dump(include={"file_id", "file_data", "filename"}, exclude_none=True)
        return {"type": "file", "file": file}
    return {"type": part.type, "text": part.text}


def _joined(messages: Sequence[Message]) -> list[Message]:
    """Return messages with those that make up one reply joined."""
    joined: list[Message] = []
    for message in messages:
        if joined and message.role == joined[-1].role == "assistant":
            text = "\n\n".join([text_of(joined.pop()), text_of(message)])
            joined.append(Message(role="assistant", content=text))
        else:
            joined.append(message)
    return joined
