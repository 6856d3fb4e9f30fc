"""Made-up texts in English and Chinese letters, the same in each run."""

import random
from datetime import UTC, datetime

START = datetime(2024, 1, 1, tzinfo=UTC)
"""When the first of them was written."""

_SYLLABLES = [
    a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "ai", "or", "en")
]
_CHARACTERS = [chr(0x4E00 + n) for n in range(0, 20000, 9)]


class Corpus:
    """Made-up episodes in two languages; words are as unevenly frequent as in real texts (Zipf)."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        words = random.Random(
            1
        )  # the same for all seeds, so that questions meet the texts of another seed
        latin = ["".join(words.choices(_SYLLABLES, k=1 + n % 3)) for n in range(60_000)]
        chinese = ["".join(words.choices(_CHARACTERS, k=2)) for _ in range(40_000)]
        self._words = {False: list(dict.fromkeys(latin)), True: list(dict.fromkeys(chinese))}
        self._weights = {key: self._cumulated(len(words)) for key, words in self._words.items()}

    @staticmethod
    def _cumulated(count: int) -> list[float]:
        total, sums = 0.0, []
        for rank in range(1, count + 1):
            total += 1 / (rank + 2.7)
            sums.append(total)
        return sums

    def sentence(self, length: int) -> str:
        chinese = self._random.random() < 0.5
        words = self._random.choices(
            self._words[chinese], cum_weights=self._weights[chinese], k=length
        )
        return (
            "，".join("".join(words[n : n + 4]) for n in range(0, length, 4))
            if chinese
            else " ".join(words)
        )

    def question(self) -> str:
        return self.sentence(self._random.choice((2, 4, 8, 16)))
