"""The judgement of the four commands of cmd: `del`, `move`, `copy` and `ren`.

PowerShell knows these names too, so each word must mean the same to both: in PowerShell brackets are a pattern
and - begins a parameter, in cmd / begins a switch. Patterns are not expanded on the line, because cmd cannot
write several names in place of one. The names that a pattern takes are judged here, and cmd finds them again.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from policies.denials import denied, refused_signs
from policies.verdict import CommandApproval, Refused
from policies.visible_text import BLANK, MAX_WORDS, show
from policies.windows.effects import (
    WindowsTreeInspector,
    judge_move,
    judge_removal,
    judge_transfers,
    refuse_root,
)
from policies.windows.lines import SMART_DOUBLE, SMART_SINGLE, check_plain
from policies.windows.operands import Operands
from policies.windows.wildcards import has_wildcard
from policies.windows.workspace import WindowsWorkspace

SWITCHES: Mapping[str, frozenset[str]] = {
    "del": frozenset({"/f", "/q"}),
    "copy": frozenset({"/y", "/-y", "/v", "/b"}),
    "move": frozenset({"/y", "/-y"}),
    "ren": frozenset(),
}
_TWO = 2
_PLAIN = refused_signs("cmd")
_QUOTED = refused_signs("cmd_quotes")
_SWITCHES = re.compile(r"(?:/-?[A-Za-z])+")
_SWITCH = re.compile(r"/-?[A-Za-z]")
_WORD = re.compile(r'[ \t]*(?:"(?P<quoted>[^"]*)(?P<end>"?)|(?P<plain>[^ \t"]+))(?P<next>[^ \t]?)')


def _read_quoted(match: re.Match[str]) -> str:
    if not match["end"]:
        raise denied("unclosed_quote.windows")
    inner = match["quoted"]
    for char in inner:
        if char in _QUOTED:
            raise Refused(*_QUOTED[char])
        if char in SMART_DOUBLE or char in SMART_SINGLE:
            check_plain(char, 0, starts=False)
    return inner


def _check_plain_word(match: re.Match[str], workspace: WindowsWorkspace) -> None:
    start, end = match.span("plain")
    for at in range(start, end):
        check_plain(match.string, at, starts=at == start)
        if match.string[at] in _PLAIN:
            raise Refused(*_PLAIN[match.string[at]])
    if match["next"]:
        raise denied("quote_inside_word")
    if not _SWITCHES.fullmatch(match["plain"]):
        _check_plain_name(match["plain"], workspace)


def _check_plain_name(word: str, workspace: WindowsWorkspace) -> None:
    """Refuse a plain word that is neither a switch nor a name."""
    if word.startswith("-"):
        raise denied("dash")
    below = workspace.strip_root(word)
    if "/" not in (word if below is None else word[len(word) - len(below) :]):
        return
    if word.startswith("/") and "\\" not in word:
        raise denied("switch_not_allowed", show(word))
    raise denied("slash_in_name")


class _Judge:
    def __init__(self, verb: str, text: str, workspace: WindowsWorkspace) -> None:
        self.verb = verb
        self.workspace = workspace
        self.inspector = WindowsTreeInspector(workspace)
        self.operands = Operands(workspace)
        self.switches: list[str] = []
        """In lower case, one each, with the slash."""
        self.names: list[str] = []
        """Paths and patterns without their quotes."""
        self._split(text.rstrip(BLANK))

    def _split(self, text: str) -> None:
        """Split the line into switches and names; everything else is refused. Linear in its length."""
        for match in _WORD.finditer(text):
            word = match["plain"]
            if word is None:
                self.names.append(_read_quoted(match))
                if match["next"]:
                    raise denied("quote_inside_word")
            else:
                _check_plain_word(match, self.workspace)
                if _SWITCHES.fullmatch(word):
                    self.switches += (switch.lower() for switch in _SWITCH.findall(word))
                else:
                    self.names.append(word)
            if len(self.names) + len(self.switches) > MAX_WORDS:
                raise denied("too_many_words")

    def run(self) -> CommandApproval:
        known = SWITCHES[self.verb]
        for switch in self.switches:
            if switch not in known:
                listed = " ".join(sorted(known)) or "none"
                raise denied("switch_not_allowed.run", self.verb, switch, listed)
        count, is_del = len(self.names), self.verb == "del"
        if count < 1 if is_del else count != _TWO:
            form = "del name" if is_del else f"{self.verb} source target"
            raise denied("operands.run", self.verb, form)
        _JUDGES[self.verb](self)
        return CommandApproval(
            rule=f"windows_{self.verb}",
            command=self.verb,
            line=" ".join((self.verb, *self.switches, *map(_quote, self.names))),
            paths=tuple(self.operands.touched) or (".",),
            changes=True,
        )

    def judge_del(self) -> None:
        for name in self.names:
            for place in self.operands.gather(name, sweeps=True):
                judge_removal(self.inspector, place)

    def judge_transfer(self) -> None:
        source, target = self.names
        if self.verb == "copy" and "+" in source + target:
            raise denied("concatenation")
        landing = self.operands.target(target)
        places = self.operands.gather(source, sweeps=self.verb != "copy")
        if self.verb == "copy" and any(Path(place.real).is_dir() for place in places):
            raise denied("copied_folder")
        judge_transfers(self.inspector, places, landing, moves=self.verb == "move")

    def judge_ren(self) -> None:
        source, target = self.names
        if any(sign in target for sign in "\\/:") or target in {".", ".."}:
            raise denied("rename_path", show(target))
        if has_wildcard(target):
            raise denied("target_pattern", show(target))
        places = self.operands.gather(source, sweeps=True)
        if any(place.is_root for place in places):
            raise refuse_root()
        # a protected new name is refused even if the pattern takes nothing yet
        folder, slash, _ = source.replace("/", "\\").rstrip("\\").rpartition("\\")
        self.workspace.locate(f"{folder}{slash}{target}").check_write()
        for place in places:
            folder = place.absolute[: -len(place.parts[-1])]
            landing = self.workspace.locate(f"{folder}{target}")
            self.operands.touched.append(landing.absolute)
            judge_move(self.inspector, place, landing)


_JUDGES: Mapping[str, Callable[[_Judge], None]] = {
    "del": _Judge.judge_del,
    "copy": _Judge.judge_transfer,
    "move": _Judge.judge_transfer,
    "ren": _Judge.judge_ren,
}


def _quote(name: str) -> str:
    """Quote a name for cmd, PowerShell and bash: bash would take a final backslash as escaping the quote."""
    quoted = name.replace("/", "\\").rstrip("\\")
    return f'"{quoted}"'


def judge_cmd(verb: str, text: str, workspace: WindowsWorkspace) -> CommandApproval:
    """Judge one command of cmd; `verb` is in lower case, `text` is what follows it."""
    return _Judge(verb, text, workspace).run()
