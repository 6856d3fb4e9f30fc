"""Reads what a message asks of memory: to remember, to forget, or to correct something.

A trained model judges each sentence that is not quoted (`sentence_model`). A fact keeps the person's own
words; only the plainest introduction ("remember that", 记住) is left out. A sentence that has little content
of its own ("please remember that") is kept with the one before it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memory.facts.sentence_model import Label, probabilities
from memory.facts.wording import says_change, subject_of
from memory.own_words import OwnSentence, own_sentences
from memory.terms import terms
from policies.patterns import read_patterns

Wish = Literal["request", "statement", "correction", "forget", "undo"]

MAX_WISHES: Final = 10
"""Of one message; more are a list that was pasted."""

_WISHES: Final[dict[Label, Wish]] = {
    "keep": "request",
    "self": "statement",
    "correction": "correction",
    "forget": "forget",
    "undo": "undo",
}
_MIN_PROBABILITY: Final = 0.5
_MIN_PROBABILITY_ABOUT_FACT: Final = 0.15
_LITTLE: Final = 3
"""Terms; a request with fewer of them is about the sentence before alone."""
_SHORT: Final = 8
_POINTS_BACK: Final = re.compile(r"\b(?:that|this|it|those|these)\b|[这這那它此]", re.IGNORECASE)
_NAMES_NONE: Final = re.compile(
    r"\b(?:it|them)\b|\b(?:that|this|those)\W*(?:please|now|thanks)?$|它|[这那](?:个|条|些|件事)?[吧了]?$",
    re.IGNORECASE,
)
"""What a request to forget says of a thing that the sentence before names."""
_PATTERNS = read_patterns(__file__)
_INTRODUCTION: Final = re.compile(_PATTERNS["introduction"], re.IGNORECASE)
_DENIAL: Final = re.compile(_PATTERNS["denial"], re.IGNORECASE)
_DENIES: Final = re.compile(_PATTERNS["denies"], re.IGNORECASE)
_QUESTION: Final = re.compile(r"[?？吗嗎][\s\"'”’]*$")
_POLITE: Final = re.compile(_PATTERNS["polite"], re.IGNORECASE)
_ALWAYS: Final = re.compile(_PATTERNS["always"], re.IGNORECASE)
_EDGES: Final = " \"'.~;,:。；，：-—"


@dataclass(frozen=True, slots=True)
class Wished:
    """What a sentence asks of memory."""

    wish: Wish
    text: str
    """What to keep, or what to forget."""
    lasting: bool = False
    """True if it holds for every conversation, so that it belongs into the person's profile."""
    is_firm: bool = True
    """False for a correction that is looked for only among facts that share many words with it, and for a
    statement that says that something has changed."""
    stands_alone: bool = True
    """False if it counts only where it replaces a fact; such a statement, one of its subject."""


def read_wishes(message: str) -> list[Wished]:
    """Return what a message asks of memory, in its order, at most ten; each text once.

    Takes time linear in the message: a millisecond for some 3 000 characters.
    """
    wishes: list[Wished] = []
    sentences = list(own_sentences(message))
    for at in range(len(sentences)):
        wished = _wished(sentences, at)
        if wished is None:
            continue
        before = sentences[at - 1].text.strip(_EDGES) if at else None
        if wishes and wishes[-1].text == before and wished.text.startswith(before):
            del wishes[-1]  # "… . Remember that, please."
        if wished.text.casefold() not in {wish.text.casefold() for wish in wishes}:
            wishes.append(wished)
    return wishes if len([wish for wish in wishes if wish.is_firm]) <= MAX_WISHES else []


def _wished(sentences: Sequence[OwnSentence], at: int) -> Wished | None:
    sentence = sentences[at]
    likely = probabilities(sentence.context)
    label = max(likely, key=lambda name: likely[name])
    of_forgetting = likely["forget"] + likely["undo"]
    if of_forgetting >= _MIN_PROBABILITY:
        label = "forget" if likely["forget"] >= likely["undo"] else "undo"
        likely[label] = of_forgetting
    if _QUESTION.search(sentence.text) and not _POLITE.match(sentence.text):
        return None
    introduced = _INTRODUCTION.match(sentence.text)
    found = introduced or _DENIAL.match(sentence.text)
    content = (sentence.text[found.end() :] if found else sentence.text).strip(_EDGES)
    is_introduced = introduced is not None and likely["keep"] >= _MIN_PROBABILITY_ABOUT_FACT
    if is_introduced and label in ("none", "keep", "correction"):
        label = "keep"
    elif label == "none" or likely[label] < _MIN_PROBABILITY:
        if label in ("forget", "undo"):
            return None
        if likely["none"] > 1 - _MIN_PROBABILITY_ABOUT_FACT:
            if sentence.context.after_colon or not (says_change(content) and subject_of(content)):
                return None
            return Wished("statement", content, is_firm=False, stands_alone=False)
        return Wished("correction", content, is_firm=False, stands_alone=False)
    if label == "keep":
        text = _kept(sentences, at, content)
        return Wished("request", text, lasting=bool(_ALWAYS.search(text))) if text else None
    if label == "forget" and at and len(terms(content)) < _SHORT and _NAMES_NONE.search(content):
        return Wished("forget", sentences[at - 1].text.strip(_EDGES))
    stands_alone = label != "correction" or _DENIES.match(sentence.text) is not None
    return Wished(_WISHES[label], content, lasting=label == "self", stands_alone=stands_alone)


def _kept(sentences: Sequence[OwnSentence], at: int, content: str) -> str:
    """Return what a request asks to keep; empty if it is about nothing that the message says."""
    if sentences[at].text.endswith((":", "：")):
        same = (following for following in sentences[at + 1 :])
        listed = [one.text for one in same if one.paragraph == sentences[at].paragraph]
        return " ".join([content, *listed]).strip()
    if at == 0:
        return content
    before, words = sentences[at - 1].text.strip(_EDGES), len(terms(content))
    if words < _LITTLE:
        return before
    return f"{before}; {content}" if words < _SHORT and _POINTS_BACK.search(content) else content
