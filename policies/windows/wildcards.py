"""The files that a pattern of cmd or PowerShell may take.

Both take names that begin with a dot, so `*` includes `.env`. cmd also compares with the short name that NTFS
may keep beside the long one (`ENV~1` for `.env`), and lets `?` stand for nothing. In doubt a pattern is read
as taking a name, because every name that it may take is judged.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from policies.denials import denied
from policies.paths.workspace import Place
from policies.visible_text import show
from policies.windows.path_spelling import check_colon, check_name, unify
from policies.windows.workspace import WindowsWorkspace

MAX_EXAMINED = 20_000
MAX_HITS = 2000
MAX_WILDCARDS = 16

Dialect = Literal["cmd", "powershell"]

_UNKNOWN = "\0"
"""Stands in a short name for a character that cannot be predicted."""
_SET = re.compile(r"[\w\-]+")
_SHORT_NAME = re.compile(r"~[*?\[]")
_SHORT_STEM_CHARS = 6
_HASHED_STEM_CHARS = 2
_SHORT_EXTENSION_CHARS = 3


@dataclass(slots=True)
class Budget:
    """The work that the patterns of one command may still do."""

    examined: int = MAX_EXAMINED
    hits: int = MAX_HITS


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Literal["any", "one", "optional", "set", "literal"]
    text: str = ""

    def takes(self, char: str) -> bool:
        if char == _UNKNOWN or self.kind in {"any", "one", "optional"}:
            return True
        if self.kind == "set":
            return re.fullmatch(self.text, char, re.IGNORECASE) is not None
        return self.text == char


@dataclass(frozen=True, slots=True)
class Pattern:
    """One component of a path that holds wildcards."""

    tokens: tuple[_Token, ...]
    dialect: Dialect

    @property
    def names_nothing(self) -> bool:
        """Return whether it consists of wildcards and punctuation alone."""
        return not any(t.kind == "literal" and t.text.isalnum() for t in self.tokens)

    def takes(self, name: str) -> bool:
        """Return whether the pattern takes a name, or may take it by its short one."""
        folded = name.casefold()
        if self._matches(folded):
            return True
        if self.dialect == "powershell":
            return False
        return self._matches(f"{folded}.") or any(map(self._matches, _short_names(folded)))

    def _matches(self, name: str) -> bool:
        """Follow all readings at once, so that no pattern takes long."""
        reached = _skip(self.tokens, {0})
        for char in name:
            stepped = set()
            for at in reached:
                if at < len(self.tokens) and self.tokens[at].takes(char):
                    stepped.add(at if self.tokens[at].kind == "any" else at + 1)
            reached = _skip(self.tokens, stepped)
            if not reached:
                return False
        return len(self.tokens) in reached


def _skip(tokens: tuple[_Token, ...], reached: set[int]) -> set[int]:
    out = set(reached)
    for at in range(len(tokens)):
        if at in out and tokens[at].kind in {"any", "optional"}:
            out.add(at + 1)
    return out


def _short_names(name: str) -> tuple[str, ...]:
    """Return the forms that the short name of a name may have, in lower case."""
    kept = re.sub(r"[+,;=\[\]]", "_", name.lstrip(".").replace(" ", ""))
    stem, _, extension = kept.rpartition(".") if "." in kept else (kept, "", "")
    stem = "".join(c if c.isascii() else _UNKNOWN for c in stem.replace(".", ""))
    extension = "".join(c if c.isascii() else _UNKNOWN for c in extension[:_SHORT_EXTENSION_CHARS])
    tail = f"~{_UNKNOWN}" + (f".{extension}" if extension else "")
    hashed = stem[:_HASHED_STEM_CHARS] + _UNKNOWN * 4
    forms = (stem[:_SHORT_STEM_CHARS] + tail, hashed + tail)
    return forms if extension else (*forms, *(f"{form}." for form in forms))


def has_wildcard(text: str, dialect: Dialect) -> bool:
    """Return whether a shell takes the text for a pattern."""
    return any(char in text for char in ("*?" if dialect == "cmd" else "*?[]"))


def read_pattern(component: str, dialect: Dialect) -> Pattern:
    """Read one component of a path as a pattern, or refuse it."""
    if sum(char in "*?[" for char in component) > MAX_WILDCARDS:
        raise denied("glob_too_wide.windows")
    tokens: list[_Token] = []
    at = 0
    while at < len(component):
        char = component[at]
        if char == "*":
            tokens.append(_Token("any"))
        elif char == "?":
            tokens.append(_Token("optional" if dialect == "cmd" else "one"))
        elif char in "[]" and dialect == "powershell":
            end = component.find("]", at)
            inner = component[at + 1 : end] if char == "[" else ""
            if end < 0 or not _SET.fullmatch(inner) or not _is_set(f"[{inner}]"):
                raise denied("glob_bracket.pattern", show(component))
            tokens.append(_Token("set", f"[{inner}]"))
            at = end
        else:
            tokens += (_Token("literal", c) for c in char.casefold())
        at += 1
    return Pattern(tuple(tokens), dialect)


def _is_set(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Expansion:
    """What a pattern takes, and from where."""

    base: Place
    """The folder that the first wildcard looks through."""
    places: tuple[Place, ...]
    names_nothing: bool
    """It consists of wildcards alone."""


def _split(text: str, dialect: Dialect) -> tuple[str, list[str]]:
    components = unify(text).split("/")
    first = next(i for i, c in enumerate(components) if has_wildcard(c, dialect))
    rest = components[first:]
    if ".." in rest:
        raise denied("glob_parent")
    for component in rest:
        check_colon(component)
        check_name(component)
        if _SHORT_NAME.search(component):
            raise denied("path_short_name.split", show(component))
    if dialect == "cmd" and len(rest) > 1:
        raise denied("glob_folder")
    return "/".join(components[:first]) + ("/" if first else ""), rest


def expand(
    text: str, workspace: WindowsWorkspace, budget: Budget, *, dialect: Dialect
) -> Expansion:
    """Return the places that a pattern may take, each inside, or refuse it; `budget` is used up."""
    workspace.check_root(text)
    prefix, rest = _split(text, dialect)
    base = workspace.locate(prefix or ".")
    if not Path(base.real).is_dir():
        raise denied("folder_missing.expand", show(prefix))
    patterns = [read_pattern(component, dialect) for component in rest]
    reached: list[Place] = [base]
    for i, pattern in enumerate(patterns):
        reached = _step(reached, pattern, workspace, budget, last=i == len(patterns) - 1)
    nothing = all(pattern.names_nothing for pattern in patterns)
    return Expansion(base, tuple(reached), nothing)


def _step(
    folders: list[Place],
    pattern: Pattern,
    workspace: WindowsWorkspace,
    budget: Budget,
    *,
    last: bool,
) -> list[Place]:
    found: list[Place] = []
    for folder in folders:
        if not Path(folder.real).is_dir():
            continue
        with os.scandir(folder.real) as entries:
            for entry in entries:
                budget.examined -= 1
                if budget.examined < 0 or budget.hits < 0:
                    raise denied("glob_too_wide.windows")
                if pattern.takes(entry.name):
                    found.append(workspace.locate(f"{folder.absolute}/{entry.name}"))
                    budget.hits -= last
    return found
