"""The matters that a text tells of, under one name each, whatever its language and its words for them.

They stand in what is searched of a case, and are asked for with a question: so "连接池耗尽" and "the pool
ran out of connections" meet.
"""

from typing import Final

from memory.cases.wording import kind_of, telling_words

_MATTERS: Final = frozenset({"fault", "effect", "thing", "background"})


def keywords(*texts: str) -> tuple[str, ...]:
    """Give the names of the matters, each once, in the order in which they are told first."""
    words = (one for text in texts for one in telling_words(text))
    return tuple(dict.fromkeys(one for one in words if kind_of(one) in _MATTERS))


def with_keywords(question: str) -> str:
    """Give a question with the names of its matters added; what it says stays as it is."""
    names = " ".join(keywords(question))
    return f"{question}\n{names}" if names else question
