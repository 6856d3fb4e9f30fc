"""The body of a run of AG-UI, and the message that it holds."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from gateway.chat.threads import Said
from gateway.doors.asked import Conversation
from gateway.errors import UnprocessableEntity
from gateway.http.schemas import ApprovalBody, ForeignBody, Name

_MAX_MESSAGES = 10_000
_MAX_INTERRUPTS = 100


class Message(ForeignBody):
    """A message of the thread; those of tools and of reasoning say nothing new here."""

    role: str
    content: Any = None


class Answer(ForeignBody):
    """What a person answered in an interrupt."""

    approved: bool
    message: str = ""
    answers: Annotated[dict[str, str], Field(default_factory=dict)]


class Resume(ForeignBody):
    """An interrupt that is over."""

    interrupt_id: Annotated[Name, Field(alias="interruptId")]
    status: Literal["resolved", "cancelled"]
    payload: Any = None

    def answer(self) -> ApprovalBody:
        """Return the answer to the approval; a cancelled one is denied.

        Raise a validation error if it was resolved without a decision.
        """
        if self.status == "cancelled":
            return ApprovalBody(decision="deny")
        given = Answer.model_validate(self.payload)
        decision: Literal["allow", "deny"] = "allow" if given.approved else "deny"
        return ApprovalBody(decision=decision, message=given.message, answers=given.answers)


class RunBody(ForeignBody):
    """`POST /ag-ui`."""

    thread_id: Annotated[Name, Field(alias="threadId")]
    run_id: Annotated[Name, Field(alias="runId")]
    messages: Annotated[list[Message], Field(max_length=_MAX_MESSAGES)]
    resume: Annotated[list[Resume], Field(max_length=_MAX_INTERRUPTS)] | None = None


def read_thread(messages: Sequence[Message]) -> Conversation:
    """Take a thread apart; its last message must be the person's.

    Raise `UnprocessableEntity` if it is not, is blank, or holds more than text.
    """
    if not messages or messages[-1].role != "user":
        raise UnprocessableEntity("The last message must be the person's: `role` is `user`.")
    text = _text(messages[-1].content)
    if not text.strip():
        raise UnprocessableEntity("The last message is blank.")
    said: list[Said] = []
    for message in messages[:-1]:
        if message.role == "user":
            said.append(Said("user", _text(message.content)))
        elif message.role == "assistant" and message.content:
            said.append(Said("assistant", _text(message.content)))
    instructions = [
        _text(message.content) for message in messages if message.role in {"system", "developer"}
    ]
    return Conversation(
        text=text, pictures=(), before=said, instructions="\n\n".join(instructions).strip()
    )


def _text(content: object) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    texts = [_text_of(part) for part in content] if isinstance(content, list) else []
    told = [text for text in texts if text is not None]
    if not texts or len(told) < len(texts):
        raise UnprocessableEntity("A message holds text; parts of other types are not taken.")
    return "\n".join(told)


def _text_of(part: object) -> str | None:
    """Return the text of a part; None if it is none. A body may hold a million of them, for which
    models would take many seconds.
    """
    if not isinstance(part, dict) or part.get("type") != "text":
        return None
    text = part.get("text", "")
    return text if isinstance(text, str) else None
