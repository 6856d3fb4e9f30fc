"""What is allowed here: the shipped rules, and what an operator's file adds and takes away.

A file decides on names from known lists, on hosts, on further directories and on what a person is
asked about. It cannot change the checks of paths, options and protected names.
"""

import functools
import os
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from policies.inputs import KNOWN_TOOLS
from policies.paths.protected import find_acting, find_secret
from policies.paths.workspace import ExtraDirectory, find_form_fault
from policies.rule_file import RuleFile, RulesError, Section, show_path, suggest
from policies.shell.commands import GRAMMARS
from policies.visible_text import show
from policies.web import ANY_HOST, read_listed_host
from policies.windows.judge import KNOWN_COMMANDS as KNOWN_WINDOWS_COMMANDS

__all__ = [
    "KNOWN_COMMANDS",
    "KNOWN_WINDOWS_COMMANDS",
    "AskRule",
    "ExtraDirectory",
    "Rules",
    "RulesError",
    "load_rules",
    "shipped_rules",
]

SHIPPED = Path(__file__).with_name("rules.toml")
KNOWN_COMMANDS = frozenset(GRAMMARS)
MAX_ASK_PATTERN_CHARS = 256

_TABLES = {
    "commands": ("allow", "forbid"),
    "windows_commands": ("allow", "forbid"),
    "tools": ("allow", "tolerate", "optional", "forbid"),
    "own_tools": ("reading", "changing"),
    "web": ("hosts",),
    "directories": ("read_only", "read_write"),
    "ask": ("tools", "commands", "paths"),
}
_OWN_TOOL = re.compile(r"mcp__[A-Za-z0-9_-]{1,64}?__[A-Za-z0-9_-]{1,64}")
_HERE = Path(__file__).resolve().parent
_PROGRAM = tuple(
    os.path.realpath(path)
    for path in (_HERE, _HERE.parent / "gateway", _HERE.parent / "memory", sys.prefix)
)
_DEVICES = ("/proc", "/sys", "/dev", "/run")
"""Paths here are devices or kernel interfaces; access has side effects."""
_SYSTEM = (
    *("/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/sbin", "/usr"),
    *("/Applications", "/Library", "/System", "/private/etc"),
)
"""Write access here is control of the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRule:
    """A person is asked about calls of these tools and commands."""

    tools: frozenset[str] = frozenset()
    commands: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()
    """Patterns from the workspace's root, of which one must be touched; empty: every call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one gateway allows."""

    commands: frozenset[str] = frozenset()
    forbidden_commands: frozenset[str] = frozenset()
    """Commands that a file forbids: no person is asked about them either."""
    windows_commands: frozenset[str] = frozenset()
    """As in `KNOWN_WINDOWS_COMMANDS`; PowerShell disregards case."""
    offered_tools: frozenset[str] = frozenset()
    """Built-in tools that the agent is offered."""
    tolerated_tools: frozenset[str] = frozenset()
    """Built-in tools that are judged although they are not offered."""
    own_reading_tools: frozenset[str] = frozenset()
    """Tools of the gateway by exact name, allowed with any input, that change nothing."""
    own_changing_tools: frozenset[str] = frozenset()
    optional_tools: frozenset[str] = frozenset()
    """Built-in tools that a setting of the gateway switches; see `with_optional`."""
    web_hosts: frozenset[str] = frozenset()
    """Exact hosts in ASCII; `*`: every public name."""
    directories: tuple[ExtraDirectory, ...] = ()
    ask: tuple[AskRule, ...] = ()

    @property
    def tools(self) -> frozenset[str]:
        """Every built-in tool that may be called."""
        return self.offered_tools | self.tolerated_tools

    def with_optional(self, switched: Mapping[str, bool]) -> "Rules":
        """Return the rules with each of these tools offered if it is on and not forbidden, or else
        unknown.
        """
        on = {name for name, is_on in switched.items() if is_on} & self.optional_tools
        off = {name for name, is_on in switched.items() if not is_on}
        return replace(
            self,
            offered_tools=(self.offered_tools | on) - off,
            tolerated_tools=self.tolerated_tools - on - off,
        )


@functools.cache
def shipped_rules() -> Rules:
    """Return the rules that hold without an operator's file."""
    return _read_rules(RuleFile(SHIPPED), Rules())


def load_rules(
    path: Path | None, *, workspace: Path | None = None, private: Collection[Path] = ()
) -> Rules:
    """Return the shipped rules as changed by a file; without a file, as they are.

    A further directory must not overlap with the workspace or what is private to the server, and
    the file must not lie in the workspace. Raise `RulesError` if the file cannot be used; the text
    names file, line and fix.
    """
    if path is None:
        return shipped_rules()
    file = RuleFile(path)
    rules = _read_rules(file, shipped_rules())
    _check_directories(file, rules.directories, workspace, private)
    writable = [extra.path for extra in rules.directories if extra.writable]
    for folder in writable if workspace is None else [*writable, workspace]:
        if is_in(os.path.realpath(path), os.path.realpath(folder)):
            raise file.fault(None, "in_reach", show_path(folder))
    return rules


def _read_rules(file: RuleFile, base: Rules) -> Rules:
    for name in file.values:
        if name not in _TABLES:
            line, known = file.find_line(name), suggest(name, _TABLES)
            raise file.fault(line, "unknown_table", show(name), known)
    sections = {name: Section(file, name, _TABLES[name]) for name in _TABLES if name != "ask"}
    tools, own = sections["tools"], sections["own_tools"]
    offered, tolerated = _read_tools(tools, base)
    optional = base.optional_tools | tools.names("optional", KNOWN_TOOLS, "tool")
    rules = Rules(
        commands=_merge(sections["commands"], base.commands, KNOWN_COMMANDS, "command"),
        forbidden_commands=base.forbidden_commands
        | sections["commands"].names("forbid", KNOWN_COMMANDS, "command"),
        windows_commands=_merge(
            sections["windows_commands"], base.windows_commands, KNOWN_WINDOWS_COMMANDS, "command"
        ),
        offered_tools=offered,
        tolerated_tools=tolerated,
        optional_tools=optional - tools.names("forbid", KNOWN_TOOLS, "tool"),
        own_reading_tools=base.own_reading_tools | _read_own(own, "reading"),
        own_changing_tools=base.own_changing_tools | _read_own(own, "changing"),
        web_hosts=_read_hosts(sections["web"], tools, base),
        directories=(*base.directories, *_read_directories(sections["directories"])),
        ask=base.ask,
    )
    tables = file.values.get("ask", [])
    if not isinstance(tables, list):
        raise file.fault(file.find_line("ask"), "ask_not_a_list")
    nths = range(len(tables))
    read = (_read_ask(Section(file, "ask", _TABLES["ask"], nth=nth), rules) for nth in nths)
    return replace(rules, ask=(*rules.ask, *read))


def _read_tools(section: Section, base: Rules) -> tuple[frozenset[str], frozenset[str]]:
    offered = _merge(section, base.offered_tools, KNOWN_TOOLS, "tool")
    more = section.names("tolerate", KNOWN_TOOLS, "tool")
    forbidden = section.names("forbid", KNOWN_TOOLS, "tool")
    for name in sorted(more & forbidden):
        raise section.fault("tolerate", name, "contradiction", name, "tolerate")
    return offered, (base.tolerated_tools | more) - forbidden - offered


def _read_hosts(section: Section, tools: Section, base: Rules) -> frozenset[str]:
    given = section.texts("hosts")
    if given is None:
        if "WebFetch" in (tools.texts("allow") or ()):
            raise tools.fault("allow", "WebFetch", "no_hosts")
        return base.web_hosts
    hosts = {text: text if text == ANY_HOST else read_listed_host(text) for text in given}
    for text, host in hosts.items():
        if host is None:
            raise section.fault("hosts", text, "not_a_host", show(text))
    return frozenset(host for host in hosts.values() if host is not None)


def _merge(
    section: Section, base: frozenset[str], known: Collection[str], kind: str
) -> frozenset[str]:
    allowed = section.names("allow", known, kind)
    forbidden = section.names("forbid", known, kind)
    for name in sorted(allowed & forbidden):
        raise section.fault("allow", name, "contradiction", name, "allow")
    return (base | allowed) - forbidden


def _read_own(section: Section, key: str) -> frozenset[str]:
    found = section.texts(key) or ()
    for name in found:
        if not _OWN_TOOL.fullmatch(name):
            raise section.fault(key, name, "not_own_tool", show(name))
    return frozenset(found)


def _read_directories(section: Section) -> tuple[ExtraDirectory, ...]:
    return tuple(
        ExtraDirectory(
            path=read_directory(section, key, given, writable=writable), writable=writable
        )
        for key, writable in (("read_only", False), ("read_write", True))
        for given in section.texts(key) or ()
    )


def read_directory(section: Section, key: str, given: str, *, writable: bool) -> Path:
    """Return the directory that the value of a key names.

    Raise `RulesError` if it is not an ordinary directory by its real, absolute path.
    """

    def fault(problem: str, *shown: object) -> RulesError:
        return section.fault(key, given, problem, show(given), *shown)

    form = find_form_fault(given)
    if form is not None or not Path(given).is_absolute():
        raise fault("not_absolute")
    if os.path.realpath(given) != given:
        raise fault("not_real", show_path(Path(os.path.realpath(given))))
    path = Path(given)
    if not path.is_dir():
        raise fault("not_a_directory")
    closed = (*_DEVICES, *_SYSTEM) if writable else _DEVICES
    if given == "/" or any(is_in(given, folder) for folder in closed):
        raise fault("of_the_system")
    protected = find_secret(path.parts) or find_acting(path.parts[1:])
    if protected is not None:
        raise fault("protected", show(protected))
    return path


def _read_ask(section: Section, rules: Rules) -> AskRule:
    tools = section.names("tools", KNOWN_TOOLS | _own_tools(rules), "tool")
    commands = section.names("commands", KNOWN_COMMANDS | KNOWN_WINDOWS_COMMANDS, "command")
    usable = {
        "tools": rules.tools | rules.optional_tools | _own_tools(rules),
        "commands": rules.commands | rules.windows_commands,
    }
    for key, names in (("tools", tools), ("commands", commands)):
        for name in sorted(names - usable[key]):
            raise section.fault(key, name, "never_asked", name, key)
    if not tools and not commands:
        raise section.fault("", "", "empty_ask")
    paths = section.texts("paths")
    for pattern in paths or ():
        if not _is_ask_pattern(pattern):
            raise section.fault("paths", pattern, "not_a_pattern", show(pattern))
    if paths == ():
        raise section.fault("paths", "", "no_paths")
    return AskRule(tools=tools, commands=commands, paths=paths or ())


def _own_tools(rules: Rules) -> frozenset[str]:
    return rules.own_reading_tools | rules.own_changing_tools


def _is_ask_pattern(pattern: str) -> bool:
    parts = pattern.split("/")
    plain = len(pattern) <= MAX_ASK_PATTERN_CHARS and find_form_fault(pattern) is None
    return plain and all(part not in {"", ".", ".."} for part in parts)


def _check_directories(
    file: RuleFile,
    directories: Collection[ExtraDirectory],
    workspace: Path | None,
    private: Collection[Path],
) -> None:
    taken = [(os.path.realpath(path), "the server's own") for path in private]
    if workspace is not None:
        taken.append((os.path.realpath(workspace), "the workspace"))
    for directory in directories:
        mine = str(directory.path)
        if found := find_overlap(directory, taken):
            key = "read_write" if directory.writable else "read_only"
            line = file.find_line("directories", key, mine)
            fix = "list it under read_only, or name" if found[0] in _PROGRAM else "name"
            raise file.fault(line, "overlap", show(mine), found[1], show(found[0]), fix)
        taken.append((mine, "the listed directory"))


def find_overlap(
    directory: ExtraDirectory, taken: Collection[tuple[str, str]]
) -> tuple[str, str] | None:
    """Return the first real path, with what it is, that a directory overlaps with; if it can be
    written, the server's program counts, too.
    """
    mine = str(directory.path)
    programs = [(path, "the server's own program") for path in _PROGRAM if directory.writable]
    overlapping = (
        other for other in (*taken, *programs) if is_in(mine, other[0]) or is_in(other[0], mine)
    )
    return next(overlapping, None)


def is_in(path: str, folder: str) -> bool:
    """Return whether a real path is a folder or lies below it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
