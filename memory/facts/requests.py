"""Reads what a message asks of memory: to remember, to forget, or to correct something.

A trained model judges each sentence that is not quoted (`sentence_model`). A fact keeps the person's own
words; only the plainest introduction ("remember that", 记住) is left out. A sentence that has little content
of its own ("please remember that") is kept with the one before it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from memory.facts.sentence_model import Label, probabilities
from memory.own_words import MENTION, OwnSentence, own_sentences
from memory.terms import terms
from memory.wording import says_change, subject_of
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
_KEEPING: Final = frozenset({"keep", "self", "correction"})
_MIN_PROBABILITY: Final = 0.5
_MIN_PROBABILITY_ABOUT_FACT: Final = 0.15
_MIN_PROBABILITY_OF_CHANGE: Final = 0.06
"""For a sentence among others that counts only if it corrects something that was said."""
_MOST_OF_CHANGE: Final = 24
"""Terms of an ordinary sentence that may correct something that was said."""
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
_SURE_REQUEST: Final = re.compile(_PATTERNS["sure_request"], re.IGNORECASE)
_WHOLE_REQUEST: Final = re.compile(_PATTERNS["whole_request"], re.IGNORECASE)
_WHOLE_FORGETTING: Final = re.compile(_PATTERNS["whole_forgetting"], re.IGNORECASE)
_FORGET: Final = re.compile("forget|忘", re.IGNORECASE)
"""In an introduction: "do not forget"."""
_DENIAL: Final = re.compile(_PATTERNS["denial"], re.IGNORECASE)
_DENIES: Final = re.compile(_PATTERNS["denies"], re.IGNORECASE)
_QUESTION: Final = re.compile(r"[?？吗嗎][\s\"'”’]*$")
_POLITE: Final = re.compile(_PATTERNS["polite"], re.IGNORECASE)
_ALWAYS: Final = re.compile(_PATTERNS["always"], re.IGNORECASE)
_NAMES_REMEMBERING: Final = re.compile(_PATTERNS["names_remembering"], re.IGNORECASE)
_ENDS_REMEMBERING: Final = re.compile(_PATTERNS["ends_remembering"], re.IGNORECASE)
_CLOSING_REQUEST: Final = re.compile(_PATTERNS["closing_request"], re.IGNORECASE)
_NAMES_MEMORY: Final = re.compile(_PATTERNS["names_memory"], re.IGNORECASE)
_RULE: Final = re.compile(_PATTERNS["rule"])
_TASK: Final = re.compile(_PATTERNS["task"], re.IGNORECASE)
_OWN_MOVE: Final = re.compile(_PATTERNS["own_move"], re.IGNORECASE)
_PASSING: Final = re.compile(_PATTERNS["passing"], re.IGNORECASE)
_EDGES: Final = " \"'.~;,:。；，：-—?？!！"


@dataclass(frozen=True, slots=True)
class Wished:
    """What a sentence asks of memory."""

    wish: Wish
    text: str
    """What to keep, or what to forget."""
    lasting: bool = False
    """True if it holds for every conversation, so that it belongs into the person's profile."""
    is_firm: bool = True
    """False for a correction or a request to forget that counts only beside a fact that shares many words with it;
    for a correction, another value of a kind will do as well."""
    stands_alone: bool = True
    """False if it counts only where it corrects a fact, a note or an earlier message."""

    @property
    def names_memory(self) -> bool:
        """True if it names remembering or forgetting."""
        return _NAMES_MEMORY.search(self.text) is not None


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
    if len(wishes) > MAX_WISHES:
        wishes = [wish for wish in wishes if wish.is_firm]
    return wishes if len(wishes) <= MAX_WISHES else []


def _wished(sentences: Sequence[OwnSentence], at: int) -> Wished | None:
    sentence, is_whole = sentences[at], len(sentences) == 1
    if (plain := _plain(sentence)) is not None:
        return plain
    label, likely = _judged(sentence)
    if _QUESTION.search(sentence.text) and not _POLITE.match(sentence.text):
        return None
    introduced = _INTRODUCTION.match(sentence.text)
    found = introduced or _DENIAL.match(sentence.text)
    content = (sentence.text[found.end() :] if found else sentence.text).strip(_EDGES)
    may_keep = likely["keep"] >= _MIN_PROBABILITY_ABOUT_FACT or (
        is_whole and bool(subject_of(content)) and _WHOLE_REQUEST.match(sentence.text)
    )
    is_own = not sentence.paragraph and not sentence.context.after_colon
    is_sure = is_own and _SURE_REQUEST.match(sentence.text) and likely["self"] < _MIN_PROBABILITY
    if introduced is not None and (
        is_sure
        or (may_keep and (label in ("none", "keep", "correction") or _FORGET.search(introduced[0])))
    ):
        label = "keep"
    elif label == "none" or likely[label] < _MIN_PROBABILITY:
        is_unsure = label in ("forget", "undo")
        return None if is_unsure else _unsaid(sentence, content, likely, is_whole=is_whole)
    if label == "keep":
        text = _kept(sentences, at, content)
        return Wished("request", text, lasting=bool(_ALWAYS.search(text))) if text else None
    if label == "forget" and at and len(terms(content)) < _SHORT and _NAMES_NONE.search(content):
        return Wished("forget", sentences[at - 1].text.strip(_EDGES))
    stands_alone = label != "correction" or _DENIES.match(sentence.text) is not None
    return Wished(
        _WISHES[label],
        content,
        lasting=label == "self",
        is_firm=stands_alone or says_change(sentence.text),
        stands_alone=stands_alone,
    )


def _plain(sentence: OwnSentence) -> Wished | None:
    """Return what a sentence asks whose form leaves no doubt."""
    closing = _CLOSING_REQUEST.search(sentence.text.rstrip(_EDGES))
    said = sentence.text[: closing.start()] if closing and not sentence.context.after_colon else ""
    if len(terms(said)) >= _LITTLE:
        return Wished("request", said.strip(_EDGES))
    if _OWN_MOVE.match(sentence.text) and not sentence.context.after_colon:
        return Wished("statement", sentence.text.strip(_EDGES), lasting=True)
    return None


def _judged(sentence: OwnSentence) -> tuple[Label, dict[Label, float]]:
    """Return what the model takes a sentence for, and how likely each label is.

    A sentence that names remembering never asks to forget, unless it says so; nor does a rule ("不要再…").
    """
    likely = dict(probabilities(sentence.context))
    label = max(likely, key=lambda name: likely[name])
    of_forgetting = likely["forget"] + likely["undo"]
    text = sentence.text
    if _NAMES_REMEMBERING.search(text) and not _ENDS_REMEMBERING.search(text):
        likely["forget"] = likely["undo"] = 0.0
        label = max(likely, key=lambda name: likely[name])
    elif of_forgetting >= _MIN_PROBABILITY and _RULE.match(text):
        label, likely["self"] = "self", 1.0
    elif of_forgetting >= _MIN_PROBABILITY:
        label = "forget" if likely["forget"] >= likely["undo"] else "undo"
        likely[label] = of_forgetting
    elif label in _KEEPING and _WHOLE_FORGETTING.match(text):
        label, likely["forget"] = "forget", 1.0
    elif (label == "self" and _PASSING.search(text)) or (
        label == "correction" and (_TASK.match(text) or MENTION in sentence.context.text)
    ):
        label, likely[label] = "none", 0.0
    return label, likely


def _unsaid(
    sentence: OwnSentence, content: str, likely: Mapping[Label, float], *, is_whole: bool
) -> Wished | None:
    """Return what a sentence that the model takes for an ordinary one asks if a fact is near it."""
    if is_whole and _WHOLE_FORGETTING.match(sentence.text):
        return Wished("forget", content, is_firm=False)
    likely_any = 1 - likely["none"]
    is_forgetting = likely["forget"] + likely["undo"] > likely_any / 2
    denies = _DENIAL.match(sentence.text) is not None
    if is_forgetting and likely_any >= _MIN_PROBABILITY_ABOUT_FACT:
        return Wished("forget", content, is_firm=False, stands_alone=False)
    is_likely = is_whole or likely_any >= _MIN_PROBABILITY_OF_CHANGE
    if _TASK.match(sentence.text) or MENTION in sentence.context.text:
        return None
    changes = is_likely and says_change(sentence.text) and len(terms(content)) <= _MOST_OF_CHANGE
    if not changes and not denies:
        return None
    stands_alone = changes and denies and bool(subject_of(content))
    return Wished("correction", content, is_firm=False, stands_alone=stands_alone)


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
