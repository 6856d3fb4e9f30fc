"""Where a text names one of some tools.

A name that no sentence has by chance (`article-list-query`, `mcp__ata__query`, `WebFetch`) counts
wherever it stands as a whole word. A name that is a word as well (`Read`, `ls`, `search`) counts only
where it is written as a name: in code, beside the word "tool", at the head of a line, right at what is
said of how it is called.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from policies.recall_calls import at_usage
from policies.recall_places import as_written, distinct_names, in_a_names_place, introduced
from policies.recall_plain import plain_of
from policies.recall_spelling import aliases_of, folded, is_a_word

_VERBS_AND_NOUNS: Final = (
    "add agent apply ask build call check chat clear click close commit copy count create delete deploy diff edit"
    " exec fetch fill find format get glob go help hover import insert install list load log look lookup make map"
    " merge move navigate note open patch plan play press print pull push put query read record remove rename"
    " render replace report request reset resize restart run save scan script search select send set shell show"
    " skill skip sort start status stop submit sync task test time translate type update upload validate verify"
    " view wait watch web work write"
)
_ORDINARY: Final = frozenset(_VERBS_AND_NOUNS.split())
_SHORT: Final = 3
_INSTRUMENT: Final = re.compile(
    r"(?:(?:(?<!issues\s)(?<!problems\s)\bwith|\b(?:via|using|by|through|used?|ran|run|(?:written|scripted|implemented)\s+in))\s+(?:the\s+)?"
    r"|(?:(?<![调引])用|[由经]|通过|使用|借助|运行|执行)\s*)[`\"']?$",
    re.IGNORECASE,
)
_TAUGHT: Final = re.compile(
    r"\b(?:when(?:ever)?|while|if\s(?:you|we)(?:'re|\sare)?|(?:in\sorder\s)?to)\s+us(?:e|ing)\s+(?:the\s+)?[`\"']?$",
    re.IGNORECASE,
)
_TAUGHT_BEHIND: Final = re.compile(r"[`\"'」]?\s?(?:工具)?\s?(?:时|的时候|之前)(?!发现|看到|查到)")
"""`when using it`, `使用它时` teach how it is called; `used it`, `用它查到` tell what was done."""
_SOUGHT_WITH: Final = re.compile(
    r"\b(?:read|found|fetched|pulled|checked|looked\sup|queried|listed|searched|exported|collected|counted)\b[^.;:\n]{0,60}"
    r"\b(?:with|via|using|through)\s(?:the\s)?[`\"']?$",
    re.IGNORECASE,
)
_FOUND_BY: Final = re.compile(
    r"[`\"'」]?(?:\s(?:tool\s)?(?:showed|found|revealed|reported|listed|counted|confirmed)\b(?![^.\n]{0,40}\b(?:error|failed|invalid|must)\b)"
    r"|\s?(?:工具)?(?:显示|查到|查出|发现|看到|读到|找到|搜到|拉到|统计|列出了)(?![^。\n]{0,30}(?:报错|失败|缺少)))",
    re.IGNORECASE,
)
"""What was found with a tool is about the thing that was looked at."""
_IMPERATIVE: Final = re.compile(r"\s(?:for|the|an?|all|every|your|our|through|over)\s")
_CLAUSE_BEGINS: Final = re.compile(r"(?:^|[.!?;:\n。！？；：*\-]\s{0,2})$")
"""`Grep the logs`: a name that is a verb as well, at the head of what is to be done."""
_DONE_WITH: Final = re.compile(
    r"(?:\b(?:with|via|by|through|used|ran|run|using)\s+(?:the\s+)?|(?:(?<!使)用|[由经]|通过|借助|运行|执行)\s*)[`\"'*「]{0,3}$",
    re.IGNORECASE,
)
"""What was done with a tool; "to use the tool" and `使用工具` may begin to tell how it is called."""
_IS_DONE: Final = re.compile(
    r"[^\n。；;!！?？]{0,60}(?:(?<![除为])了(?!解)|(?<!通)过(?![程滤]))|\s(?:ran|did|was|has|had|failed|wrote)\b"
)
_BEFORE_CHARS: Final = 90


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The names of some tools, ready to be looked for; texts are given as `plain_of` makes them."""

    folded: tuple[str, ...]
    """Each in haste's form: what is not in a text this way is not named there at all."""
    distinct: re.Pattern[str] | None
    as_written: re.Pattern[str] | None
    in_a_names_place: re.Pattern[str] | None
    at_usage: re.Pattern[str] | None
    introduced: re.Pattern[str] | None

    @classmethod
    def of(cls, names: Iterable[str]) -> "ToolNames":
        """Take names: bare ones, `server::tool`, `mcp__server__tool`."""
        aliases = {alias for name in names for alias in aliases_of(plain_of(name).strip())}
        words = sorted(one for one in aliases if is_a_word(one))
        proper = [one for one in words if one.lower() not in _ORDINARY and len(one) > _SHORT]
        distinct = sorted(aliases - set(words))
        return cls(
            tuple(sorted({folded(one) for one in aliases})),
            distinct_names(distinct),
            as_written(proper),
            in_a_names_place(words),
            at_usage([*distinct, *words], [*distinct, *proper]),
            introduced([*distinct, *words]),
        )

    def may_be_in(self, text: str) -> bool:
        """Whether a closer look is worth it; cheap."""
        in_haste = folded(text)
        return any(one in in_haste for one in self.folded)

    def are_in(self, text: str) -> bool:
        """Whether the text names any of them."""
        written = (one for one in _found(self.as_written, text) if not _is_a_verb(text, one))
        places = chain(_found(self.distinct, text), written, _found(self.in_a_names_place, text))
        return next(places, None) is not None

    def are_told_of_in(self, sentence: str) -> bool:
        """Whether a sentence tells of any of them, and not only of what was done with it."""
        places = chain(_found(self.distinct, sentence), _found(self.in_a_names_place, sentence))
        return not all(_is_an_instrument(sentence, one) for one in places)

    def taken_out_of(self, sentence: str) -> str:
        """Give a sentence without the names that no text has by chance."""
        return sentence if self.distinct is None else self.distinct.sub(" ", sentence)

    def are_right_at_usage_in(self, sentence: str) -> bool:
        """Whether what is said of how something is called stands right at any of them: `Bash 用法`."""
        return self.at_usage is not None and self.at_usage.search(sentence) is not None

    def introduced_in(self, text: str) -> list[int]:
        """Give where a text begins to tell of one of them: behind "the Bash tool", `Bash 工具`, `Bash:`."""
        if self.introduced is None:
            return []
        return [
            one.end()
            for one in self.introduced.finditer(text)
            if not _DONE_WITH.search(text[max(0, one.start() - _BEFORE_CHARS) : one.start()])
            and not _IS_DONE.match(text, one.end())
        ]

    def distinct_in(self, text: str) -> list[int]:
        """Give the places of the names that no text has by chance, in their order."""
        return [one.start() for one in _found(self.distinct, text)]


def _found(names: re.Pattern[str] | None, text: str) -> Iterator[re.Match[str]]:
    """Give the places of names where the text speaks of them."""
    if names is not None:
        yield from (one for one in names.finditer(text) if not _only_served(text, one))


def _only_served(text: str, name: re.Match[str]) -> bool:
    """Whether something else was looked at with the tool."""
    return bool(_FOUND_BY.match(text, name.end()) or _SOUGHT_WITH.search(_before(text, name)))


def _is_an_instrument(text: str, name: re.Match[str]) -> bool:
    before = _before(text, name)
    if _INSTRUMENT.search(before) is None:
        return False
    return not (_TAUGHT.search(before) or _TAUGHT_BEHIND.match(text, name.end()))


def _before(text: str, name: re.Match[str]) -> str:
    """Give what stands before a name; `of the Read` is found with the words that make it one."""
    at = max([name.start(), *map(name.start, name.re.groupindex)])
    return text[max(0, at - _BEFORE_CHARS) : at]


def _is_a_verb(text: str, name: re.Match[str]) -> bool:
    before = text[max(0, name.start() - 4) : name.start()]
    return bool(_CLAUSE_BEGINS.search(before) and _IMPERATIVE.match(text, name.end()))
