"""Leaves out sentences that memory had shown, so that they are not remembered again."""

import re
from collections.abc import Callable, Iterable
from typing import Final

# A sentence ends with its mark, a Western one also needs the white space after it.
_SENTENCE_END: Final = re.compile(r"(?<=[。！？!?；;])[ \t]*|(?<=\.)[ \t]+")
_AROUND: Final = " \t-*•>.。！？!?；;,，:："
"""Marks of lists and ends of sentences; texts that differ in these alone are equal."""


def without_recalled(text: str, recalled: Iterable[str]) -> str:
    """Return the text without the sentences that stand in one of the recalled texts."""
    shown = [_plain(known) for known in recalled]
    if not shown:
        return text
    return without_sentences(
        text, lambda sentence: any(_plain(sentence) in known for known in shown)
    )


def without_sentences(text: str, is_left_out: Callable[[str], bool]) -> str:
    """Return the text without some of its sentences, and without the lines that are empty then."""
    lines: list[str] = []
    for line in text.split("\n"):
        sentences = _SENTENCE_END.split(line)
        kept = [sentence for sentence in sentences if not is_left_out(sentence)]
        if kept:
            lines.append(line if len(kept) == len(sentences) else " ".join(kept))
    return "\n".join(lines)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_AROUND)
