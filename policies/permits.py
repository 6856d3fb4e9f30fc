"""What a person's yes covers beyond the call they were asked about.

The gate describes each call that it lets through as an `Effect`. `permits_for` offers the rules
that a yes may stand for, the narrowest first; a later call passes unasked if a rule that the person
chose covers its effect. A rule never lets a call pass that the policy denies.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Reach = Literal["exact", "folder", "files", "rule", "any"]
"""The same call; the same command and options below one folder; an unknown program with the same
words before any files of the workspace; any ordinary program that the same rule denies as unknown;
any call of the command or tool."""

SHELLS = frozenset({"Bash", "PowerShell"})
"""The tools that run a command line."""
_BLANKS = " \t"

Parts = tuple[str, ...]
"""A path below the workspace's root, name by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One call as rules compare it."""

    tool: str
    command: str | None = None
    """The shell command in it."""
    options: tuple[str, ...] | None = ()
    """The command's options as they run; `None`: not known one by one."""
    what: str = ""
    """What tells it from other calls with the same paths: the whole line or input; empty:
    nothing."""
    paths: frozenset[Parts] | None = None
    """Each path it touches, by its spelling and with its links followed; `None`: not known, or
    partly outside."""
    shown: str = ""
    """The line or path as a person reads it."""
    is_unknown: bool = False
    """The policy denies the call unless a person allows it."""
    rule: str = ""
    """The rule that denies an unknown call."""
    fixed: tuple[str, ...] | None = None
    """The words of an unknown program before its file arguments, which `paths` are; `None`: a yes
    stands for nothing but the exact line."""
    is_ordinary: bool = False
    """A yes to the rule may stand for an unknown program with these words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """A rule that a yes stands for."""

    reach: Reach
    effect: Effect
    """The call that the person was asked about."""
    folder: Parts = ()
    """With `folder`: the deepest folder that holds all paths of the call."""

    def covers(self, effect: Effect) -> bool:
        """Return whether a call passes unasked."""
        mine = self.effect
        if self.reach == "rule":
            is_same = (effect.tool, effect.rule) == (mine.tool, mine.rule)
            return is_same and effect.is_unknown and _is_ordinary(effect)
        kind = (effect.tool, effect.command, effect.is_unknown)
        if kind != (mine.tool, mine.command, mine.is_unknown):
            return False
        match self.reach:
            case "exact":
                return (effect.what, effect.paths) == (mine.what, mine.paths)
            case "folder":
                return effect.options == mine.options and _is_below(effect.paths, self.folder)
            case "files":
                return effect.fixed == mine.fixed and _is_plain(effect)
            case "any":
                return True

    def fields(self, show: Callable[[str], str]) -> dict[str, Any]:
        """Return what clients see of it; `show` makes a text safe to show."""
        fields: dict[str, Any] = {
            "reach": self.reach,
            "tool": self.effect.tool,
            "command": self.effect.command,
        }
        if self.reach == "rule":
            fields |= {"command": None, "rule": self.effect.rule}
        if self.reach == "files":
            fields["options"] = [show(word) for word in self.effect.fixed or ()]
        if self.reach == "exact":
            fields["call"] = show(self.effect.shown)
        if self.reach == "folder":
            fields["options"] = [show(option) for option in self.effect.options or ()]
            fields["folder"] = show("/".join(self.folder))
        return fields


def permits_for(effect: Effect, *, is_confined: bool = False) -> tuple[Permit, ...]:
    """Return the rules that a yes to a call may stand for, the narrowest first.

    `is_confined` says that the kernel keeps an unknown program in the workspace.
    """
    permits = [Permit(reach="exact", effect=effect)]
    if effect.is_unknown and effect.options is None:  # a program whose options nobody here knows
        if _is_plain(effect):
            permits.append(Permit(reach="files", effect=effect))
            if is_confined and _is_ordinary(effect):
                permits.append(Permit(reach="rule", effect=effect))
        return tuple(permits)
    if effect.paths and effect.options is not None:
        in_folder = Permit(reach="folder", effect=effect, folder=_common_folder(effect.paths))
        if in_folder.covers(effect):
            permits.append(in_folder)
    return (*permits, Permit(reach="any", effect=effect))


def effect_of_input(tool: str, given: Mapping[str, Any], cwd: str) -> Effect:
    """Return the effect of a call of which no more is known than its input and where it runs.

    Of a shell's input the command line alone counts, not how it is described or how long it may
    take.
    """
    if tool in SHELLS:
        line = str(given.get("command", ""))
        what = f"{cwd}\n{_without_margins(line)}"
        return Effect(tool=tool, options=None, what=what, shown=line)
    shown = json.dumps(given, sort_keys=True, default=repr, ensure_ascii=False)
    return Effect(tool=tool, options=None, what=f"{cwd}\n{shown}", shown=shown)


def _without_margins(line: str) -> str:
    """Return a line without the blanks around it, of which the last one may be escaped.

    Several lines are returned as they are: a blank may keep a here-document from ending.
    """
    if "\n" in line:
        return line
    begun = line.lstrip(_BLANKS)
    kept = begun.rstrip(_BLANKS)
    is_escaped = (len(kept) - len(kept.rstrip("\\"))) % 2
    return begun[: len(kept) + is_escaped]


def _is_plain(effect: Effect) -> bool:
    """Return whether a yes may stand for more than the exact line of an unknown program."""
    return effect.fixed is not None and all(effect.paths or ())


def _is_ordinary(effect: Effect) -> bool:
    """Return whether a yes to the rule may stand for an unknown program with these words."""
    return effect.is_ordinary and _is_plain(effect)


def _is_below(paths: frozenset[Parts] | None, folder: Parts) -> bool:
    count = len(folder)
    return bool(paths) and all(len(path) > count and path[:count] == folder for path in paths or ())


def _common_folder(paths: frozenset[Parts]) -> Parts:
    first, *others = sorted(paths)
    folder = first[:-1]
    for path in others:
        while path[:-1][: len(folder)] != folder:
            folder = folder[:-1]
    return folder
