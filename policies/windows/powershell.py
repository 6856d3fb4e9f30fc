"""The judgement of the five cmdlets of PowerShell that may run, written anew with every parameter named.

Names without wildcards are handed on with -LiteralPath, so that brackets in them are letters.
"""

from collections.abc import Callable, Mapping

from policies.denials import denied
from policies.paths.workspace import Place
from policies.verdict import CommandApproval, Refused
from policies.visible_text import show
from policies.windows.cmdlets import CMDLETS, Bound, bind
from policies.windows.effects import WindowsTreeInspector, judge_removal, judge_transfers
from policies.windows.operands import Operands
from policies.windows.powershell_words import quote_for_powershell, split_powershell_words
from policies.windows.wildcards import has_wildcard
from policies.windows.workspace import WindowsWorkspace

MAX_RUN_CHARS = 30_000

_ORDER = ("filter", "itemtype", "value", "depth", "erroraction")
_SPELLED = {
    "itemtype": "ItemType",
    "erroraction": "ErrorAction",
    "whatif": "WhatIf",
    "passthru": "PassThru",
    "readonly": "ReadOnly",
}


class _Judge:
    def __init__(self, bound: Bound, workspace: WindowsWorkspace) -> None:
        self.bound = bound
        self.inspector = WindowsTreeInspector(workspace)
        self.operands = Operands(workspace)
        self.literal = "literalpath" in bound.values
        self.paths = bound.texts("literalpath") or bound.texts("path")

    def run(self, name: str) -> CommandApproval:
        self._check_filter()
        _JUDGES[name](self)
        return CommandApproval(
            rule=f"windows_{name.replace('-', '_')}",
            command=self.bound.cmdlet.name,
            line=self._write(name),
            paths=tuple(self.operands.touched) or (".",),
            changes=name != "get-childitem",
        )

    def _check_filter(self) -> None:
        text = self.bound.text("filter") or ""
        if any(sign in text for sign in ("\\", "/", ":", "~", "..")):
            raise denied("filter_path", show(text))

    def _gather(self, *, sweeps: bool) -> list[Place]:
        if not self.paths:
            raise self._refuse_operands()
        return [
            place
            for path in self.paths
            for place in self.operands.gather(path, sweeps=sweeps, is_literal=self.literal)
        ]

    def _refuse_operands(self) -> Refused:
        name = self.bound.cmdlet.name
        transfer = "destination" in self.bound.cmdlet.values
        form = f"{name} source -Destination target" if transfer else f"{name} name"
        return denied("operands.operands_3", name, form)

    def judge_remove(self) -> None:
        for place in self._gather(sweeps=True):
            judge_removal(self.inspector, place)

    def judge_transfer(self, *, moves: bool) -> None:
        target = self.bound.text("destination")
        if target is None:
            raise self._refuse_operands()
        landing = self.operands.target(target)
        judge_transfers(self.inspector, self._gather(sweeps=moves), landing, moves=moves)

    def judge_new(self) -> None:
        if not self.paths:
            raise self._refuse_operands()
        kind = (self.bound.text("itemtype") or "file").lower()
        if kind == "directory" and "value" in self.bound.values:
            raise denied("parameter_value")
        deep = kind == "directory" or self.bound.switches.get("force", False)
        for path in self.paths:
            self.operands.target(path, is_deep=deep)

    def judge_list(self) -> None:
        deep = "recurse" in self.bound.switches or "depth" in self.bound.values
        for path in self.paths or (".",):
            named = self.literal or not has_wildcard(path)
            for place in self.operands.gather(path, sweeps=False, is_literal=self.literal):
                if named:
                    place.check_read()
                if deep:
                    self.inspector.inspect_links(place)

    def _write(self, name: str) -> str:
        wild = any(map(has_wildcard, self.paths)) and not self.literal
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
            raise denied("command_too_long.write")
        value = self.bound.text("value") or ""
        if "&" in value and value.endswith("\\"):
            raise denied("value_backslash")
        return line

    def _write_paths(self, paths: tuple[str, ...]) -> str:
        return ",".join(quote_for_powershell(_tidy(path)) for path in paths)


def _tidy(path: str) -> str:
    """Return a path with backslashes alone, and none at its end, where bash would miss the quote."""
    backslashed = path.replace("/", "\\")
    return backslashed.rstrip("\\") or backslashed


def _spell(parameter: str) -> str:
    return f"-{_SPELLED.get(parameter, parameter.capitalize())}"


_JUDGES: Mapping[str, Callable[[_Judge], None]] = {
    "remove-item": _Judge.judge_remove,
    "move-item": lambda judge: judge.judge_transfer(moves=True),
    "copy-item": lambda judge: judge.judge_transfer(moves=False),
    "new-item": _Judge.judge_new,
    "get-childitem": _Judge.judge_list,
}


def judge_powershell(verb: str, text: str, workspace: WindowsWorkspace) -> CommandApproval:
    """Judge one cmdlet; `verb` is in lower case, `text` is what follows it."""
    bound = bind(CMDLETS[verb], split_powershell_words(text))
    return _Judge(bound, workspace).run(verb)
