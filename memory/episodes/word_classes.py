"""Words that say the same, words that say little, and words that must never be taken for one another.

English and Chinese. Chinese is compared by characters, so its words of several characters are brought
to one form before a text is split.
"""

import re
from collections.abc import Iterator
from typing import Final

_SAME: Final = (
    "fix fixed fixes fixing solve solved solves solving resolve resolved resolves resolving repair repaired",
    "use used uses using utilize utilized utilise utilised",
    "error errors failure failures problem problems issue issues",
    "because since as",
    "check checked checks checking verify verified verifies verifying",
    "create created creates creating make made makes making",
    "begin begins began start starts started starting",
    "show shows showed shown display displays displayed",
    "find finds found finding discover discovers discovered",
    "need needs needed require requires required",
    "run runs ran running execute executes executed executing",
    "change changes changed changing modify modifies modified",
    "restart restarts restarted restarting reboot reboots rebooted",
    "remove removes removed removing delete deletes deleted deleting",
)
_SAME_ZH: Final = (
    "修复 解决 修正",
    "因为 由于",
    "使用 采用",
    "检查 验证 确认 核对",
    "报错 故障 问题 错误",
    "重启 重新启动",
    "然后 接着 随后 之后",
    "发现 看到",
    "需要 必须",
    "运行 执行",
    "修改 更改 改动",
    "删除 移除",
    "但是 但 不过",
)
_LIGHT_EN: Final = (
    "a an the this that these those it its is are was were be been being am we i you he she they them us our"
    " my your their his her and or but so then also too again now just very really quite still already please"
    " to of for in at by with from as on into than there here which who whom what when where while had has have"
    " do does did done can could will would should may might must let lets today once more some any finally"
    " simply again however therefore thus the s t re ve ll d m"
)
_LIGHT_ZH: Final = "的了着过吧呢啊吗也就都再又很还请把被将在我们你您他她它这那是和与及并而且等于对从向给让因为所以然后"

_POLAR_EN: Final = (
    "no not never none nothing nobody nowhere neither nor without cannot can't don't doesn't didn't won't isn't"
    " aren't wasn't weren't shouldn't wouldn't couldn't haven't hasn't mustn't unless except only"
    " enable enabled enables disable disabled disables allow allowed allows deny denied denies forbid forbidden"
    " pass passed passes fail failed fails succeed succeeded succeeds success successful unsuccessful"
    " true false on off up down yes before after old new left right open opened close closed increase increased"
    " decrease decreased raise raised lower lowered add added first last always sometimes primary replica"
    " source target read write input output public private higher lower less although though despite"
    " monday tuesday wednesday thursday friday saturday sunday january february march april june july august"
    " september october november december one two three four five six seven eight nine ten twice half"
    " staging production prod dev development test safe unsafe valid invalid correct incorrect right wrong"
    " works broken breaks a.m p.m"
)
_POLAR_ZH: Final = (
    "不没无未非别勿莫否禁关后下左右新旧升降增减少成败假读一二三四五六七八九十百千万半内外从"
)

LIGHT: Final = frozenset(_LIGHT_EN.split()) | frozenset(_LIGHT_ZH)
"""Words whose coming, going or changing leaves a text's meaning."""

_POLAR: Final = frozenset(_POLAR_EN.split()) | frozenset(_POLAR_ZH)


def _pairs(groups: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for group in groups:
        chosen, *others = group.split()
        for other in others:
            yield other, chosen


_CANONICAL: Final = dict(_pairs(_SAME + _SAME_ZH))
_LATIN: Final = re.compile(
    r"(?<![\w./\\:'’\-])(?:"
    + "|".join(sorted((one for one, _ in _pairs(_SAME)), key=len, reverse=True))
    + r")(?![\w/\\:'’\-]|\.\w)"
)
_HAN: Final = re.compile(
    "|".join(sorted((one for one, _ in _pairs(_SAME_ZH)), key=len, reverse=True))
)


def canonical(text: str) -> str:
    """Bring words that say the same to one of them."""
    text = _LATIN.sub(lambda match: _CANONICAL[match[0]], text)
    return _HAN.sub(lambda match: _CANONICAL[match[0]], text)


def is_telling(word: str) -> bool:
    """Whether a word must be the same in texts that tell the same.

    Whatever holds a digit or is made like a name: files, paths, options, identifiers, codes,
    capitalised words; and words that turn a statement around.
    """
    if word.lower() in _POLAR:
        return True
    if len(word) == 1:
        return word.isdigit() or (word.isascii() and word.isupper() and word not in {"A", "I"})
    made = any(not char.isalpha() for char in word)
    return made or not word.islower()
