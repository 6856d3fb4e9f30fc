"""The steps of a turn: text, thinking, tool calls and approvals in the order in which they
happened.

A step's text is unfinished until its block is done: a model's answer that begins again makes the
unfinished part of the earlier one void. After an answer that broke off behind a finished block the
agent program asks the model to go on; if the model repeats that block instead, it counts once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from gateway.observability.masking import clip

_THINKING_CHARS = 8_000
"""Kept of one thinking step; the turn's events and its log have all of it."""
_ALL_THINKING_CHARS = 64_000
_LATE_THINKING_CHARS = 400
"""Kept of each further thinking step of a turn that has `_ALL_THINKING_CHARS` already."""
_APART = "\n\n"
_KEPT = ("message", "permit", "answers", "allowed_by", "state")


@dataclass(slots=True, eq=False)
class _Text:
    pieces: list[str]
    """As they came: joining them at each would take time that grows with the square of the text."""
    is_thinking: bool = False
    is_done: bool = False

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    @text.setter
    def text(self, text: str) -> None:
        self.pieces = [text]


@dataclass(frozen=True, slots=True)
class _Call:
    index: int


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class _Approval:
    approval_id: str
    index: int
    decision: str | None = "deny"
    by: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    """`_KEPT` fields that have a value."""


class Steps:
    """What a turn did, in order. Text that is only white space is no step."""

    def __init__(self) -> None:
        self._steps: list[_Text | _Call | _Approval] = []
        self._unended: list[str] = []
        """The texts of the finished blocks of an answer that has not ended."""
        self._repeatable: list[str] = []
        """Those of them that an answer that goes on may repeat next."""

    @property
    def partial(self) -> str:
        """The text of the block that is being written."""
        block = self._open_text()
        return block.text if block else ""

    @property
    def is_writing(self) -> bool:
        """True if a block has begun and is not done."""
        return self._open_text() is not None

    @property
    def text(self) -> str:
        """All text of the model for the person."""
        blocks = [block.text.strip() for block in self._texts_newest_first()]
        return _APART.join(text for text in reversed(blocks) if text)

    def begin_message(self) -> None:
        """Drop what an unfinished answer wrote."""
        self._repeatable = self._unended.copy()
        self._drop_unfinished()

    def end_message(self) -> None:
        """Note that the answer has ended: what follows does not repeat it."""
        self._unended, self._repeatable = [], []

    def is_repeated(self, text: str) -> bool:
        """Return whether a block is the one that the answer before, which broke off, had in its
        place.
        """
        return bool(self._repeatable) and self._repeatable[0].strip() == text.strip()

    def drop_last(self, chars: int, *, is_thinking: bool) -> None:
        """Drop the last characters of the text, or of the thinking."""
        for step in reversed(self._steps):
            if isinstance(step, _Text) and step.is_thinking == is_thinking:
                dropped = min(chars, len(step.text))
                step.text = step.text[: len(step.text) - dropped]
                chars -= dropped
        self._steps = [step for step in self._steps if not isinstance(step, _Text) or step.text]

    def drop_partial(self) -> None:
        """Drop the text of the block that is being written."""
        block = self._open_text()
        if block is not None:
            self._steps.remove(block)

    def end_thinking(self) -> None:
        """Keep the thinking so far: its message has ended, or has gone on to something else."""
        for step in self._steps:
            if isinstance(step, _Text) and step.is_thinking:
                step.is_done = True

    def add_thinking(self, text: str) -> None:
        """Add a piece of thinking."""
        last = self._steps[-1] if self._steps else None
        if isinstance(last, _Text) and last.is_thinking and not last.is_done:
            last.pieces.append(text)
        elif text:
            self._steps.append(_Text([text], is_thinking=True))

    def add_text(self, piece: str) -> None:
        """Add a piece of text; a block stands where its first piece came."""
        block = self._open_text()
        if block is not None:
            block.pieces.append(piece)
        elif piece:
            self._steps.append(_Text([piece]))

    def end_text(self, text: str | None = None) -> bool:
        """End the block that is being written, with its whole text if that is known.

        Return whether there is any text.
        """
        block = self._open_text()
        whole = text if text is not None else block.text if block else ""
        if self.is_repeated(whole):
            del self._repeatable[0]
            self._drop_unfinished()
            return True
        self.end_thinking()
        if block is None:
            block = _Text([""])
            self._steps.append(block)
        block.text = whole
        block.is_done = True
        if not whole.strip():
            self._steps.remove(block)
            return False
        self._repeatable = []
        self._unended.append(whole)
        return True

    def add_call(self, index: int) -> None:
        """Add a tool call by its number in the turn."""
        self.end_thinking()
        self._steps.append(_Call(index))

    def add_approval(self, approval_id: str, index: int) -> None:
        """Add a question to a person about a call."""
        self._steps.append(_Approval(approval_id, index))

    def resolve_approval(
        self,
        approval_id: str,
        decision: str | None,
        by: str | None,
        more: Mapping[str, Any] = _NOTHING,
    ) -> None:
        """Set how a question ended; see `_Approval.more`. `decision` is None if it can still be
        answered.
        """
        for step in self._steps:
            if isinstance(step, _Approval) and step.approval_id == approval_id:
                step.decision, step.by = decision, by
                step.more = {key: more[key] for key in _KEPT if more.get(key)}

    def fields(self, closing: str = "") -> list[dict[str, Any]]:
        """Return the steps as the turn result has them; `closing` is the gateway's
        own last text.
        """
        fields = [
            _fields(step)
            for step in self._steps
            if not isinstance(step, _Text) or step.text.strip()
        ]
        return [*fields, closing_step(closing)] if closing else fields

    def _drop_unfinished(self) -> None:
        self._steps = [step for step in self._steps if not isinstance(step, _Text) or step.is_done]

    def _open_text(self) -> _Text | None:
        return next((block for block in self._texts_newest_first() if not block.is_done), None)

    def _texts_newest_first(self) -> Iterator[_Text]:
        for step in reversed(self._steps):
            if isinstance(step, _Text) and not step.is_thinking:
                yield step


def closing_step(text: str) -> dict[str, Any]:
    """Return a text of the gateway's as a step."""
    return {"type": "text", "text": text, "by": "gateway"}


def clean_steps(
    steps: Sequence[dict[str, Any]], reply: str, clean: Callable[[str], str]
) -> list[dict[str, Any]]:
    """Return steps whose texts are sanitized by `clean` and whose thinking is bounded.

    `reply` is the sanitized reply. If it differs from the texts of the steps together, because a
    secret spans two of them, it replaces them.
    """
    left = _ALL_THINKING_CHARS
    cleaned = []
    for step in steps:
        text = clean(step["text"]) if "text" in step else None
        if step["type"] == "thinking" and text is not None:
            text = clip(text, _THINKING_CHARS if left > 0 else _LATE_THINKING_CHARS)
            left -= len(text)
        cleaned.append(step if text is None else {**step, "text": text})
    texts = [step["text"] for step in cleaned if step["type"] == "text"]
    if texts == [reply] or _APART.join(texts).split() == reply.split():
        return cleaned
    return [
        *(step for step in cleaned if step["type"] != "text"),
        {"type": "text", "text": reply},
    ]


def _fields(step: _Text | _Call | _Approval) -> dict[str, Any]:
    match step:
        case _Text():
            kind = "thinking" if step.is_thinking else "text"
            return {"type": kind, "text": step.text.strip()}
        case _Call():
            return {"type": "tool", "index": step.index}
        case _Approval():
            return {
                "type": "approval",
                "approval_id": step.approval_id,
                "index": step.index,
                "decision": step.decision,
                "by": step.by,
                **step.more,
            }
