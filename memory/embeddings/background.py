"""How alike unrelated texts are to a model, so that a cosine says whether two texts have to do with each other.

Models differ: unrelated texts have a cosine near 0 for one and near 0.75 for another. So each model is asked for
the vectors of texts about different subjects, and what is clearly above the cosines among them counts as near.
"""

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, pstdev
from typing import Final

from memory.embeddings.protocol import Vector

UNRELATED: Final = (
    "The ferry to the island leaves at half past six from the northern pier.",
    "Knead the dough for ten minutes and let it rise under a damp cloth.",
    "The court postponed the hearing because a witness was ill.",
    "Replace the left bearing of the lathe before the next shift.",
    "Our goalkeeper saved two penalties in extra time.",
    "Whales sing in dialects that change from ocean to ocean.",
    "The password of the staging database is rotated every ninety days.",
    "She inherited a violin with a cracked soundboard.",
    "Invoices above five thousand euros need a second signature.",
    "Tomatoes want full sun and no water on their leaves.",
    "这家医院的儿科门诊周三下午不开放。",
    "登山前请检查绳索和头盔是否完好。",
    "董事会决定推迟新工厂的建设计划。",
    "把牛肉切成薄片，用酱油和淀粉腌二十分钟。",
    "考古队在河床下面发现了一座唐代墓葬。",
    "服务器日志按天切割，保留三十天。",
    "小提琴协奏曲的第二乐章非常安静。",
    "今年的冬小麦因为干旱减产了两成。",
    "孩子们在操场上放风筝。",
    "合同到期前一个月必须书面通知对方。",
)
_DEVIATIONS: Final = 3.0
"""Of MiniLM this gives 0.25, which was measured to be right on dialogues before."""
_MOST: Final = 0.95


def least_similarity(vectors: Sequence[Vector]) -> float:
    """Return the least cosine that means something, from the vectors of `UNRELATED`."""
    read = [vector for vector in vectors if any(vector)]
    cosines = [
        sum(a * b for a, b in zip(one, other, strict=True)) for one, other in combinations(read, 2)
    ]
    if not cosines:
        return _MOST
    return min(_MOST, max(0.0, fmean(cosines) + _DEVIATIONS * pstdev(cosines)))
