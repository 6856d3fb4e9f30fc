"""Finds what a command did that no command may do, from the disk and from its output.

Knows nothing of the policy: it compares the yard before and after.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.differential.throwaway import (
    OUTSIDE,
    OUTSIDE_BYTES,
    OUTSIDE_KIND,
    OUTSIDE_LINES,
    OUTSIDE_MARK,
    OUTSIDE_NAME,
    Ran,
)
from tests.differential.yard import (
    RULED,
    SECRET,
    SECRET_MARK,
    SHARED,
    Seen,
    Tree,
    Yard,
    is_protected,
    look,
)

Kind = Literal[
    "outside_read",
    "outside_listed",
    "outside_changed",
    "secret_read",
    "secret_copied",
    "outside_copied",
    "rules_copied",
    "protected_changed",
    "protected_made",
    "link_made",
    "link_turned",
    "executed",
    "root_gone",
    "root_emptied",
    "left",
    "hung",
]

_OF_OUTSIDE = re.compile(
    rf"{OUTSIDE}|{OUTSIDE_MARK}|\^A|{OUTSIDE_KIND}|\b(?:{OUTSIDE_BYTES}|{OUTSIDE_LINES})\b"
)
"""What a file outside shows of itself, however little of it is read; `^A` is the mark made visible."""
_OF_SECRETS = re.compile(rf"{SECRET}|{SECRET_MARK}|\^B")
_MOST_BYTES = 1_000_000
_REMOVABLE = {"node_modules", "site-packages"}
"""Installed packages may be removed with what they hold; nothing else may happen to it there."""


@dataclass(frozen=True, slots=True)
class Escape:
    """One thing that must not have happened."""

    kind: Kind
    what: str


def watch(yard: Yard, command: str, cwd: Path | None = None) -> list[Escape]:
    """Run a command and give what it did wrong; afterwards the yard is as before."""
    ran = yard.root.run(command, cwd)
    before, after = yard.tree, look(yard.path)
    found = [*_judge_process(ran, yard), *_judge_changes(before, after, yard)]
    if after != before:
        yard.restore(after)
    return found


def _judge_process(ran: Ran, yard: Yard) -> Iterator[Escape]:
    if ran.hung:
        yield Escape("hung", "it did not end")
    if (telling := _OF_OUTSIDE.search(ran.said)) is not None:
        yield Escape("outside_read", _around(ran.said, telling[0]))
    if SHARED in ran.said and not yard.open_to:
        yield Escape("outside_read", _around(ran.said, SHARED))
    if OUTSIDE_NAME in ran.said:
        yield Escape("outside_listed", _around(ran.said, OUTSIDE_NAME))
    if (telling := _OF_SECRETS.search(ran.said)) is not None:
        yield Escape("secret_read", _around(ran.said, telling[0]))
    for name in ran.executed:
        yield Escape("executed", name)
    if ran.code in {"126", "127"}:
        yield Escape("executed", _around(ran.said, "command not found"))
    if ran.ended_in and _is_out(os.path.relpath(ran.ended_in, yard.path), yard):
        yield Escape("left", ran.ended_in)


def _judge_changes(before: Tree, after: Tree, yard: Yard) -> Iterator[Escape]:
    if before == after:
        return
    yield from _judge_root(before, after)
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        parts = tuple(name.split("/"))
        if name == "ws":
            continue
        if parts[0] != "ws" and not _may_change(name, old, new, yard):
            yield Escape("outside_changed", name)
            continue
        if is_protected(parts):
            yield from _judge_protected(name, old, new)
        if new is not None:
            yield from _judge_new(name, new, before, yard)


def _may_change(name: str, old: Seen | None, new: Seen | None, yard: Yard) -> bool:
    """Return whether the rules open a place beside the workspace for that; the folder itself stays."""
    top, _, rest = name.partition("/")
    stays = old is not None and new is not None and old.inode == new.inode
    return yard.open_to.get(top, False) and (bool(rest) or stays)


def _judge_root(before: Tree, after: Tree) -> Iterator[Escape]:
    if "ws" not in after or after["ws"].inode != before["ws"].inode:
        yield Escape("root_gone", "the workspace was moved or deleted")
    elif not any(_is_visible(name) for name in after):
        yield Escape("root_emptied", "nothing visible is left in the workspace")
    if any(after[name].inode != before[name].inode for name in (".", "outdir") if name in after):
        yield Escape("outside_changed", "a folder outside was replaced")


def _is_visible(name: str) -> bool:
    top, _, rest = name.partition("/")
    return top == "ws" and bool(rest) and "/" not in rest and not rest.startswith(".")


def _judge_protected(name: str, old: Seen | None, new: Seen | None) -> Iterator[Escape]:
    if old is None:
        yield Escape("protected_made", name)
    elif new is None:
        if _REMOVABLE.isdisjoint(name.split("/")):
            yield Escape("protected_changed", f"{name} is gone")
    elif old.is_file or old.mode != new.mode or old.inode != new.inode:
        yield Escape("protected_changed", name)


def _judge_new(name: str, new: Seen, before: Tree, yard: Yard) -> Iterator[Escape]:
    file = yard.path / name
    if stat.S_ISLNK(new.mode):
        if not _leads_out(file, yard):
            return
        held = {(seen.inode, seen.target) for seen in before.values()}
        if (new.inode, new.target) not in held:
            yield Escape("link_made", f"{name} -> {new.target}")
        elif not any(
            one.inode == new.inode and _led_out(n, one, yard) for n, one in before.items()
        ):
            yield Escape("link_turned", f"{name} -> {new.target}")
    elif new.is_file:
        if file.stat().st_nlink > 1:
            yield Escape("link_made", f"{name} is a second name of a file")
        yield from _judge_content(name, file, yard)
    elif not stat.S_ISDIR(new.mode):
        yield Escape("link_made", f"{name} is no file and no folder")


def _leads_out(link: Path, yard: Yard) -> bool:
    return _is_out(os.path.relpath(os.path.realpath(link), os.path.realpath(yard.path)), yard)


def _led_out(name: str, link: Seen, yard: Yard) -> bool:
    """Return whether a link led out before the command, by its text; its target holds no links."""
    if link.target.startswith("/"):
        return _is_out(os.path.relpath(link.target, yard.path), yard)
    return _is_out(os.path.normpath(f"{name}/../{link.target}"), yard)


def _is_out(path: str, yard: Yard) -> bool:
    return path.split("/", maxsplit=1)[0] not in {"ws", *yard.open_to}


def _judge_content(name: str, file: Path, yard: Yard) -> Iterator[Escape]:
    with file.open("rb") as opened:
        text = opened.read(_MOST_BYTES).decode("utf-8", "replace")
    parts = tuple(name.split("/"))
    if OUTSIDE in text or (SHARED in text and not yard.open_to):
        yield Escape("outside_copied", name)
    if SECRET in text and not is_protected(parts):
        yield Escape("secret_copied", name)
    if RULED in text and is_protected(parts):
        yield Escape("rules_copied", name)


def _around(text: str, word: str) -> str:
    at = max(text.find(word), 0)
    return text[max(0, at - 60) : at + 60]
