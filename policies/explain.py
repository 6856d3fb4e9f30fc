"""Verdicts and rules as text for a person at a terminal."""

import json
import shutil
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path

from policies.check import SHELL_TOOLS, Request, read_runs
from policies.paths.protected import READABLE, SECRET_BELOW, SECRET_IN_REPOSITORY, SECRET_PATTERNS
from policies.rule_file import show_path
from policies.rules import KNOWN_COMMANDS, KNOWN_WINDOWS_COMMANDS, Rules, shipped_rules
from policies.verdict import Allow, Ask, Deny, Verdict
from policies.visible_text import has_hidden_character

_LABEL = 10
_MOST_CHARS = 2000
_MOST_VALUE_CHARS = 200
_ANSWERS = {
    Allow: "Allowed",
    Ask: "A person is asked; with nobody to ask it is denied",
    Deny: "Denied",
}


def printable(text: str) -> str:
    """Return a text fit for a terminal: control and invisible characters escaped, and cut if it is
    long.
    """
    shown = text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
    if has_hidden_character(shown):
        shown = "".join(
            c.encode("unicode_escape").decode() if has_hidden_character(c) else c for c in shown
        )
    return shown


def explain(request: Request, verdict: Verdict) -> Iterator[str]:
    """Yield the lines that explain a verdict on a call."""
    yield f"{_ANSWERS[type(verdict)]}: {_name_call(request)}"
    yield _row("rule", verdict.rule)
    yield _row("why", verdict.reason)
    if isinstance(verdict, Deny):
        yield _row("instead", verdict.hint or "Nothing would work instead.")
        if verdict.question is not None:
            yield _row("or", "With approvals a person may allow it: it is only unknown.")
        if verdict.interrupt:
            yield _row("also", "The whole turn ends.")
        return
    runs = read_runs(request.call, verdict)
    if runs is not None:
        yield _row("runs", str(runs))
    elif verdict.updated_input is not None:
        for key, value in verdict.updated_input.items():
            if value != request.call.input.get(key):
                text, more = str(value)[:_MOST_VALUE_CHARS], str(value)[_MOST_VALUE_CHARS:]
                yield _row("runs", f"with {key} = {text}{more and '…'}")
    else:
        yield _row("runs", "the call as it came")
    yield _row("changes", "something" if verdict.changes else "nothing")


def _name_call(request: Request) -> str:
    call = request.call
    if call.name in SHELL_TOOLS and isinstance(call.input, dict) and "command" in call.input:
        return printable(str(call.input["command"]))
    return printable(f"{call.name} {json.dumps(call.input, ensure_ascii=False)}")


def _row(label: str, text: str) -> str:
    return f"  {label:{_LABEL}}{printable(text)}"


def list_rules(rules: Rules, file: Path | None) -> Iterator[str]:
    """Yield the lines that list the rules in force, and mark what a file changed."""
    yield "The rules in force: those that Candor ships with" + (
        "." if file is None else f", as changed by {show_path(file)}."
    )
    yield "Lines with + were added by that file, lines with - taken away." if file else ""
    base = shipped_rules()
    yield from _changes("commands", base.commands, rules.commands, KNOWN_COMMANDS)
    yield from _changes(
        "on Windows", base.windows_commands, rules.windows_commands, KNOWN_WINDOWS_COMMANDS
    )
    yield from _changes("tools", base.offered_tools, rules.offered_tools)
    yield from _changes("by a setting", base.optional_tools, rules.optional_tools)
    yield from _changes("tolerated", base.tolerated_tools, rules.tolerated_tools)
    yield from _changes(
        "own tools, never asked about", base.own_reading_tools, rules.own_reading_tools
    )
    yield from _changes("own tools, asked about", base.own_changing_tools, rules.own_changing_tools)
    yield from _changes("WebFetch may open", base.web_hosts, rules.web_hosts)
    folders = {
        f"{extra.path} ({'read-write' if extra.writable else 'read-only'})"
        for extra in rules.directories
    }
    yield from _changes("more directories", (), folders)
    asked = {
        " ".join(
            [*sorted([*rule.tools, *rule.commands]), *(("on", *rule.paths) if rule.paths else ())]
        )
        for rule in rules.ask
    }
    yield from _changes("a person is asked", (), asked)
    yield ""
    yield "No file changes these: paths stay inside the workspace and the directories above, and"
    in_folders = (*SECRET_BELOW, *((".git", name) for name in SECRET_IN_REPOSITORY))
    secrets = " ".join((*SECRET_PATTERNS, *map("/".join, in_folders)))
    readable = " and ".join(sorted(READABLE))
    yield from _wrapped("never read or written: ", f"{secrets} (but {readable})")
    yield from _wrapped(
        "read but never written: ",
        ".claude .mcp.json CLAUDE.md .git, start-up files of shells and editors, hooks, the "
        "journal",
    )


def _changes(
    label: str, base: Collection[str], now: Collection[str], known: Collection[str] = ()
) -> Iterator[str]:
    kept = sorted(set(base) & set(now))
    yield from _wrapped(f"{label}: ", " ".join(map(printable, kept)) or "none")
    for name in sorted(set(now) - set(base)):
        yield f"  + {printable(name)}"
    for name in sorted(set(base) - set(now)):
        yield f"  - {printable(name)}"
    off = sorted(set(known) - set(now) - set(base))
    if off:
        yield from _wrapped("  a file may allow: ", " ".join(off))


def _wrapped(label: str, text: str) -> list[str]:
    width = max(60, shutil.get_terminal_size((100, 24)).columns)
    return textwrap.wrap(
        text,
        width,
        initial_indent=label,
        subsequent_indent=" " * 4,
        break_long_words=False,
        break_on_hyphens=False,
    )
