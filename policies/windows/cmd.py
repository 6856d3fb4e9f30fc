"""The judgement of the four commands of cmd: `del`, `move`, `copy` and `ren`.

Patterns are not expanded on the line, because cmd cannot write several names in place of one. The names that
a pattern takes are judged here, and cmd finds them again.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from policies.paths.workspace import Place
from policies.verdict import CommandApproval, Deny
from policies.visible_text import show
from policies.windows.cmd_words import CmdWords, split_cmd_words
from policies.windows.effects import ROOT_REMOVED, judge_move, judge_removals, judge_transfers
from policies.windows.operands import Operands
from policies.windows.trees import WindowsTreeInspector
from policies.windows.wildcards import has_wildcard, read_pattern
from policies.windows.workspace import WindowsWorkspace

SWITCHES: Mapping[str, frozenset[str]] = {
    "del": frozenset({"/f", "/q", "/s"}),
    "copy": frozenset({"/y", "/-y", "/v", "/b"}),
    "move": frozenset({"/y", "/-y"}),
    "ren": frozenset(),
}
_TWO = 2


class _Judge:
    """The judging of one line."""

    def __init__(self, verb: str, words: CmdWords, workspace: WindowsWorkspace) -> None:
        self.verb = verb
        self.words = words
        self.workspace = workspace
        self.inspector = WindowsTreeInspector(workspace)
        self.operands = Operands(workspace, "cmd")

    def run(self) -> CommandApproval | Deny:
        for switch in self.words.switches:
            if switch not in SWITCHES[self.verb]:
                return Deny(
                    "switch_not_allowed",
                    f"{self.verb} does not take {switch} here.",
                    f"Allowed are: {' '.join(sorted(SWITCHES[self.verb])) or 'none'}.",
                )
        fault = self._find_count_fault() or _JUDGES[self.verb](self)
        if fault is not None:
            return fault
        quoted = [_quote(name) for name in self.words.names]
        line = " ".join((self.verb, *self.words.switches, *quoted))
        return CommandApproval(
            rule=f"windows_{self.verb}",
            command=self.verb,
            line=line,
            paths=tuple(self.operands.touched) or (".",),
            changes=True,
        )

    def _find_count_fault(self) -> Deny | None:
        count = len(self.words.names)
        if count >= 1 if self.verb == "del" else count == _TWO:
            return None
        form = "del name" if self.verb == "del" else f"{self.verb} source target"
        return Deny("operands", f"{self.verb} needs other names.", f"Write it as: {form}.")

    def judge_del(self) -> Deny | None:
        for name in self.words.names:
            places = self.operands.gather(name, sweeps=True)
            if isinstance(places, Deny):
                return places
            fault = judge_removals(self.inspector, places) or self._judge_below(name)
            if fault is not None:
                return fault
        return None

    def _judge_below(self, name: str) -> Deny | None:
        """Judge `/s`, which also takes every file of that name in the folders below."""
        if "/s" not in self.words.switches:
            return None
        folder, _, last = name.replace("/", "\\").rstrip("\\").rpartition("\\")
        pattern = read_pattern(last, "cmd")
        if isinstance(pattern, Deny):
            return pattern
        base = self.workspace.locate(f"{folder}\\" if folder else ".")
        if isinstance(base, Deny):
            return base
        self.operands.touched.append(base.absolute)
        return self.inspector.inspect_matches(base, pattern.takes) or (
            self.inspector.inspect_links(base)
        )

    def judge_transfer(self) -> Deny | None:
        source, target = self.words.names
        if self.verb == "copy" and "+" in source + target:
            return Deny("concatenation", "A plus sign joins files in copy.", "Use Copy-Item.")
        landing = self.operands.target(target)
        places = self.operands.gather(source, sweeps=self.verb != "copy")
        if isinstance(landing, Deny):
            return landing
        if isinstance(places, Deny):
            return places
        if self.verb == "copy":
            inside = self._read_folders(places)
            if isinstance(inside, Deny):
                return inside
            places += inside
        return judge_transfers(self.inspector, places, landing, moves=self.verb == "move")

    def _read_folders(self, places: Sequence[Place]) -> tuple[Place, ...] | Deny:
        """Return the files of the folders among the sources, which `copy` takes."""
        found: list[Place] = []
        for place in places:
            if Path(place.real).is_dir():
                inside = self.operands.gather(f"{place.absolute}\\*", sweeps=False)
                if isinstance(inside, Deny):
                    return inside
                found += inside
        return tuple(found)

    def judge_ren(self) -> Deny | None:
        source, target = self.words.names
        if any(sign in target for sign in "\\/:") or target in {".", ".."}:
            return Deny(
                "rename_path",
                f"ren gives a new name in the same folder, and {show(target)} is a path.",
                "Use move to put a file elsewhere.",
            )
        renamed = _read_new_name(target)
        places = self.operands.gather(source, sweeps=True)
        if isinstance(renamed, Deny):
            return renamed
        if isinstance(places, Deny):
            return places
        if any(place.is_root for place in places):
            return ROOT_REMOVED
        return self._find_new_name_fault(source, renamed) or self._judge_renamed(places, renamed)

    def _find_new_name_fault(self, source: str, renamed: Callable[[str], str]) -> Deny | None:
        """Refuse a protected new name, even if the pattern takes nothing yet."""
        folder, slash, _ = source.replace("/", "\\").rstrip("\\").rpartition("\\")
        landing = self.workspace.locate(f"{folder}{slash}{renamed('name')}")
        return landing if isinstance(landing, Deny) else landing.find_write_fault()

    def _judge_renamed(self, places: Sequence[Place], renamed: Callable[[str], str]) -> Deny | None:
        for place in places:
            folder = place.absolute[: -len(place.parts[-1])]
            landing = self.workspace.locate(f"{folder}{renamed(place.parts[-1])}")
            if isinstance(landing, Deny):
                return landing
            self.operands.touched.append(landing.absolute)
            fault = judge_move(self.inspector, place, landing)
            if fault is not None:
                return fault
        return None


def _read_new_name(target: str) -> Callable[[str], str] | Deny:
    """Read the new name of `ren`: a name, or `*.ext` for another extension."""
    if not has_wildcard(target, "cmd"):
        return lambda _old: target
    extension = target[2:]
    if not target.startswith("*.") or not extension.isalnum():
        return Deny(
            "target_pattern",
            f"The new name {show(target)} is a pattern that could become any name.",
            "Write the new name in full, or *.ext to change the extension.",
        )
    return lambda old: f"{old.rpartition('.')[0] if '.' in old else old}.{extension}"


_JUDGES: Mapping[str, Callable[[_Judge], Deny | None]] = {
    "del": _Judge.judge_del,
    "copy": _Judge.judge_transfer,
    "move": _Judge.judge_transfer,
    "ren": _Judge.judge_ren,
}


def _quote(name: str) -> str:
    """Quote a name for cmd, PowerShell and bash: bash would take a final backslash as escaping the quote."""
    quoted = name.replace("/", "\\").rstrip("\\")
    return f'"{quoted}"'


def judge_cmd(verb: str, text: str, workspace: WindowsWorkspace) -> CommandApproval | Deny:
    """Judge one command of cmd; `verb` is in lower case, `text` is what follows it."""
    words = split_cmd_words(text, workspace)
    if isinstance(words, Deny):
        return words
    return _Judge(verb, words, workspace).run()
