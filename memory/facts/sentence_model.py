"""Classifies a sentence of a message: what it asks of memory, if anything.

A multinomial logistic regression over hashed features: neighbouring words of English, neighbouring
characters of Chinese, and the same of the sentence before and of the beginning of the message, because a
sentence after "translate this:" is not the person's own. `python -m bench.train_wishes` trains it and measures
it on rows that it was not trained on. The time grows linearly with the length of the sentence.
"""

import json
import re
import unicodedata
from array import array
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, sqrt
from pathlib import Path
from typing import Final, Literal
from zlib import crc32

from memory.own_words import SentenceInContext

Label = Literal["none", "keep", "self", "correction", "forget", "undo"]
"""`undo` is a request to forget that names nothing: "don't save that"."""
LABELS: Final[Sequence[Label]] = ("none", "keep", "self", "correction", "forget", "undo")

_MODEL_FILE: Final = Path(__file__).with_name("sentence_model.json")
_CJK: Final = r"\u3040-\u30ff\u3400-\u9fff"
_TOKEN: Final = re.compile(
    rf"[{_CJK}]|(?P<word>[^\W\d_{_CJK}]+(?:'[a-z]+)?)|(?P<number>\d+)|[^\w\s]"
)
_MAX_TOKENS: Final = 120
_CONTEXT_TOKENS: Final = 4
_STEM_CHARS: Final = 5
_WORD_GRAM: Final = 3
_CHAR_GRAM: Final = 4


@dataclass(frozen=True, slots=True)
class _Model:
    weights: Mapping[Label, "array[int]"]
    scale: float
    biases: Mapping[Label, float]
    buckets: int


@cache
def _load_model() -> _Model:
    stored = json.loads(_MODEL_FILE.read_text(encoding="ascii"))
    weights = {label: array("b", b64decode(stored["weights"][label])) for label in LABELS}
    biases = {label: stored["biases"][label] for label in LABELS}
    return _Model(weights, stored["scale"], biases, len(weights["none"]))


def probabilities(sentence: SentenceInContext) -> dict[Label, float]:
    """Return the probability of each label; they add up to 1."""
    model = _load_model()
    features = features_of(sentence, model.buckets)
    share = model.scale / sqrt(len(features))
    scores = {
        label: model.biases[label] + share * sum(map(weights.__getitem__, features))
        for label, weights in model.weights.items()
    }
    top = max(scores.values())
    raised = {label: exp(score - top) for label, score in scores.items()}
    total = sum(raised.values())
    return {label: value / total for label, value in raised.items()}


def features_of(sentence: SentenceInContext, buckets: int) -> set[int]:
    """Return the hashed features of a sentence; never empty."""
    own = _tokens(sentence.text)[:_MAX_TOKENS]
    before, opening = _tokens(sentence.before), _tokens(sentence.opening)
    named = {"bias", f"colon {sentence.after_colon}", f"first {not sentence.before}"}
    named |= set(_grams(["^", *own, "$"]))
    named |= {f"end {token}" for token in own[-2:]}
    named |= {f"near {gram}" for gram in _grams(own[:_CONTEXT_TOKENS])}
    named |= {f"before {token}" for token in before[-_CONTEXT_TOKENS:]}
    named |= {f"opening {token}" for token in opening[:_CONTEXT_TOKENS]}
    return {crc32(name.encode("utf-8", "replace")) % buckets for name in named}


def _tokens(text: str) -> list[str]:
    clean = unicodedata.normalize("NFKC", text).replace("’", "'")
    return [_token(match) for match in _TOKEN.finditer(clean)]


def _token(match: re.Match[str]) -> str:
    return "0" if match.lastgroup == "number" else match[0].casefold()


def _grams(tokens: Sequence[str]) -> Iterator[str]:
    for at, token in enumerate(tokens):
        if len(token) > _STEM_CHARS:
            yield f"{token[:_STEM_CHARS]}*"
        longest = _WORD_GRAM if token.isascii() else _CHAR_GRAM
        for length in range(1, longest + 1):
            if at + length <= len(tokens):
                yield " ".join(tokens[at : at + length])
