"""Ranks the items that have words of a question, among those that the owner may read, at a bounded
cost.

The rarest words bring rows, until together they stand in `MAX_RANKED` rows: a word that stands in
every other row costs most and says least. As many of the rows that look best as are wanted are read
and scored by how often and where all words of the question stand in them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final

from memory.items.item import KINDS, ItemKind
from memory.items.scope import Scope
from memory.items.seen import NOTHING_SEEN, Seen
from memory.items.store import WordHit
from memory.items.timespan import ALL_TIME, TimeSpan
from memory.recall.coverage import Expectation, is_weak, is_weak_case, rarity
from memory.recall.question_words import QuestionWords
from memory.stores.database import Connection
from memory.stores.sqlite.asked_words import AskedWords
from memory.stores.sqlite.bm25 import Term, Texts, presence, scores
from memory.stores.sqlite.fulltext_index import label_tokens, may_lack, token, word_index_of
from memory.stores.sqlite.owner_index import MAX_COUNTED, MAX_RANKED, OwnerIndex, RowCounts
from memory.stores.sqlite.stems import Stems
from memory.stores.sqlite.word_index import IndexedRow, WordIndex

_MANY_ROWS: Final = 6000
"""If the words stand in so many rows, single characters would add rows and little distinction."""
_MAX_REPEATS: Final = 3
_LOOKED_AT: Final = 4
"""Times as many rows as are read have their labels checked before the index is asked."""
_IN_COMMON: Final = 0.75
"""Part of a question's rows that another one must have for both to be counted in one text: a word
is looked for in the whole text.
"""
_Weights = tuple[tuple[str, int], ...]
"""The words of a question with their weights."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The rows that look best for some words, to be scored by their texts."""

    rows: Mapping[int, IndexedRow]
    terms: Sequence[tuple[Term, AbstractSet[int] | None]]
    """The words that stand somewhere, with the rows that have them; None: too common to be asked
    for.
    """


@dataclass(frozen=True, slots=True)
class FulltextSearch:
    """One search, ready to be run on a connection."""

    wording: QuestionWords
    scope: Scope
    kinds: Sequence[ItemKind] = KINDS
    limit: int = 50
    counts: RowCounts = field(default_factory=RowCounts)
    owners: OwnerIndex = field(default_factory=OwnerIndex)
    stems: Stems = field(default_factory=Stems)
    seen: Seen = NOTHING_SEEN
    span: TimeSpan = ALL_TIME

    def run_blocking(self, connection: Connection) -> list[WordHit]:
        """Return the rows that rank best, best first."""
        return self.run_each_blocking(connection, [self.wording])[0]

    def run_each_blocking(
        self, connection: Connection, wordings: Sequence[QuestionWords]
    ) -> list[list[WordHit]]:
        """Answer several questions; what is read for one is not read again for another."""
        if not self.kinds:
            return [[] for _ in wordings]
        index = word_index_of(connection)
        index.prepare_blocking(connection)
        words = AskedWords(
            connection, index, self._readable(index), self.counts, self.stems, self.seen
        )
        words.own = self.owners.rows_blocking(
            connection, self.scope.readable_owners, self.kinds, lambda: words.total
        )
        words.ask(wordings)
        chosen: dict[_Weights, _Chosen] = {}
        asked = []
        for wording in wordings:
            search = replace(self, wording=wording)
            weights = search._weights(words)  # noqa: SLF001  another one of this class
            same = tuple(weights.items())  # as where what else a message quotes stands nowhere
            if same not in chosen:
                chosen[same] = search._chosen(words, weights)  # noqa: SLF001
            asked.append((search, same))
        texts = _texts(chosen, self.stems)
        points = {same: _points(texts[same], one) for same, one in chosen.items()}
        return [
            search._hits(words, texts[same], chosen[same].rows, points[same])  # noqa: SLF001
            for search, same in asked
        ]

    def _weights(self, words: AskedWords) -> dict[str, int]:
        """Look the words of the question up; return the weights of those that stand somewhere."""
        weights = {
            term: max(1, min(_MAX_REPEATS, round(weight)))
            for term, weight in self.wording.weights.items()
        }
        words.look_up(weights)
        if sum(map(words.count, weights)) < _MANY_ROWS:
            weights = {**dict.fromkeys(self.wording.characters, 1), **weights}
            words.look_up(weights)
        return {term: weight for term, weight in weights.items() if words.count(term)}

    def _expected(self) -> list[str]:
        """Return the words that an answer should have."""
        wording = self.wording
        return [*wording.of_the_matter] or [*wording.weights] or [*wording.characters]

    def _readable(self, index: WordIndex) -> str:
        """Return the expression that matches what the readable owners have of the kinds."""
        owners = index.scoped(token("owner", owner) for owner in self.scope.readable_owners)
        cases = index.scoped(token("cases of owner", owner) for owner in self.scope.readable_owners)
        kinds = frozenset(self.kinds)
        if kinds == {"case"}:
            return cases
        if kinds == frozenset(KINDS) - {"case"}:
            return index.without(owners, cases)  # shorter lists than those of the other kinds
        if kinds == frozenset(KINDS):
            return owners
        return index.all_of([owners, index.scoped(token("kind", kind) for kind in self.kinds)])

    def _chosen(self, words: AskedWords, weights: Mapping[str, int]) -> _Chosen:
        """Return the rows that look best by words that stand somewhere."""
        if not weights:
            return _Chosen({}, ())
        asked = list(_affordable({term: words.count(term) for term in weights}))
        worth = {term: weights[term] * rarity(words.total, words.count(term)) for term in weights}
        # where a word has too many rows, the labels decide which are the newest
        is_cut = max(map(words.count, asked)) >= MAX_COUNTED
        labels = self._labels(words.index) if is_cut else ""
        if not labels:
            words.fetch(asked)
        having = {term: words.having(term, labels) for term in asked}
        likely: dict[int, float] = {}
        for term, seqs in having.items():
            points = dict.fromkeys(seqs, presence(term, worth[term]))
            for seq in points.keys() & likely.keys():
                points[seq] += likely[seq]
            likely |= points
        for seq in words.seen(likely.keys()):
            del likely[seq]
        if self.span.is_bounded:
            within = words.within(self.span, self.scope.readable_owners)
            likely = {seq: points for seq, points in likely.items() if seq in within}
        if is_cut or not self.scope.wanted:
            rows = words.read(_most_points(likely, self.limit))
        else:
            rows = self._first_labelled(words, likely, asked)
        return _Chosen(
            {row.seq: row for row in rows},
            [(Term(words.word(term), worth[term]), having.get(term)) for term in weights],
        )

    def _first_labelled(
        self, words: AskedWords, likely: Mapping[int, float], asked: Sequence[str]
    ) -> list[IndexedRow]:
        """Return the rows with the most points that carry the labels.

        Most of the first rows do, and checking these is quicker than reading all that do from the
        index.
        """
        most = self.limit
        seqs, carrying = _most_points(likely, most * _LOOKED_AT), list[IndexedRow]()
        judged: dict[tuple[str, str], bool] = {}  # most rows have the same labels
        for first in range(0, most * _LOOKED_AT, most):
            part = seqs[first : first + most]
            for row in sorted(words.read(part), key=lambda row: part.index(row.seq)):
                labelled = (row.kind, row.labels)
                if labelled not in judged:
                    judged[labelled] = self._carries(*labelled)
                if judged[labelled]:
                    carrying.append(row)
            if len(carrying) >= most or len(part) < most:
                return carrying[:most]
        kept = words.labelled(asked, self._labels(words.index))
        kept_points = {seq: points for seq, points in likely.items() if seq in kept}
        return words.read(_most_points(kept_points, most))

    def _carries(self, kind: str, labels_json: str) -> bool:
        """Return whether an item has the wanted labels, or lacks those that it may lack."""
        labels = json.loads(labels_json)
        return all(
            labels[name] in values if name in labels else None in values and may_lack(kind, name)
            for name, values in self.scope.wanted.items()
        )

    def _labels(self, index: WordIndex) -> str:
        wanted = label_tokens(self.scope)
        return index.all_of(index.scoped(tokens) for tokens in wanted) if wanted else ""

    def _hits(
        self,
        words: AskedWords,
        texts: Texts,
        rows: Mapping[int, IndexedRow],
        points: Mapping[int, float],
    ) -> list[WordHit]:
        if not points:
            return []
        expected = self._expected()
        words.look_up(expected)
        expectation = Expectation.of(expected, words.count, words.total)
        covered = expectation.coverages(
            {term: words.among(term, texts) for term in expectation.worth}, points
        )
        only_cases, unique = tuple(self.kinds) == ("case",), rarity(words.total, 0)
        return [
            WordHit(
                item_id=rows[seq].item_id,
                score=score,
                coverage=covered[seq],
                is_weak=is_weak_case(covered[seq], score / unique)
                if only_cases
                else is_weak(covered[seq]),
            )
            for score, seq in sorted(((points[seq], seq) for seq in points), reverse=True)
        ]


def _texts(chosen: Mapping[_Weights, _Chosen], stems: Stems) -> dict[_Weights, Texts]:
    """Return the text in which the words of each question are counted; those with most rows in
    common share one.
    """
    shared: list[tuple[dict[int, Sequence[str]], list[_Weights]]] = []
    for same, one in chosen.items():
        least = _IN_COMMON * len(one.rows)
        rows, asked = next(
            (known for known in shared if len(known[0].keys() & one.rows.keys()) >= least), ({}, [])
        )
        if not asked:
            shared.append((rows, asked))
        rows |= {seq: row.columns for seq, row in one.rows.items()}
        asked.append(same)
    made = [(Texts(rows.items(), stems), asked) for rows, asked in shared]
    return {same: texts for texts, asked in made for same in asked}


def _points(texts: Texts, chosen: _Chosen) -> dict[int, float]:
    """Return the score of each row that says something of the matter.

    Words that were too common to bring rows add to the score of those that have them. A turn found
    by its neighbours alone says nothing.
    """
    points, own = scores(texts, chosen.rows, chosen.terms)
    return {
        seq: value for seq, value in points.items() if seq in own or chosen.rows[seq].kind != "turn"
    }


def _most_points(points: Mapping[int, float], most: int) -> list[int]:
    """Return so many rows, those with the most points first; of equal ones, the newest first."""
    least = sorted(points.values(), reverse=True)[:most][-1:]
    rows = [(value, seq) for seq, value in points.items() if value >= least[0]] if least else []
    return [seq for _, seq in sorted(rows, reverse=True)[:most]]


def _affordable(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the rarest terms, until together they have too many rows; at least one."""
    spent = 0
    for term in sorted(counts, key=lambda term: counts[term]):
        spent += counts[term]
        if spent > MAX_RANKED and spent > counts[term]:
            return
        yield term
