"""Under which names a tool is spoken of, and how each may be written.

`mcp__prom__query_range` is also `prom::query_range` and `query_range`; that may be written `query-range` or
`queryRange`. Humps count only as they stand, so that `log_in` is not found in every `login`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

NAME_START: Final = r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9]-)"
NAME_END: Final = r"(?![A-Za-z0-9_])(?!-[A-Za-z0-9])"
_CJK: Final = re.compile(r"[一-鿿]")
_PART_END: Final = re.compile(r"[-_]|(?<=[a-z0-9])(?=[A-Z])")


def aliases_of(name: str) -> Iterator[str]:
    """Give the names by which a tool is known: bare ones, `server::tool`, `mcp__server__tool`."""
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


def is_a_word(alias: str) -> bool:
    """Whether a text may well have it without speaking of a tool."""
    if _CJK.search(alias):
        return True
    return alias.isalpha() and alias[1:] == alias[1:].lower()


def folded(text: str) -> str:
    """Give a text as a name is looked for in haste: small letters, neither `-` nor `_`."""
    return text.lower().replace("_", "").replace("-", "")


def spellings_of(names: Iterable[str]) -> str:
    """Give an expression that finds names however they are written, the longest first."""
    ordered = sorted(set(names), key=lambda one: (-len(one), one))
    in_any_case = dict.fromkeys(one for name in ordered for one in _with_separators(name))
    with_humps = dict.fromkeys(one for name in ordered for one in _with_humps(name))
    any_case = f"(?i:{'|'.join(in_any_case)})"
    return f"{initials_of(ordered)}(?:{'|'.join([any_case, *with_humps])})"


def initials_of(names: Iterable[str]) -> str:
    """Give a look ahead by which the most places are passed by at once; time, not meaning."""
    initials = sorted({case for name in names for case in (name[0].lower(), name[0].upper())})
    return f"(?=[{''.join(re.escape(one) for one in initials if len(one) == 1)}])"


def _with_separators(name: str) -> Iterator[str]:
    yield "[-_]".join(map(re.escape, re.split("[-_]", name)))
    if parts := _parts(name):
        yield "[-_]".join(map(re.escape, parts))


def _with_humps(name: str) -> Iterator[str]:
    if parts := _parts(name):
        first, *rest = parts
        humps = "".join(one[:1].upper() + one[1:] for one in rest)
        yield re.escape(first.lower() + humps)
        yield re.escape(first[:1].upper() + first[1:] + humps)


def _parts(name: str) -> list[str]:
    """Give the words of a name; nothing of one word, or with the server in it."""
    if "__" in name or "::" in name:
        return []
    parts = [one for one in _PART_END.split(name) if one]
    return parts if len(parts) > 1 else []
