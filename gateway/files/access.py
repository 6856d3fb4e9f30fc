"""What a person may read and add in the workspace: exactly what the agent's Read, Glob and Write
may.

The policy judges the path that was asked for and, if links lead elsewhere, the path that they lead
to. What is opened is the judged path itself, component by component without following links, so a
file that was swapped for a link meanwhile is not opened. Everything here blocks.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from gateway.errors import Forbidden, NotFound
from memory.notes.descriptors import open_file, opened_folder
from policies.calls import ToolCall
from policies.tools import ToolGate
from policies.verdict import Ask, Deny

MAX_ENTRIES: Final = 1000
"""The most entries of a folder that are listed."""
MAX_SEEN: Final = 20_000
"""The most entries that one search looks at, those near the root first."""

EntryKind = Literal["folder", "file", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file or folder as a list shows it."""

    name: str
    path: str
    """Relative to the workspace, with slashes."""
    kind: EntryKind
    size_bytes: int
    modified_at: datetime
    readable: bool
    """The policy lets it be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The entries of a folder, folders first, or what a search found."""

    path: str
    entries: Sequence[Entry]
    truncated: bool
    """There is more than this."""


class WorkspaceAccess:
    """The workspace's files for persons."""

    def __init__(self, root: Path, policy: ToolGate) -> None:
        """Take the workspace and the policy that its agents are under.

        If a person can be asked (approvals are on) a call that the policy asks a person about is
        allowed, because a person makes it; without approvals it is denied, as for the agent.
        """
        self.root = root
        self._policy = policy

    def list_blocking(self, path: str) -> Listing:
        """List a folder; the empty path is the workspace itself.

        Raise `Forbidden` if the policy denies it, `NotFound` if there is no such folder.
        """
        parts = self._judged_parts("Glob", {"pattern": "*"}, "path", path or ".")
        try:
            with opened_folder(self.root, parts) as folder, os.scandir(folder) as scanned:
                names = [entry.name for entry in islice(scanned, MAX_ENTRIES + 1)]
                entries = [
                    self._entry((*parts, name), status)
                    for name in names[:MAX_ENTRIES]
                    if (status := self._status(name, "/".join((*parts, name)), folder)) is not None
                ]
        except OSError:
            raise NotFound("There is no such folder in the workspace.") from None
        return Listing(
            path="/".join(parts),
            entries=sorted(
                entries, key=lambda entry: (entry.kind != "folder", entry.name.casefold())
            ),
            truncated=len(names) > MAX_ENTRIES,
        )

    def find_blocking(self, query: str, limit: int) -> Listing:
        """Find readable files whose path holds every word of `query`, the closest matches first.

        Folders whose name begins with a dot are left out.
        """
        words = query.casefold().split()
        found: list[tuple[str, ...]] = []
        level: list[tuple[str, ...]] = [()]
        seen = 0
        while level and seen < MAX_SEEN:
            scanned = [self._scan(parts) for parts in level]
            seen += sum(len(folders) + len(files) for folders, files in scanned)
            found += [
                parts
                for _, files in scanned
                for parts in files
                if all(word in "/".join(parts).casefold() for word in words)
            ]
            level = [parts for folders, _ in scanned for parts in folders]
        found.sort(key=lambda parts: _rank(parts, words))
        entries = list(islice(filter(None, map(self._found, found)), limit))
        return Listing(path="", entries=entries, truncated=bool(level) or len(found) > limit)

    def open_blocking(self, path: str) -> int:
        """Open a file for reading; the caller closes the descriptor.

        Raise `Forbidden` if the policy denies it, `NotFound` if there is no such file.
        """
        parts = self._judged_parts("Read", {}, "file_path", path)
        try:
            return open_file(self.root, parts)
        except (OSError, ValueError):
            raise NotFound("There is no such file in the workspace.") from None

    def check_write_blocking(self, path: str) -> None:
        """Raise `Forbidden` if the policy denies writing a new file there."""
        self._check("Write", {"file_path": path, "content": ""})

    def _judged_parts(
        self, tool: str, fixed: Mapping[str, str], key: str, path: str
    ) -> tuple[str, ...]:
        """Return where a path really leads, below the workspace, once the policy has allowed both.

        Raise `Forbidden` if the policy denies it, or it lies elsewhere.
        """
        if path.startswith("/"):  # where the workspace is on the server's disk is not for clients
            raise _refused("absolute_path")
        self._check(tool, {**fixed, key: path})
        root, real = os.path.realpath(self.root), os.path.realpath(self.root / path)
        if real == root:
            return ()
        if not real.startswith(f"{root}/"):
            raise _refused("link_outside")
        below = real[len(root) + 1 :]
        if below != path:
            self._check(tool, {**fixed, key: below})
        return tuple(below.split("/"))

    def _check(self, tool: str, given: Mapping[str, str]) -> None:
        rule = self._denying_rule(tool, given)
        if rule is not None:
            raise _refused(rule)

    def _denying_rule(self, tool: str, given: Mapping[str, str]) -> str | None:
        verdict = self._policy.judge(ToolCall(name=tool, input=given, cwd=str(self.root)))
        is_asked = isinstance(verdict, Ask) and not self._policy.can_ask_user
        return verdict.rule if isinstance(verdict, Deny) or is_asked else None

    def _may_read(self, path: str) -> bool:
        return self._denying_rule("Read", {"file_path": path}) is None

    def _may_list(self, path: str) -> bool:
        return self._denying_rule("Glob", {"pattern": "*", "path": path}) is None

    def _status(self, name: str, path: str, folder: int) -> os.stat_result | None:
        """Return what an entry is; what a link leads to, if the policy lets that be looked at."""
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode) and (self._may_list(path) or self._may_read(path)):
                return os.stat(name, dir_fd=folder)
        except OSError:  # it went away, or it is a link to nothing
            return None
        return status

    def _entry(self, parts: Sequence[str], status: os.stat_result) -> Entry:
        path, kind = "/".join(parts), _kind_of(status)
        return Entry(
            name=parts[-1],
            path=path,
            kind=kind,
            size_bytes=status.st_size if kind == "file" else 0,
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
            readable=kind != "other"
            and (self._may_list(path) if kind == "folder" else self._may_read(path)),
        )

    def _found(self, parts: Sequence[str]) -> Entry | None:
        try:
            with opened_folder(self.root, parts[:-1]) as folder:
                status = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
        except OSError:
            return None
        entry = self._entry(parts, status)
        return entry if entry.readable else None

    def _scan(self, parts: tuple[str, ...]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
        """Return the folders and the files in a folder; no links, and not yet judged."""
        folders: list[tuple[str, ...]] = []
        files: list[tuple[str, ...]] = []
        try:
            with opened_folder(self.root, parts) as folder, os.scandir(folder) as scanned:
                for entry in scanned:
                    if entry.is_file(follow_symlinks=False):
                        files.append((*parts, entry.name))
                    elif entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                        folders.append((*parts, entry.name))
        except OSError:  # it went away, or may not be read
            return [], []
        return folders, files


def _kind_of(status: os.stat_result) -> EntryKind:
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "file" if stat.S_ISREG(status.st_mode) else "other"


def _rank(parts: Sequence[str], words: Sequence[str]) -> tuple[bool, bool, int, str]:
    """Return the place of a match: names that begin with the first word, then names
    that hold it.
    """
    name, first = parts[-1].casefold(), words[0] if words else ""
    return (not name.startswith(first), first not in name, len(parts), "/".join(parts).casefold())


def _refused(rule: str) -> Forbidden:
    return Forbidden(
        "The policy does not allow this path.", code="path_denied", details={"rule": rule}
    )
