"""The bodies of OpenAI's chat completions. Fields that Candor has no use for are ignored."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from gateway.http.schemas import ForeignBody


class TextPart(ForeignBody):
    """A part of a message that is text."""

    type: Literal["text", "input_text", "output_text"]
    text: str


class ImageUrl(ForeignBody):
    """Where a picture is: a `data:` address."""

    url: str


class ImagePart(ForeignBody):
    """A part of a message that is a picture."""

    type: Literal["image_url"]
    image_url: ImageUrl


class FileContent(ForeignBody):
    """A file: one that was sent before, or a `data:` address with a name."""

    file_id: Annotated[str, Field(max_length=400)] | None = None
    file_data: str | None = None
    filename: Annotated[str, Field(max_length=400)] = "file"


class FilePart(ForeignBody):
    """A part of a message that is a file."""

    type: Literal["file"]
    file: FileContent


class OtherPart(ForeignBody):
    """A part of a kind that Candor does not take."""

    type: Annotated[str, Field(max_length=200)]


def _kind(part: object) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in {"text", "input_text", "output_text"}:
        return "text"
    return {"image_url": "image", "file": "file"}.get(str(kind), "other")


Part = Annotated[
    Annotated[TextPart, Tag("text")]
    | Annotated[ImagePart, Tag("image")]
    | Annotated[FilePart, Tag("file")]
    | Annotated[OtherPart, Tag("other")],
    Discriminator(_kind),
]


class Message(ForeignBody):
    """One message of the history that a client sends."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None


class StreamOptions(ForeignBody):
    """What a stream tells beside the text."""

    include_usage: bool = False


class CompletionBody(ForeignBody):
    """`POST /openai/v1/chat/completions`."""

    model: str
    messages: Annotated[list[Message], Field(min_length=1, max_length=10_000)]
    stream: bool = False
    stream_options: StreamOptions | None = None

    @property
    def wants_usage(self) -> bool:
        """Whether a stream ends with the tokens."""
        return self.stream_options is not None and self.stream_options.include_usage
