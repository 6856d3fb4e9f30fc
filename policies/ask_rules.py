"""Return whether a rule wants a person to be asked about a call that is otherwise allowed.

Patterns are compared with the spelling and with where it leads, without regard to case. A folder
counts as touched by everything that is or may be below it, so a rule asks too often rather than too
rarely.
"""

import fnmatch
from collections.abc import Iterable, Sequence
from pathlib import Path

from policies.paths.protected import fold
from policies.paths.workspace import Place, Workspace
from policies.permits import SHELLS, Parts
from policies.rules import AskRule, Rules

_ANY_DEPTH = "**"


def asks_about(
    rules: Rules, tool: str, command: str | None, places: Sequence[Place] | None
) -> bool:
    """Return whether a rule asks about a call of a tool; `command` is the shell command that it
    runs.

    `places` is what the call touches; `None`: unknown, so that every pattern may match. A shell
    call whose command is not known, because it runs in a box, matches every rule about commands.
    """
    named = (command or "").casefold()
    is_unknown = command is None and tool in SHELLS
    return any(
        (
            tool in rule.tools
            or named in map(str.casefold, rule.commands)
            or (is_unknown and bool(rule.commands))
        )
        and _touches(rule, places)
        for rule in rules.ask
    )


def locate_touched(paths: Iterable[str], workspace: Workspace) -> list[Place]:
    """Find the places behind the paths of a call that was allowed."""
    places = (workspace.find(path, follow=follow) for path in paths for follow in (True, False))
    return [place for place in places if place is not None]


def parts_of(places: Iterable[Place]) -> frozenset[Parts]:
    """Return each place by its spelling and with its links followed."""
    return frozenset(parts for place in places for parts in (place.parts, place.real_parts))


def parts_inside(paths: Sequence[str], places: Sequence[Place]) -> frozenset[Parts] | None:
    """Return the parts of the places that `locate_touched` found for paths; `None`: not all of them
    are known and in the workspace.
    """
    is_found = 0 < 2 * len(paths) <= len(places)  # each has two places, itself and where it leads
    return parts_of(places) if is_found and all(p.in_workspace for p in places) else None


def _touches(rule: AskRule, places: Sequence[Place] | None) -> bool:
    if places is None or not rule.paths:
        return True
    return any(
        _matches(pattern.split("/"), parts, is_folder=Path(place.real).is_dir())
        for place in places
        if place.in_workspace
        for parts in (place.parts, place.real_parts)
        for pattern in rule.paths
    )


def _matches(pattern: Sequence[str], parts: Sequence[str], *, is_folder: bool) -> bool:
    """Return whether a path, something above it or, for a folder, something below it fits a
    pattern.

    Keeps all positions in the pattern that are possible so far: the work is their number times the
    parts'.
    """
    at = _skip_any_depth(pattern, {0})
    for part in parts:
        if len(pattern) in at:
            return True
        name = fold(part)
        at = _skip_any_depth(
            pattern,
            {i if pattern[i] == _ANY_DEPTH else i + 1 for i in at if _fits(pattern[i], name)},
        )
    return len(pattern) in at or (is_folder and bool(at))


def _fits(wanted: str, name: str) -> bool:
    return wanted == _ANY_DEPTH or fnmatch.fnmatchcase(name, wanted.casefold())


def _skip_any_depth(pattern: Sequence[str], at: set[int]) -> set[int]:
    """Add the positions behind each `**`, which may stand for nothing."""
    reached = set(at)
    for i, wanted in enumerate(pattern):
        if i in reached and wanted == _ANY_DEPTH:
            reached.add(i + 1)
    return reached
