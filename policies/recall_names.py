"""Where a text names one of some tools.

A name that no sentence has by chance (`article-list-query`, `mcp__ata__query`, `WebFetch`) counts
wherever it stands as a whole word. A name that is a word as well (`Read`, `ls`, `search`) counts only
where it is written as a name: in code, beside the word "tool", at the head of a line, right at what is
said of how it is called.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from policies.recall_markers import RIGHT_AT_A_NAME, USAGE_NOUNS, WORDS_AT_A_NAME, plain_of

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
_BEFORE_A_NAME: Final = (
    r"(?:of|for|to|with|in|on|from|by|via|using|calling|invoking|the|call|calls|when|and)"
)
_INSTRUMENT: Final = re.compile(
    r"(?:\b(?:with|via|using|by|through|used?|ran|run)\s+(?:the\s+)?|(?:[用由经]|通过|使用|借助|运行|执行)\s*)[`\"']?$",
    re.IGNORECASE,
)
_DONE_WITH: Final = re.compile(
    r"(?:\b(?:with|via|by|through|used|ran|run|using)\s+(?:the\s+)?|(?:(?<!使)用|[由经]|通过|借助|运行|执行)\s*)[`\"'*「]{0,3}$",
    re.IGNORECASE,
)
"""What was done with a tool; "to use the tool" and `使用工具` may begin to tell how it is called."""
_IS_DONE: Final = re.compile(
    r"[^\n。；;!！?？]{0,60}(?:(?<![除为])了(?!解)|(?<!通)过(?![程滤]))|\s(?:ran|did|was|has|had|failed|wrote)\b"
)
_BEFORE_CHARS: Final = 40
_INSTRUMENT_FIRST: Final = re.compile(r"(?:with|via|using|by)\s", re.IGNORECASE)
_START: Final = r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9]-)"
_END: Final = r"(?![A-Za-z0-9_])(?!-[A-Za-z0-9])"
_CJK: Final = re.compile(r"[一-鿿]")


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The names of some tools, ready to be looked for; texts are given as `plain_of` makes them."""

    folded: tuple[str, ...]
    """Each in small letters, `_` as `-`: what is not in a text this way is not named there at all."""
    distinct: re.Pattern[str] | None
    as_written: re.Pattern[str] | None
    in_a_names_place: re.Pattern[str] | None
    at_usage: re.Pattern[str] | None
    introduced: re.Pattern[str] | None

    @classmethod
    def of(cls, names: Iterable[str]) -> "ToolNames":
        """Take names: bare ones, `server::tool`, `mcp__server__tool`."""
        aliases = {alias for name in names for alias in _aliases(plain_of(name).strip())}
        words = sorted(one for one in aliases if _is_a_word(one))
        proper = [one for one in words if one.lower() not in _ORDINARY and len(one) > _SHORT]
        distinct = sorted(aliases - set(words), key=lambda one: (-len(one), one))
        folded = sorted({_folded(one) for one in aliases})
        return cls(
            tuple(folded),
            _distinct(distinct),
            _as_written(proper),
            _in_a_names_place(words),
            _at_usage([*distinct, *words], [*distinct, *proper]),
            _introduced([*distinct, *words]),
        )

    def may_be_in(self, text: str) -> bool:
        """Whether a closer look is worth it; cheap."""
        folded = _folded(text)
        return any(one in folded for one in self.folded)

    def are_in(self, text: str) -> bool:
        """Whether the text names any of them."""
        return next(self._found(text), None) is not None

    def are_told_of_in(self, sentence: str) -> bool:
        """Whether a sentence tells of any of them, and not only of what was done with it."""
        return any(
            not _INSTRUMENT.search(sentence[max(0, one.start() - _BEFORE_CHARS) : one.start()])
            and not _INSTRUMENT_FIRST.match(one.group())
            for pattern in (self.distinct, self.in_a_names_place)
            if pattern is not None
            for one in pattern.finditer(sentence)
        )

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
        return (
            [] if self.distinct is None else [one.start() for one in self.distinct.finditer(text)]
        )

    def _found(self, text: str) -> Iterator[re.Match[str]]:
        for pattern in (self.distinct, self.as_written, self.in_a_names_place):
            if pattern is not None:
                yield from pattern.finditer(text)


def _folded(text: str) -> str:
    return text.lower().replace("_", "-")


def _aliases(name: str) -> Iterator[str]:
    if not name:
        return
    yield name
    server, separator, last = name.rpartition("::")
    if separator and last:
        yield last
        yield f"mcp__{server.replace('::', '__')}__{last}"
    parts = name.split("__")
    if parts[0].lower() == "mcp" and len(parts) > 2 and parts[-1]:  # noqa: PLR2004  mcp, server, tool
        yield "__".join(parts[2:])
        yield parts[-1]
        yield f"{parts[1]}::{'__'.join(parts[2:])}"


def _is_a_word(alias: str) -> bool:
    """Whether a text may well have it without speaking of a tool."""
    if _CJK.search(alias):
        return True
    return alias.isalpha() and alias[1:] == alias[1:].lower()


def _distinct(names: Sequence[str]) -> re.Pattern[str] | None:
    """Find any of the names as whole words, in any case, with `-` and `_` the same."""
    if not names:
        return None
    forms = "|".join(re.escape(one).replace(r"\-", "[-_]").replace("_", "[-_]") for one in names)
    forms = forms.replace("[-[-_]]", "[-_]")
    return re.compile(rf"(?:{_START}|(?<=__)|(?<=::))(?:{forms}){_END}", re.IGNORECASE)


def _as_written(names: Sequence[str]) -> re.Pattern[str] | None:
    """Find names that are hardly words (`Bash`, `kubectl`) exactly as they are written."""
    if not names:
        return None
    return re.compile(rf"{_START}(?:{'|'.join(map(re.escape, names))}){_END}")


def _in_a_names_place(names: Sequence[str]) -> re.Pattern[str] | None:
    """Find names that are words as well where a name stands."""
    if not names:
        return None
    exact = "|".join(map(re.escape, names))
    capital = "|".join(re.escape(one) for one in names if one[:1].isupper())
    loose = f"(?i:{exact})"
    tool = r"(?i:(?:mcp\s+)?(?:tools?|commands?|functions?)\b|工具|命令|函数|接口)"
    forms = [
        rf"[`\"'「『“]{loose}[`\"'」』”(]",
        rf"{_START}{loose}\(",
        rf"{_START}{loose}(?:'s)?\s*的?\s*{tool}",
        rf"(?:(?i:\b(?:mcp\s+)?(?:tool|command|function))\s*[:：]?\s+|工具\s*[:：]?\s*){loose}{_END}",
        rf"(?:^|\n)[\s#>*\-]{{0,12}}{loose}\*{{0,2}}\s*(?:[:：—–]|-\s|$)",
        rf"{_START}{loose}(?:'s\s+|\s*的\s*)(?i:{USAGE_NOUNS})",
        rf"{_START}{loose}[ ]?(?i:{USAGE_NOUNS})(?=\s*(?:[:：=(（—–\-.,，。;；]|\b(?:is|are|has|takes|requires)\b|[一-鿿]|$))",
        rf"(?i:{USAGE_NOUNS})\s+(?i:of|for|to|on|in)\s+(?i:the\s+)?{loose}(?=\s*(?:[:：(—–,.;，。；]|\b(?:is|are|was|were|with|failed)\b|$))",
        rf"(?:(?i:{USAGE_NOUNS}))\s?[:：]\s?{loose}{_END}",
    ]
    if capital:
        forms.append(rf"\b(?i:{_BEFORE_A_NAME})\s+(?:{capital}){_END}")
    return re.compile("|".join(forms), re.MULTILINE)


def _alternatives(names: Sequence[str]) -> str:
    return "|".join(re.escape(one) for one in sorted(set(names), key=lambda one: (-len(one), one)))


def _at_usage(names: Sequence[str], unlike_words: Sequence[str]) -> re.Pattern[str] | None:
    """Find names with what is said of how they are called right behind them, or right before."""
    if not names:
        return None
    loose = f"(?i:{_alternatives(names)})"
    mark = r"[`\"'*」』”]{0,3}"
    forms = [
        rf"{_START}{loose}{mark}\s?(?:工具|命令)?(?:使用|调用)?时?(?:的|需要的?|所需的?)?\s?(?:{RIGHT_AT_A_NAME})",
        rf"(?:用法|使用(?:方法|方式|说明))\s?[:：]\s?[`\"'*「『“]{{0,3}}{loose}{_END}",
        rf"(?:如何|怎么|怎样)(?:使用|调用)\s?[`\"'*「『“]{{0,3}}{loose}{_END}",
    ]
    if unlike_words:
        plain = f"(?i:{_alternatives(unlike_words)})"
        forms.append(rf"{_START}{plain}{mark}(?:'s)?\s(?:{WORDS_AT_A_NAME})")
    return re.compile("|".join(forms), re.MULTILINE)


def _introduced(names: Sequence[str]) -> re.Pattern[str] | None:
    """Find names where a text begins to tell of the tool."""
    if not names:
        return None
    exact = _alternatives(names)
    mark = r"[`\"'*「『“」』”]{0,3}"
    return re.compile(
        rf"{_START}(?i:{exact}){mark}\s?(?:(?i:(?:mcp\s)?tool)\b|工具)"
        rf"|(?i:\btool\s|工具\s?){mark}(?:{exact}){_END}"
        rf"|^[\s#>*\-]{{0,12}}`?(?:{exact})`?\*{{0,2}}\s?(?=[:：])",
        re.MULTILINE,
    )
