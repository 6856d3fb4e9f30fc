"""Finds the parameters of tools in a sentence that names no tool.

`head_limit`, `maxResults` and whatever stands in quotation marks are identifiers anywhere. A
parameter that is an ordinary word, such as `limit`, counts only where it stands as a name and not
as a word of the language: at the beginning of a clause, after "set" or "the parameter", before `=`,
or in Latin letters within Chinese.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_PARAMETERS: Final = 20
"""Of one tool."""
_NAME: Final = re.compile(r"-{0,2}[A-Za-z_]\w{0,62}", re.ASCII)
_DISTINCT: Final = re.compile(r"[A-Za-z0-9]_[A-Za-z0-9]|[a-z][A-Z]")
PARAMETER: Final = "\ue002"
"""Stands for a parameter's name."""
PARAMETER_WORD: Final = "\ue003"
"""Stands for a name that is an ordinary word as well."""
_ANYWHERE: Final = r"(?<![\w-])NAME(?![\w-])"
# NAME stands for the names; where a parameter that is an ordinary word stands as a name.
_AS_NAME: Final = (
    r"""[`\"'“「]NAME[`\"'”」]|(?:(?m:^)[\s\-*•]*|[.!?:：。！？,;、，；(（一-鿿]\s*"""
    r"|\b(?:and|or|set|pass|give|use|send|raise|omit|specify|without|parameter|argument"
    r"|option|flag|field)\s+)NAME(?![\w-])(?!\s*[:：])"
    r"|(?<![\w-])NAME(?:\s*=|\s+(?:parameter|argument|option|flag|field)\b|\s*[:：(（]\s*"
    r"(?:(?:an?|the)\s+)?(?:string|int|number|bool|array|list|object|required|optional"
    "|字符串|整数|数组|布尔|必填|可选))"
)


def parameter_names(given: Iterable[str]) -> list[str]:
    """Return the names in the input of a call, at most 20; never a value."""
    return [name for name in given if _NAME.fullmatch(name)][:MAX_PARAMETERS]


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

    pattern: re.Pattern[str] | None

    @classmethod
    def of(cls, signatures: Iterable[str], *, with_words: bool = True) -> "Parameters":
        """Take signatures; without words only parameters that are none are looked for."""
        names = {name for text in signatures for name in split_signature(text)[1]}
        distinct = {name for name in names if _DISTINCT.search(name)}
        forms = [(_ANYWHERE, distinct), (_AS_NAME, names - distinct if with_words else set())]
        told = [form.replace("NAME", _any_of(known)) for form, known in forms if known]
        return cls(re.compile("|".join(told)) if told else None)

    def mark(self, text: str) -> str:
        """Return the text with `PARAMETER` in place of their names."""
        return text if self.pattern is None else self.pattern.sub(_mark_name, text)


def _mark_name(match: re.Match[str]) -> str:
    start, end = (at - match.start() for at in match.span(match.lastindex or 0))
    mark = PARAMETER if _DISTINCT.search(match[0][start:end]) else PARAMETER_WORD
    return match[0][:start] + mark + match[0][end:]


def _any_of(names: Iterable[str]) -> str:
    """Return a group of any of these names, however one of them begins another."""
    return f"({'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})"
