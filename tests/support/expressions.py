"""All compiled expressions of the program, and texts made to slow each of them down."""

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

sre: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")
_DEPTH: Final = 4
_MOST_ATTACKS: Final = 60
_CHARS: Final[Mapping[Any, str]] = {
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_WORD: "-",
}
_OTHERS: Final = "ab1 \n-\"'.密\u200b"
"""What an inverted set is tried with."""


def expressions(*packages: str) -> Mapping[str, re.Pattern[str]]:
    """Return every expression that a module of the packages holds, by the first place that it was found at."""
    found: dict[tuple[str, int], tuple[str, re.Pattern[str]]] = {}
    for module in _modules(packages):
        for name, value in vars(module).items():
            for pattern in _patterns(value, _DEPTH):
                if isinstance(pattern.pattern, str):
                    key = (pattern.pattern, pattern.flags)
                    found.setdefault(key, (f"{module.__name__}.{name}", pattern))
    names: dict[str, re.Pattern[str]] = {}
    for place, pattern in found.values():
        same = sum(name.partition(" ")[0] == place for name in names)
        names[f"{place} {same}" if same else place] = pattern
    return names


def _modules(packages: tuple[str, ...]) -> Iterator[ModuleType]:
    for package in packages:
        root = importlib.import_module(package)
        yield root
        for info in pkgutil.walk_packages(root.__path__, f"{package}."):
            if not info.name.endswith(".__main__"):
                yield importlib.import_module(info.name)


def _patterns(value: Any, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth:
        for part in _parts(value):
            yield from _patterns(part, depth - 1)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value.values()
        yield from value.keys()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif hasattr(value, "__dataclass_fields__"):
        yield from (getattr(value, name, None) for name in value.__dataclass_fields__)


def scans(name: str) -> bool:
    """Return whether an expression is searched for in a text, and not only compared with its beginning.

    Of a name that begins with `_` only its own module is read. One whose use is not seen counts as
    searched for.
    """
    module, _, own = name.partition(" ")[0].rpartition(".")
    is_private = own.startswith("_")
    source = inspect.getsource(sys.modules[module]) if is_private else _source_of(module)
    uses = {*re.findall(rf"(?<!\w){re.escape(own)}\.(\w+)", source)}
    return not uses or not uses <= {"match", "fullmatch"}


@cache
def _source_of(module: str) -> str:
    """Return the text of the whole package that a module is of."""
    (root,) = sys.modules[module.partition(".")[0]].__path__
    return "\n".join(path.read_text(encoding="utf-8") for path in Path(root).rglob("*.py"))


def attacks(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return beginnings and what to repeat after them: for each repetition in an expression one of its texts."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    return list(dict.fromkeys(_pumps(tree, "")))[:_MOST_ATTACKS]


def _pumps(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield what repeats in a sequence, each behind a text that leads there."""
    for kind, given in tree:
        for inner in _inner(kind, given):
            if kind in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT} and (
                given[1] > 1 and (unit := _sample(inner))
            ):
                yield before, unit
                yield "", unit
                yield "", before + unit
            yield from _pumps(inner, before)
        before += _sample([(kind, given)])


def _inner(kind: Any, given: Any) -> list[Any]:
    if kind in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
        return [given[2]]
    if kind is sre.SUBPATTERN:
        return [given[3]]
    if kind is sre.BRANCH:
        return list(given[1])
    if kind is sre.ATOMIC_GROUP:
        return [given]
    if kind in {sre.ASSERT, sre.ASSERT_NOT}:
        return [given[1]]
    return []


def _sample(tree: Any) -> str:
    """Return a text that a sequence matches, or nearly."""
    text = ""
    for kind, given in tree:
        if kind is sre.LITERAL:
            text += chr(given)
        elif kind in {sre.ANY, sre.NOT_LITERAL}:
            text += "a"
        elif kind is sre.IN:
            text += _member(given)
        elif kind in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
            text += _sample(given[2]) * max(1, min(given[0], 40))
        elif kind in {sre.SUBPATTERN, sre.BRANCH, sre.ATOMIC_GROUP}:
            text += _sample(_inner(kind, given)[0])
    return text


def _member(members: Any) -> str:
    kind, given = members[0]
    if kind is sre.NEGATE:
        shut = {chr(one) for what, one in members if what is sre.LITERAL}
        return next((char for char in _OTHERS if char not in shut), "x")
    if kind is sre.LITERAL:
        return chr(given)
    return chr(given[0]) if kind is sre.RANGE else _CHARS.get(given, "a")
