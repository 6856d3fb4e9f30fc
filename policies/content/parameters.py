"""Finds the parameters of tools in a sentence that names no tool.

`head_limit`, `maxResults` and anything in quotation marks are identifiers wherever they stand. A parameter that is an
ordinary word, such as `limit`, counts only where it stands as a name and not as a word of the language: at the
beginning of a clause, after "set" or "the parameter", before `=`, or in Latin letters within Chinese.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from policies.content.tool_names import TOOL, WORD

MAX_PARAMETERS: Final = 20
"""Of one tool."""
_NAME: Final = re.compile(r"-{0,2}[A-Za-z_]\w{0,62}", re.ASCII)
_DISTINCT: Final = re.compile(r"[A-Za-z0-9]_[A-Za-z0-9]|[a-z][A-Z]")
_CJK: Final = "一-鿿"
_ANYWHERE: Final = r"(?<![\w-])NAME(?![\w-])"
_AS_NAME: Final = (
    r"[`\"'“「]NAME[`\"'”」]"
    rf"|(?:(?m:^)[\s\-*•]*|[.!?。！？,;、，；(（{_CJK}]\s*"
    r"|\b(?:and|or|set|pass|omit|specify|without|parameter|argument|option|flag|field)\s+)"
    r"NAME(?![\w-])(?!\s*[:：])"
    r"|(?<![\w-])NAME(?:\s*=|\s+(?:parameter|argument|option|flag|field)\b|\s*[:：(（]\s*"
    r"(?:(?:an?|the)\s+)?(?:string|int|number|bool|array|list|object|required|optional|字符串|整数|数组|布尔|必填|可选))"
)


def parameter_names(given: Mapping[str, Any]) -> list[str]:
    """Return the names in the input of a call, outer ones first, each once, at most 20; never a value."""
    found: dict[str, None] = {}
    level: list[Any] = [given]
    while level and len(found) < MAX_PARAMETERS:
        objects = [value for value in level if isinstance(value, Mapping)]
        lists = [value for value in level if isinstance(value, list)]
        found |= {name: None for one in objects for name in one if _NAME.fullmatch(name)}
        level = [inner for one in objects for inner in one.values()]
        level += [inner for one in lists for inner in one]
    return list(found)[:MAX_PARAMETERS]


def signature(tool: str, parameters: Iterable[str] = ()) -> str:
    """Return the name of a tool with the parameters of its calls: `Grep(head_limit, pattern)`."""
    names = list(dict.fromkeys(parameters))[:MAX_PARAMETERS]
    return f"{tool}({', '.join(names)})" if names else tool


def split_signature(text: str) -> tuple[str, list[str]]:
    """Return the name and the parameters in a signature."""
    tool, _, parameters = text.partition("(")
    return tool, parameters.rstrip(")").replace(",", " ").split()


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of some tools, ready to be found in normalized sentences."""

    names: re.Pattern[str] | None
    """Where they stand as identifiers."""
    words: re.Pattern[str] | None
    """Where they may be words of the language."""

    @classmethod
    def of(cls, signatures: Iterable[str], *, with_words: bool = True) -> "Parameters":
        """Take signatures; without words only parameters that are none are looked for."""
        names = {name for text in signatures for name in split_signature(text)[1]}
        distinct = {name for name in names if _DISTINCT.search(name)}
        words = names - distinct if with_words else set()
        forms = [(_ANYWHERE, distinct), (_AS_NAME, words)]
        return cls(_pattern(forms), _pattern([(_ANYWHERE, words)]))

    def context_of(self, text: str) -> str:
        """Return `TOOL` if a parameter stands in the text as an identifier, `WORD` if as a word, else nothing."""
        if self.names is not None and self.names.search(text):
            return TOOL
        return WORD if self.words is not None and self.words.search(text) else ""


def _pattern(forms: Iterable[tuple[str, set[str]]]) -> re.Pattern[str] | None:
    """Return an expression for names, each set of them in a form; None if there are none."""
    found = []
    for form, names in forms:
        longest_first = sorted(names, key=lambda name: (-len(name), name))
        one = f"(?:{'|'.join(map(re.escape, longest_first))})"
        found += [form.replace("NAME", one)] if names else []
    return re.compile("|".join(found)) if found else None
