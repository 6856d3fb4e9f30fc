"""The judgement of one command line on Windows: `judge_windows_command`.

Patterns are expanded here, as PowerShell would but without hidden names, so that every name is
judged and what was judged is what runs.
"""

import fnmatch
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from policies.denials import alternatives, denied
from policies.paths.trees import TreeInspector, is_link
from policies.paths.workspace import Place
from policies.shell.effects import judge_effects
from policies.shell.globs import MAX_HITS, MAX_WILDCARDS, Budget
from policies.shell.judge import MAX_RUN_CHARS
from policies.shell.options import Invocation
from policies.verdict import CommandApproval
from policies.visible_text import BLANK, check_command_text, show
from policies.windows.commands import COMMANDS, Call, bind
from policies.windows.words import SINGLE_QUOTES, split_words
from policies.windows.workspace import WindowsWorkspace

KNOWN_COMMANDS = frozenset(COMMANDS)
_NAMES = {name.casefold(): name for name in KNOWN_COMMANDS}
_POSIX: Mapping[str, str] = {
    "Remove-Item": "rm",
    "Move-Item": "mv",
    "Copy-Item": "cp",
    "New-Item": "mkdir",  # which makes what is missing above, too
    "Get-ChildItem": "ls",
}
"""The command by whose effect each cmdlet is judged."""
_INSTEAD = alternatives("windows")
_WILD = frozenset("*?")
_PATTERN = frozenset("[]`")  # PowerShell reads these as one in a new name, also in quotes
_PATHS = frozenset({"LiteralPath", "Path", "Destination"})


def _read_name(line: str, commands: Collection[str]) -> str:
    listed = f"Allowed are {', '.join(sorted(commands)) or 'none'}."
    word = line.replace("\t", " ").partition(" ")[0]
    name = _NAMES.get(word.casefold()) if word.isascii() else None
    if name is None or name not in commands:
        raise denied("command_not_allowed", show(word), _INSTEAD.get(word.casefold(), listed))
    return name


def _expand(call: Call, text: str, workspace: WindowsWorkspace, budget: Budget) -> list[Place]:
    if "LiteralPath" in call.values or _WILD.isdisjoint(text):
        return [workspace.locate(text)]
    folder, slash, pattern = text.replace("\\", "/").rpartition("/")
    base = workspace.locate(f"{folder}{slash}" or ".")
    base.check_read()
    if sum(map(pattern.count, _WILD)) > MAX_WILDCARDS:
        raise denied("glob_too_wide")
    folded = pattern.casefold().replace("[", "[[]")  # brackets are letters here
    visible, found = 0, list[str]()
    for path in Path(base.real).iterdir():
        budget.examine()
        visible += not path.name.startswith(".")
        if path.name[0] != "." and fnmatch.fnmatchcase(path.name.casefold(), folded):
            found.append(path.name)
    everything = set(pattern) <= {*_WILD, "."} or visible == len(found) > 1
    is_wide = base.is_root or base.real == workspace.locate(workspace.cwd).real
    if everything and is_wide and call.cmdlet in {"Remove-Item", "Move-Item"}:
        raise denied("glob_root", call.name)
    if not found:
        raise denied("source_missing", show(text))
    return [workspace.locate(f"{base.absolute}/{name}") for name in sorted(found)]


def _find_sources(call: Call, workspace: WindowsWorkspace) -> list[Place]:
    budget, places = Budget(), list[Place]()
    usual = (".",) if call.cmdlet == "Get-ChildItem" else ()
    for text in call.values.get("LiteralPath") or call.values.get("Path", usual):
        places += _expand(call, text, workspace, budget)
    if not places:
        raise denied("operands.windows", call.name)
    if len(places) > MAX_HITS:
        raise denied("glob_too_wide")
    return places


def _find_target(call: Call, sources: Sequence[Place], workspace: WindowsWorkspace) -> Place:
    """Return where the sources go: a folder, or the new name of one source."""
    if "Destination" not in call.values:
        raise denied("operands.windows", call.name)
    given = call.values["Destination"][0]
    if call.name == "ren":
        if not {"\\", "/", ":"}.isdisjoint(given):
            raise denied("rename_path", show(given))
        given = str(Path(sources[0].absolute).parent / given)
    place = workspace.locate(given)
    if call.name == "ren" and os.path.lexists(place.real):
        raise denied("target_taken", show(given))
    if (len(sources) > 1 or given.endswith(("\\", "/"))) and not Path(place.real).is_dir():
        raise denied("folder_missing", show(given))
    return place


def _judge_effects(
    call: Call, sources: Sequence[Place], places: Sequence[Place], workspace: WindowsWorkspace
) -> None:
    """Refuse what the POSIX command would be refused for, and links, which
    PowerShells differ on.
    """
    posix, inspector = _POSIX[call.cmdlet], TreeInspector(workspace)
    operands = tuple(place.absolute.replace("\\", "/") for place in places)
    judge_effects(Invocation(posix, (), {"recursive": ""}, operands), workspace)
    for place in places if posix == "mkdir" else places[len(sources) :]:
        if not _PATTERN.isdisjoint(place.absolute):
            raise denied("target_pattern", show(place.given))
    for place in sources:
        if posix == "cp" and place.is_root:
            raise denied("source_name", show(place.given))
        if posix != "ls" and is_link(workspace.locate(place.absolute, follow=False).real):
            raise denied("link_itself", show(place.given))
        if {"Recurse", "Depth"} & {*call.switches, *call.values}:
            inspector.inspect_links(place)


def _quote(texts: Sequence[str]) -> str:
    """Quote texts so that PowerShell takes them literally, with commas between."""
    if not SINGLE_QUOTES.isdisjoint("".join(texts)):
        raise denied("smart_quote", show(" ".join(texts)))
    return ",".join("'" + text.replace("'", "''") + "'" for text in texts)


def _write(call: Call, sources: Sequence[Place], places: Sequence[Place]) -> str:
    """Return the line that runs, with every parameter named and every path whole."""
    paths = [place.absolute.replace("/", "\\") for place in places]
    named, given = "Path" if call.cmdlet == "New-Item" else "LiteralPath", len(sources)
    rest = {key: texts for key, texts in call.values.items() if key not in _PATHS}
    values = {named: paths[:given], "Destination": paths[given:], **rest}
    pieces = [f"-{key} {_quote(texts)}" for key, texts in values.items() if texts]
    line = " ".join((call.cmdlet, *pieces, *(f"-{switch}" for switch in call.switches)))
    if len(line) > MAX_RUN_CHARS:
        raise denied("command_too_long.write")
    return line


def judge_windows_command(
    command: str, workspace: WindowsWorkspace, commands: Collection[str]
) -> CommandApproval:
    """Approve a command line by the commands that are allowed, or refuse it."""
    check_command_text(command)
    line = command.strip(BLANK)
    name = _read_name(line, commands)
    call = bind(name, split_words(line[len(name) :]))
    workspace.check_cwd()
    sources = _find_sources(call, workspace)
    takes_target = _POSIX[call.cmdlet] in {"mv", "cp"}
    places = [*sources, *([_find_target(call, sources, workspace)] if takes_target else [])]
    _judge_effects(call, sources, places, workspace)
    return CommandApproval(
        rule=f"windows_{name.lower().replace('-', '_')}",
        command=name,
        line=_write(call, sources, places),
        paths=tuple(place.absolute for place in places),
        changes=call.cmdlet != "Get-ChildItem",
    )
