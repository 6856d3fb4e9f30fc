"""The sentences of a message, without code and quotations, each with what stands around it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_CHARS: Final = 20_000
"""Of a longer message the beginning and the end are read."""

_FENCE: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINE: Final = re.compile(
    r"^[ \t]*(?:>|\|).*$|^(?: {4}|\t).*$"
    r"|^[ \t]*\W?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d).*$",
    re.MULTILINE,
)
"""Quotations, code and lines of logs."""
_QUOTATION: Final = re.compile(
    r"`[^`\n]+`|\"[^\"\n]{8,}\"|“[^”]{6,}”|‘[^’]{6,}’|「[^」]{6,}」|『[^』]{6,}』|(?<=[\s:：])'[^'\n]{12,}'(?=[\s.,!?]|$)"
)
_CODE: Final = re.compile(r"[{}<>=|$\\]")
_MIN_CODE_SIGNS: Final = 3
_SENTENCE_END: Final = re.compile(
    r"(?<=[。！？；])\s*|(?<=[!?;])\s+"
    r"|(?<! [A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|vs|eg)\.)(?<!\b(?:Mrs|etc|Mme)\.)"
    r"(?!(?<=\bNo\.)\s+\d)(?<=\.)\s+|\n"
)
_PARAGRAPH_END: Final = re.compile(r"\n[ \t]*\n\s*")
_MARKS: Final = " -*•\t"
_COLONS: Final = (":", "：")
MENTION: Final = "§"
"""Stands for a quotation."""
_FIRST_PLACE: Final = 0xE000
_PLACES: Final = re.compile("[\ue000-\uf8ff]")
_MAX_QUOTATIONS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceInContext:
    """A sentence and what stands around it."""

    text: str
    before: str = ""
    """The sentence before; empty for the first of the message."""
    opening: str = ""
    """The first sentence of the message; empty for that sentence itself."""
    after_colon: bool = False
    """True if a sentence before has a colon."""


@dataclass(frozen=True, slots=True)
class OwnSentence:
    """One sentence of a message that is not quoted."""

    text: str
    """The sentence without the marks of a list around it."""
    context: SentenceInContext
    """As the model judges it."""
    paragraph: int


def own_sentences(message: str) -> Iterator[OwnSentence]:
    """Yield the sentences of a message in order, without lines of code.

    A quotation inside a sentence is only a mark to the model. Text after a colon may be pasted;
    that it comes after one is in its context.
    """
    half = MAX_CHARS // 2
    text = message if len(message) <= MAX_CHARS else f"{message[:half]}\n\n{message[-half:]}"
    text = _QUOTED_LINE.sub("\n", _FENCE.sub("\n\n", text.replace("\r\n", "\n")))
    quotations: list[str] = []
    text = _QUOTATION.sub(lambda match: _place(match[0], quotations), _PLACES.sub(" ", text))
    before = opening = ""
    after_colon = False
    for number, paragraph in enumerate(_PARAGRAPH_END.split(text.strip())):
        for sentence in _SENTENCE_END.split(paragraph):
            marked = sentence.strip(_MARKS)
            if not any(map(str.isalnum, marked)) or len(_CODE.findall(marked)) >= _MIN_CODE_SIGNS:
                continue
            context = SentenceInContext(
                text=_PLACES.sub(MENTION, marked),
                before=before,
                opening=opening,
                after_colon=after_colon,
            )
            whole = _PLACES.sub(lambda match: quotations[ord(match[0]) - _FIRST_PLACE], marked)
            yield OwnSentence(whole, context, number)
            before, opening = context.text, opening or context.text
            after_colon = (
                after_colon or before.endswith(_COLONS) or ": " in before or "：" in before
            )


def _place(quotation: str, quotations: list[str]) -> str:
    if len(quotations) == _MAX_QUOTATIONS:
        return MENTION
    quotations.append(quotation)
    return chr(_FIRST_PLACE + len(quotations) - 1)
