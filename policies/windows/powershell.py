"""The judgement of the five cmdlets of PowerShell that may run, written anew with every parameter named.

Names without wildcards are handed on with -LiteralPath, so that brackets in them are letters.
"""

from collections.abc import Callable, Mapping

from policies.paths.workspace import Place
from policies.verdict import CommandApproval, Deny
from policies.visible_text import show
from policies.windows.cmdlets import CMDLETS, Bound, bind
from policies.windows.effects import judge_removals, judge_transfers
from policies.windows.operands import Operands
from policies.windows.powershell_words import quote_for_powershell, split_powershell_words
from policies.windows.trees import WindowsTreeInspector
from policies.windows.workspace import WindowsWorkspace

MAX_RUN_CHARS = 30_000

_ORDER = ("filter", "include", "exclude", "itemtype", "value", "depth", "erroraction")
_NAME_PATTERNS = ("filter", "include", "exclude")
_SPELLED = {
    "itemtype": "ItemType",
    "erroraction": "ErrorAction",
    "whatif": "WhatIf",
    "passthru": "PassThru",
    "readonly": "ReadOnly",
}


class _Judge:
    """The judging of one line."""

    def __init__(self, bound: Bound, workspace: WindowsWorkspace) -> None:
        self.bound = bound
        self.inspector = WindowsTreeInspector(workspace)
        self.operands = Operands(workspace, "powershell")
        self.literal = "literalpath" in bound.values
        self.paths = bound.texts("literalpath") or bound.texts("path")

    def run(self, name: str) -> CommandApproval | Deny:
        fault = self._find_pattern_fault() or _JUDGES[name](self)
        if fault is not None:
            return fault
        line = self._write(name)
        if isinstance(line, Deny):
            return line
        return CommandApproval(
            rule=f"windows_{name.replace('-', '_')}",
            command=self.bound.cmdlet.name,
            line=line,
            paths=tuple(self.operands.touched) or (".",),
            changes=name != "get-childitem",
        )

    def _find_pattern_fault(self) -> Deny | None:
        """Refuse a path where a pattern of names is wanted."""
        for name in _NAME_PATTERNS:
            for text in self.bound.texts(name):
                if any(sign in text for sign in ("\\", "/", ":", "~", "..")):
                    return Deny(
                        "filter_path",
                        f"-{name} takes patterns of names, and {show(text)} is none.",
                        "Give the folder as -Path and a pattern such as *.py here.",
                    )
        return None

    def _gather(self, *, sweeps: bool) -> list[Place] | Deny:
        places: list[Place] = []
        for path in self.paths:
            found = self.operands.gather(path, sweeps=sweeps, is_literal=self.literal)
            if isinstance(found, Deny):
                return found
            places += found
        return places if self.paths else self._refuse_operands()

    def _refuse_operands(self) -> Deny:
        name = self.bound.cmdlet.name
        transfer = "destination" in self.bound.cmdlet.values
        form = f"{name} source -Destination target" if transfer else f"{name} name"
        return Deny("operands", f"{name} needs other paths.", f"Write it as: {form}.")

    def judge_remove(self) -> Deny | None:
        places = self._gather(sweeps=True)
        if isinstance(places, Deny):
            return places
        return judge_removals(self.inspector, places)

    def _judge_transfer(self, *, moves: bool) -> Deny | None:
        target = self.bound.text("destination")
        if target is None:
            return self._refuse_operands()
        landing = self.operands.target(target)
        if isinstance(landing, Deny):
            return landing
        places = self._gather(sweeps=moves)
        if isinstance(places, Deny):
            return places
        return judge_transfers(self.inspector, places, landing, moves=moves)

    def judge_move(self) -> Deny | None:
        return self._judge_transfer(moves=True)

    def judge_copy(self) -> Deny | None:
        return self._judge_transfer(moves=False)

    def judge_new(self) -> Deny | None:
        paths = self._new_paths()
        if isinstance(paths, Deny):
            return paths
        kind = (self.bound.text("itemtype") or "file").lower()
        if kind == "directory" and "value" in self.bound.values:
            return Deny("parameter_value", "A folder takes no -Value.", "Leave it out.")
        deep = kind == "directory" or self.bound.switches.get("force", False)
        for path in paths:
            place = self.operands.target(path, is_deep=deep)
            if isinstance(place, Deny):
                return place
        self.paths = paths
        return None

    def _new_paths(self) -> tuple[str, ...] | Deny:
        name = self.bound.text("name")
        if name is None:
            return self.paths or self._refuse_operands()
        if (
            name.startswith(("\\", "/"))
            or ":" in name
            or ".." in name.replace("\\", "/").split("/")
        ):
            return Deny(
                "rename_path", f"-Name takes a name, and {show(name)} is none.", "Use -Path."
            )
        folders = [path.rstrip("\\/") for path in self.paths or (".",)]
        return tuple(f"{folder}\\{name}" for folder in folders)

    def judge_list(self) -> Deny | None:
        for path in self.paths or (".",):
            named = self.literal or not self.operands.is_pattern(path)
            places = self.operands.gather(path, sweeps=False, is_literal=self.literal)
            if isinstance(places, Deny):
                return places
            for place in places:
                fault = self._judge_listed(place, named=named)
                if fault is not None:
                    return fault
        return None

    def _judge_listed(self, place: Place, *, named: bool) -> Deny | None:
        fault = place.find_read_fault() if named else None
        deep = "recurse" in self.bound.switches or "depth" in self.bound.values
        return fault or (self.inspector.inspect_links(place) if deep else None)

    def _write(self, name: str) -> str | Deny:
        wild = any(map(self.operands.is_pattern, self.paths)) and not self.literal
        key = "-Path" if wild or name == "new-item" else "-LiteralPath"
        pieces = [self.bound.cmdlet.name]
        if self.paths:
            pieces += [key, self._write_paths(self.paths)]
        target = self.bound.text("destination")
        if target is not None:
            pieces += ["-Destination", self._write_paths((target,))]
        for parameter in _ORDER:
            texts = self.bound.texts(parameter)
            if texts:
                pieces += [_spell(parameter), ",".join(map(quote_for_powershell, texts))]
        for switch, on in self.bound.switches.items():
            if on:
                pieces.append(_spell(switch))
            elif switch == "confirm":
                pieces.append("-Confirm:$false")
        line = " ".join(pieces)
        if len(line) > MAX_RUN_CHARS:
            return Deny("command_too_long", "The command is too long.", "Split it up.")
        return _find_quoting_fault(self.bound) or line

    def _write_paths(self, paths: tuple[str, ...]) -> str:
        return ",".join(quote_for_powershell(_tidy(path)) for path in paths)


def _tidy(path: str) -> str:
    """Return a path with backslashes alone, and none at its end, where bash would miss the quote."""
    backslashed = path.replace("/", "\\")
    return backslashed.rstrip("\\") or backslashed


def _find_quoting_fault(bound: Bound) -> Deny | None:
    value = bound.text("value") or ""
    if "&" in value and value.endswith("\\"):
        return Deny("value_backslash", "The text must not end in a backslash.", "Leave it out.")
    return None


def _spell(parameter: str) -> str:
    return f"-{_SPELLED.get(parameter, parameter.capitalize())}"


_JUDGES: Mapping[str, Callable[[_Judge], Deny | None]] = {
    "remove-item": _Judge.judge_remove,
    "move-item": _Judge.judge_move,
    "copy-item": _Judge.judge_copy,
    "new-item": _Judge.judge_new,
    "get-childitem": _Judge.judge_list,
}


def judge_powershell(verb: str, text: str, workspace: WindowsWorkspace) -> CommandApproval | Deny:
    """Judge one cmdlet; `verb` is in lower case, `text` is what follows it."""
    arguments = split_powershell_words(text)
    if isinstance(arguments, Deny):
        return arguments
    bound = bind(CMDLETS[verb], arguments)
    if isinstance(bound, Deny):
        return bound
    return _Judge(bound, workspace).run(verb)
