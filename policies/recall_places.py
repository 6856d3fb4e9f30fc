"""The places where a name stands as a name: anywhere, or only where no word of a sentence would stand."""

import re
from collections.abc import Sequence
from typing import Final

from policies.recall_markers import BEHIND_A_LABEL, USAGE_NOUNS
from policies.recall_spelling import NAME_END, NAME_START, initials_of, spellings_of

_TOOL: Final = r"(?i:(?:mcp\s+)?(?:tools?|commands?|functions?)\b|工具|命令|函数|接口)"
_BEFORE_A_NAME: Final = (
    r"(?:of|for|to|with|in|on|from|by|via|using|calling|invoking|call|calls|when|and)"
)
_BEHIND_A_NAME: Final = (
    r"(?=\s*(?:$|[,.;:!?)]|(?i:tools?|calls?|commands?|functions?|inputs?|param|arg|schema|usage|takes|wants|needs|expects|accepts"
    r"|requires|is|has|was|fails|failed)))"
)
"""Behind `the Read`: else it is an adjective (`the Read model`)."""
_TELLS: Final = r"(?=\s*(?:[:：=(（—–\-.,，。;；]|\b(?:is|are|has|takes|requires)\b|[一-鿿]|$))"
_ENDS: Final = r"(?=\s*(?:[:：(—–,.;，。；]|\b(?:is|are|was|were|with|failed)\b|$))"


def distinct_names(names: Sequence[str]) -> re.Pattern[str] | None:
    """Find any of the names as whole words, however they are written."""
    if not names:
        return None
    return re.compile(rf"(?:{NAME_START}|(?<=__)|(?<=::)){spellings_of(names)}{NAME_END}")


def as_written(names: Sequence[str]) -> re.Pattern[str] | None:
    """Find names that are hardly words (`Bash`, `kubectl`) exactly as they are written."""
    if not names:
        return None
    return re.compile(rf"{NAME_START}(?:{'|'.join(map(re.escape, names))}){NAME_END}")


def in_a_names_place(names: Sequence[str]) -> re.Pattern[str] | None:
    """Find names that are words as well where a name stands."""
    if not names:
        return None
    name = f"{initials_of(names)}(?i:{_any_of(names)})"
    behind = (
        r"\((?!\))",  # `fetch()` speaks of a function
        rf"(?:'s)?\s*的?\s*{_TOOL}",
        rf"(?:'s\s+|\s*的\s*)(?i:{USAGE_NOUNS})",
        rf"(?!\s?请求的)[ ]?(?i:{USAGE_NOUNS}){_TELLS}",  # `get 请求的参数` speaks of HTTP
    )
    forms = [
        rf"[`\"'「『“]{name}[`\"'」』”(]",
        rf"{NAME_START}{name}(?:{'|'.join(behind)})",
        rf"(?:(?i:\b(?:mcp\s+)?(?:tool|command|function))\s*[:：]?\s+|工具\s*[:：]?\s*){name}{NAME_END}",
        rf"(?:^|\n)[\s#>*\-]{{0,12}}{name}\*{{0,2}}\s*(?:(?:[:：—–]|-\s)(?={BEHIND_A_LABEL})|$)",
        rf"(?i:{USAGE_NOUNS})(?:\s+(?i:of|for|to|on|in)\s+(?i:the\s+)?{name}{_ENDS}|\s?[:：]\s?{name}{NAME_END})",
    ]
    if capital := [one for one in names if one[:1].isupper()]:
        forms.append(
            rf"\b(?i:{_BEFORE_A_NAME}\s+|the\s+(?=\w+{_BEHIND_A_NAME}))(?P<name>{_any_of(capital)}){NAME_END}"
        )
    return re.compile("|".join(forms), re.MULTILINE)


def introduced(names: Sequence[str]) -> re.Pattern[str] | None:
    """Find names where a text begins to tell of the tool."""
    if not names:
        return None
    exact = _any_of(names)
    mark = r"[`\"'*「『“」』”]{0,3}"
    return re.compile(
        rf"{initials_of(names)}{NAME_START}(?i:{exact}){mark}\s?(?:(?i:(?:mcp\s)?tool)\b|工具)"
        rf"|(?i:\btool\s|工具\s?){mark}(?:{exact}){NAME_END}"
        rf"|^[\s#>*\-]{{0,12}}`?(?:{exact})`?\*{{0,2}}\s?(?=[:：])",
        re.MULTILINE,
    )


def _any_of(names: Sequence[str]) -> str:
    return "|".join(re.escape(one) for one in sorted(set(names), key=lambda one: (-len(one), one)))
