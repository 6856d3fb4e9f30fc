"""The branches of work trees: read, set, deleted, and begun again if their commit is gone.

Commands may write these branches, also to name what is no commit. One that is begun again is
replaced only if it still has the value that was looked at. Blocks.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.worktrees.git import GitFailed, WorkTree
from gateway.worktrees.objects import take_in_blocking
from gateway.worktrees.repository_files import RepositoryFiles

_log = logging.getLogger(__name__)

OBJECT: Final = re.compile(rb"[0-9a-f]{40,64}")
_UNREADABLE: Final = 128
"""The exit code of git if an object that it needs is missing or damaged."""
_MOST_NAMED: Final = 1_000
"""Commits of a log that are looked for, the newest first."""
_MOST_READ: Final = 20
"""Commits of a log whose files are looked for, too."""


def own_parts(conversation_id: str) -> tuple[str, ...]:
    """Return where the part of the repository is that is a work tree's own."""
    return (".git", "worktrees", conversation_id)


def branch_of(conversation_id: str) -> str:
    """Return the name of a work tree's branch."""
    return f"candor/{conversation_id}"


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of one workspace's work trees."""

    main: WorkTree
    files: RepositoryFiles
    root: Path

    def named(self, conversation_id: str) -> str | None:
        """Return the id that a branch names, which may be missing; empty if its file names none,
        as after a cut of the power; None: there is no branch.
        """
        told = self._parsed(_ref(conversation_id))
        place = _place(conversation_id)
        if told is not None or self.files.has_folder(place):
            return told
        return "" if os.path.lexists(self.root.joinpath(*place)) else None

    def commit(self, conversation_id: str) -> str | None:
        """Return the last commit of a branch; None: there is none that can be read."""
        return self.commit_of(_ref(conversation_id))

    def commit_of(self, name: str) -> str | None:
        """Return the commit that a revision names."""
        return self._parsed(f"{name}^{{commit}}")

    def state(self, conversation_id: str) -> tuple[str | None, bool]:
        """Return what `named` returns, and whether that is a commit of the repository.

        Git writes objects before the branch that names them. What a command wrote since the last
        look is therefore taken in after the branch was read.
        """
        commit = self.commit(conversation_id)
        if commit is not None:
            return commit, True
        named = self.named(conversation_id)
        if not named:
            return named, False
        take_in_blocking(self.main, self.files, own_parts(conversation_id))
        return named, self.commit_of(named) is not None

    def open_folder(self, conversation_id: str) -> None:
        """Take away the write protection that a command has given to the folder of all branches."""
        self.files.make_changeable(_place(conversation_id)[:-1])

    def unlock(self, conversation_id: str) -> None:
        """Remove the lock of a branch that a killed command has left; none may run."""
        self.open_folder(conversation_id)
        *folders, name = _place(conversation_id)
        self.files.remove((*folders, f"{name}.lock"))

    def set_to(self, conversation_id: str, commit: str, before: str) -> None:
        """Set a branch. Raise `GitFailed` if `before`, empty for none, is not its value."""
        words = ("update-ref", "--no-deref", _ref(conversation_id), commit, before)
        self.main.run_blocking(*words)

    def delete(self, conversation_id: str, commit: str = "") -> None:
        """Delete a branch, if it is there, or what a command has put into its place. With `commit`,
        raise `GitFailed` if that is not its value.
        """
        named = self.named(conversation_id)
        if not named:  # git would not delete it
            self.files.remove(_place(conversation_id))
            self.files.remove(_log_of(conversation_id))
        if named is None:
            return
        words = ("update-ref", "--no-deref", "-d", _ref(conversation_id))
        self.main.run_blocking(*words, *([commit] if commit else []))

    def make_plain(self, conversation_id: str) -> None:
        """Make a branch name a commit: as another name of a branch it would change that one."""
        place = _place(conversation_id)
        content = self.files.read(place)
        if content is None and not os.path.lexists(self.root.joinpath(*place)):
            return  # packed, or none
        if content is not None and OBJECT.fullmatch(content.strip()):
            return
        commit = self.commit(conversation_id)
        if commit is not None:
            self.files.write(place, f"{commit}\n".encode())

    def mended(self, conversation_id: str, tree: WorkTree | None) -> str | None:
        """Return the last commit of a branch; None: there is no branch.

        A branch whose commit is gone begins again at the newest commit of the work tree's log that
        is whole, or else at the workspace's commit; so does one that is missing, or was renamed, if
        `tree` is there. The index of `tree` is set to it before, and the files stay as they are.
        Raise `GitFailed` if the branch changes meanwhile.
        """
        named, is_whole = self.state(conversation_id)
        if is_whole or (named is None and tree is None):
            return named
        logs = (
            (*own_parts(conversation_id), "logs", "HEAD"),
            _log_of(conversation_id),
        )
        ids = _newest(line for log in logs for line in reversed(self._lines(log)))
        gone = self._missing(ids)
        commit = self._newest_whole([name for name in ids if name not in gone], gone)
        if tree is not None:
            tree.run_blocking("read-tree", commit)
        if named == "":  # git would not set it
            self.files.write(_place(conversation_id), f"{commit}\n".encode())
        else:
            self.set_to(conversation_id, commit, named or "")
        gone.update([named] if named else [])
        for log in logs:
            self._leave_out(log, gone)
        _log.warning("branch_begun_again", extra={"work_tree": conversation_id})
        return commit

    def _parsed(self, revision: str) -> str | None:
        try:
            told = self.main.run_blocking("rev-parse", "-q", "--verify", revision)
        except GitFailed as exc:
            if exc.code != 1:
                raise
            return None
        return told.decode().strip()

    def _lines(self, log: Sequence[str]) -> list[bytes]:
        return (self.files.read(log) or b"").splitlines(keepends=True)

    def _missing(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids that name no commit."""
        given = "".join(f"{name}\n" for name in ids).encode()
        told = self.main.run_blocking("cat-file", "--batch-check", given=given).decode()
        return {name for name, kind, *_ in map(str.split, told.splitlines()) if kind != "commit"}

    def _newest_whole(self, ids: Sequence[str], gone: set[str]) -> str:
        """Return the first commit with all that it needs, or else the workspace's. Those before it
        are added to `gone`.
        """
        head = self.main.run_blocking("rev-parse", "HEAD").decode().strip()
        for name in ids[:_MOST_READ]:
            try:
                self.main.run_blocking("rev-list", "--objects", "--quiet", name, "--not", head)
            except GitFailed as exc:
                if exc.code != _UNREADABLE:
                    raise
                gone.add(name)
            else:
                return name
        return head

    def _leave_out(self, log: Sequence[str], gone: set[str]) -> None:
        """Remove the ids of commits that are gone from a log; git would look for them."""
        lines = self._lines(log)
        kept = [line for line in (_without(line, gone) for line in lines) if line]
        if not kept:
            self.files.remove(log)
        elif kept != lines:
            self.files.write(log, b"".join(kept))


def _without(line: bytes, gone: set[str]) -> bytes:
    """Return a line of a log with zeros in place of ids; empty if it names nothing else."""
    found = _ids(line)
    if gone.isdisjoint(found):
        return line
    if not {name for name in found if name.strip("0")} - gone:
        return b""
    for name in gone.intersection(found):
        line = line.replace(name.encode(), b"0" * len(name), 2)
    return line


def _ids(line: bytes) -> list[str]:
    """Return the ids of a line of a log: those before and after a change."""
    return [word.decode() for word in line.split(b" ", 2)[:2] if OBJECT.fullmatch(word)]


def _newest(lines: Iterable[bytes]) -> list[str]:
    """Return the ids of the lines, each once, those after a change before those before it."""
    return list(dict.fromkeys(_each(lines)))[:_MOST_NAMED]


def _each(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        yield from (name for name in reversed(_ids(line)) if name.strip("0"))


def _ref(conversation_id: str) -> str:
    return f"refs/heads/{branch_of(conversation_id)}"


def _place(conversation_id: str) -> tuple[str, ...]:
    return (".git", *_ref(conversation_id).split("/"))


def _log_of(conversation_id: str) -> tuple[str, ...]:
    return (".git", "logs", *_place(conversation_id)[1:])
