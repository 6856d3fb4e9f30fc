"""The words of a question with their weights.

Stop words (the, 的, 什么) are left out. A repeated word weighs more, and the end of a question, which may
be a dialogue's history, weighs more than its beginning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Final

from memory.terms import characters, terms

MAX_TERMS: Final = 48
MAX_CHARACTERS: Final = 64
MAX_QUESTION_CHARS: Final = 4000
"""The end of a longer question is used, because the present request stands there."""

_SAID: Final = 0.4
_JUST_SAID: Final = 0.6
_FADES_OVER: Final = 60
"""Words, about two or three sentences."""

_ENGLISH: Final = (
    "a about again all also am an and any are as at be because been before being both but by can could did do"
    " does doing don down during each few for from further had has have having he her here hers him his how i if"
    " in into is it its itself just let like ll me more most much my myself no nor not now of off on once only or"
    " other our ours out over own please re really same she should so some such than that the their theirs them"
    " then there these they this those through to too under until up us ve very was we were what when where which"
    " while who whom why will with would you your yours s t d m"
)
_CHINESE: Final = (
    "一个 一下 一些 一样 什么 这个 那个 这些 那些 这样 那样 怎么 怎样 为什 如何 是否 可以 可能 应该 我们 你们 他们"
    " 她们 它们 自己 没有 不是 就是 还是 但是 因为 所以 如果 而且 或者 以及 然后 已经 现在 时候 知道 觉得 真的"
    " 非常 特别 么样 的时 我的 你的 他的 她的 是不 不会 会不 也是 都是 是什 请问 告诉 一直 一起 的是 了一 是一"
    " 有一 有没 能不 了吗 是我 我是 你是 的话 对了 当然 其实 只是 不过 还有 的事 上的 里的 的人 来的"
)
STOP_TERMS: Final = frozenset(f"{_ENGLISH} {_CHINESE}".split())
STOP_CHARACTERS: Final = frozenset(
    "的了是我你他她它在有和就不也都很吗呢吧啊这那会要说着过把被让给又再但跟与或从到哪谁什么怎几"
)
_ASKING_ENGLISH: Final = (
    "know known tell told remind remember recall summarise summarize summary explain describe mention mentioned"
    " discuss discussed happen happened happens learn learned learnt question work works worked working use used"
    " using make makes made making get gets got getting go goes went going come comes came take takes took give"
    " gives gave put thing things way ways good new time"
)
_ASKING_CHINESE: Final = (
    "知道 告诉 诉我 记得 还记 总结 说说 讲讲 介绍 回顾 提醒 发生 生过 了解 解多 多少 问题 情况 事情"
)
ASKING_TERMS: Final = frozenset(f"{_ASKING_ENGLISH} {_ASKING_CHINESE}".split())
"""Words of asking; an answer need not contain them."""


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """The terms of a question, at most 48, and its single characters, at most 64."""

    weights: Mapping[str, float]
    """Of each term, heaviest first."""
    characters: Sequence[str]
    """Single Chinese, Japanese and Korean characters, each once."""

    @property
    def of_the_matter(self) -> Sequence[str]:
        """The terms without words of asking, heaviest first."""
        return [term for term in self.weights if term not in ASKING_TERMS]

    @classmethod
    def of(cls, text: str) -> "QuestionWords":
        """Return the words of a question."""
        asked = text[-MAX_QUESTION_CHARS:]
        found = [term for term in terms(asked) if not _is_stop(term)]
        weights: dict[str, float] = {}
        for place, term in enumerate(found, start=1):
            behind = len(found) - place
            weights[term] = weights.get(term, 0.0) + _SAID + _JUST_SAID * exp(-behind / _FADES_OVER)
        ordered = sorted(weights.items(), key=lambda value: -value[1])
        telling = set("".join(weights))
        single = [
            char for char in characters(asked) if char in telling and char not in STOP_CHARACTERS
        ]
        return cls(dict(ordered[:MAX_TERMS]), tuple(single[-MAX_CHARACTERS:]))


def _is_stop(term: str) -> bool:
    return term in STOP_TERMS or term in STOP_CHARACTERS
