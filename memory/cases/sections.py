"""How alike two cases are, section by section: each section's words become a vector of their own.

One vector of a whole case says mostly what its longest part says; two causes behind one symptom would
look the same. What vectors alone cannot tell apart are two root causes told in nearly the same words,
so the words have a say there: where they contradict each other, the root causes are not alike.
"""

import hashlib
import re
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from threading import Lock
from typing import Final

import anyio
import anyio.to_thread

from memory.cases.agreement import agreement, contradict, is_told
from memory.cases.calibration import Calibration, calibration_of
from memory.cases.case import Case, CaseContent
from memory.cases.exchange import exchanged, turned_round
from memory.cases.wording import MAX_CHARS, kind_of, telling_words
from memory.embeddings.protocol import Embedder, Vector

KEPT_SECTIONS: Final = 2048
"""Sections whose words and vectors are kept; some 5 kB each."""
KEPT_WORDS: Final = 200_000
"""Of all kept sections together: a long one in Chinese has thousands, some 80 bytes each."""
MAX_COMPARED_CHARS: Final = 60_000
"""Of the cases that one content is compared with, in their order; what would go beyond is not alike."""

_MAX_COMPARING: Final = 2
_BREAK: Final = re.compile(r"[-_./]+")
_SAME_WORDS: Final = 0.5
_MANY_WORDS: Final = 0.4
"""From so much agreement on, root causes are one, and may be one (measured on both languages)."""
_FEW_WORDS: Final = 3
_SAME_FEW_WORDS: Final = 0.6
"""Of so few words, one in common is no agreement yet."""
_MAYBE_ONE: Final = 0.79
_TWO: Final = 0.35
_UNCONFIRMED: Final = 0.69


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionSimilarity:
    """How alike the sections of two cases are, 0 to 1 each; None where either has none."""

    symptom: float | None
    diagnosis: float | None
    root_cause: float | None


NOT_ALIKE: Final = SectionSimilarity(symptom=0.0, diagnosis=0.0, root_cause=0.0)


@dataclass(frozen=True, slots=True)
class _Section:
    words: tuple[str, ...]
    vector: Vector


class SectionComparer:
    """Compares cases by their sections; safe to use from many tasks.

    `kept`, `kept_words`: sections, and words of all of them, that are kept at once.
    """

    def __init__(
        self, embedder: Embedder, *, kept: int = KEPT_SECTIONS, kept_words: int = KEPT_WORDS
    ) -> None:
        self._embedder = embedder
        self._kept = kept
        self._kept_words = kept_words
        self._calibration: Calibration = calibration_of(embedder.model_id)
        self._sections: OrderedDict[bytes, _Section] = OrderedDict()
        self._lock = Lock()
        self._comparing = anyio.CapacityLimiter(_MAX_COMPARING)

    async def compare(
        self, content: CaseContent, others: Sequence[Case]
    ) -> list[SectionSimilarity]:
        """Say how alike a case and each of the others are, in the order of these; in a worker thread.

        So many as `MAX_COMPARED_CHARS` holds are compared, the others are `NOT_ALIKE`: twenty of ordinary
        length are, of the longest four.
        """
        return await anyio.to_thread.run_sync(
            self._compare_blocking,
            content,
            others,
            limiter=self._comparing,
            abandon_on_cancel=True,
        )

    def _compare_blocking(
        self, content: CaseContent, others: Sequence[Case]
    ) -> list[SectionSimilarity]:
        left = MAX_COMPARED_CHARS
        found = []
        for one in others:
            length = compared_chars(one.content)
            fits = length <= left
            left -= length if fits else 0
            found.append(self._similarity(content, one.content) if fits else NOT_ALIKE)
        return found

    def _similarity(self, one: CaseContent, other: CaseContent) -> SectionSimilarity:
        diagnosis = self._alike(one.diagnosis, other.diagnosis)
        root_cause = self._alike(one.root_cause, other.root_cause)
        symptoms = {*self._words(one.symptom_summary), *self._words(other.symptom_summary)}
        if root_cause is not None:
            mine, theirs = self._causes(one, other)
            root_cause = min(root_cause, self._ceiling(mine, theirs, symptoms))
        elif diagnosis is not None and not self._may_share_cause(one, other):
            diagnosis = min(diagnosis, _UNCONFIRMED)
        return SectionSimilarity(
            symptom=self._alike(one.symptom_summary, other.symptom_summary),
            diagnosis=diagnosis,
            root_cause=root_cause,
        )

    def _causes(
        self, one: CaseContent, other: CaseContent
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Give the words of both root causes, without the names of the services that have them."""
        surroundings = {word for each in (one, other) for word in self._names(each)}
        return (
            _without(self._words(one.root_cause), surroundings),
            _without(self._words(other.root_cause), surroundings),
        )

    def _names(self, content: CaseContent) -> tuple[str, ...]:
        metadata = content.metadata
        services = (metadata.application_name or "", *metadata.related_services)
        return telling_words(" ".join(_BREAK.sub(" ", one) for one in services))

    def _ceiling(self, mine: Sequence[str], theirs: Sequence[str], symptoms: set[str]) -> float:
        """Say how alike two root causes can be at most, by what their words say."""
        if contradict(mine, theirs):
            return _TWO
        if exchanged(mine, theirs):
            return _MAYBE_ONE
        if sorted(mine) == sorted(theirs):
            return _MAYBE_ONE if turned_round(mine, theirs) else 1.0
        agreed = agreement(mine, theirs, symptoms)
        is_short = min(len({*mine}), len({*theirs})) <= _FEW_WORDS
        if agreed >= (_SAME_FEW_WORDS if is_short else _SAME_WORDS):
            return 1.0
        return _MAYBE_ONE if agreed >= _MANY_WORDS else self._calibration.other_words

    def _may_share_cause(self, one: CaseContent, other: CaseContent) -> bool:
        """Whether a root cause that only one names, or neither, may be that of both.

        They have to have found the same then and done the same, or what the one names has to stand in
        what the other tells.
        """
        if contradict(self._words(one.diagnosis), self._words(other.diagnosis)):
            return False
        mine, theirs = self._causes(one, other)
        if mine or theirs:
            return is_told(mine or theirs, self._told(other if mine else one))
        return not contradict(self._words(one.resolution), self._words(other.resolution))

    def _told(self, content: CaseContent) -> set[str]:
        sections = (content.symptom_summary, content.diagnosis, content.resolution)
        return {word for text in sections for word in self._words(text)}

    def _alike(self, one: str, other: str) -> float | None:
        if not one.strip() or not other.strip():
            return None
        if one == other:
            return 1.0
        mine, theirs = self._section(one).vector, self._section(other).vector
        cosine = sum(a * b for a, b in zip(mine, theirs, strict=True))
        return self._calibration.similarity_of(cosine)

    def _words(self, text: str) -> tuple[str, ...]:
        return self._section(text).words if text.strip() else ()

    def _section(self, text: str) -> _Section:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            if digest in self._sections:
                self._sections.move_to_end(digest)
                return self._sections[digest]
        words = telling_words(text)
        asked = _as_text(words) if self._calibration.by_words else text
        section = _Section(words, array("d", self._embedder.embed_blocking([asked])[0]))
        with self._lock:
            self._keep(digest, section)
        return section

    def _keep(self, digest: bytes, section: _Section) -> None:
        self._sections[digest] = section
        words = sum(len(one.words) for one in self._sections.values())
        while len(self._sections) > self._kept or words > self._kept_words:
            _, dropped = self._sections.popitem(last=False)
            words -= len(dropped.words)


def compared_chars(content: CaseContent) -> int:
    """Tell how much of a content is compared, in characters: of long sections the beginnings are."""
    sections = (
        content.symptom_summary,
        content.diagnosis,
        content.root_cause,
        content.resolution,
    )
    return sum(min(len(text), MAX_CHARS) for text in sections)


def _without(words: tuple[str, ...], some: AbstractSet[str]) -> tuple[str, ...]:
    """Leave some words out, unless nothing would be left."""
    kept = tuple(word for word in words if word not in some or kind_of(word) == "fault")
    return kept or words


def _as_text(words: Sequence[str]) -> str:
    """Write telling words for a model of words: of a name each part is a word."""
    told = (word for word in words if kind_of(word) != "bearing")
    return " ".join(told).replace("@", "").replace("#", "").replace("-", " ")
