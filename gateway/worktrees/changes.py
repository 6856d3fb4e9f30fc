"""Reads how the files of a work tree differ from a commit, as a turn's changes are told."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.files.snapshot import (
    MAX_FILE_BYTES,
    MAX_KEPT_BYTES,
    MAX_KEPT_FILES,
    ChangedFile,
    FileChanges,
    Kind,
    Unread,
)
from gateway.worktrees.git import WorkTree
from policies.paths.protected import find_secret

_NOTHING: Final = "0" * 40
_LINK: Final = "120000"
_REPOSITORY: Final = "160000"
"""The mode of a repository within a repository."""
_KINDS: Final[Mapping[str, Kind]] = {"A": "created", "D": "deleted", "R": "moved"}


@dataclass(frozen=True, slots=True)
class _Difference:
    kind: str
    modes: tuple[str, str]
    before: str
    after: str
    path: str
    moved_from: str | None


def read_changes_blocking(tree: WorkTree, raw: bytes) -> FileChanges:
    """Return the files that `git diff --raw -z` names, with their texts within the bounds of a
    turn's changes.
    """
    found = list(_parse(raw.decode(errors="replace")))
    shown = found[:MAX_KEPT_FILES]
    blobs = {blob for change in shown for blob in (change.before, change.after) if blob.strip("0")}
    sizes = _sizes(tree, sorted(blobs))
    left, wanted = MAX_KEPT_BYTES, []
    for change in shown:
        pair = [blob for blob in (change.before, change.after) if blob in sizes]
        size = sum(sizes[blob] for blob in pair)
        if (
            find_secret(change.path.split("/")) is None
            and all(sizes[blob] <= MAX_FILE_BYTES for blob in pair)
            and size <= left
        ):
            wanted += pair
            left -= size
    texts = _contents(tree, sorted(set(wanted)))
    files = [_changed(change, sizes, texts) for change in shown]
    return FileChanges(files=files, complete=len(found) == len(shown))


def find_new_repositories(raw: bytes) -> list[str]:
    """Return the paths at which `git diff --raw -z` has a repository that was not there, of whose
    files git takes none.
    """
    found = _parse(raw.decode(errors="replace"))
    return [
        change.path
        for change in found
        if change.modes[1] == _REPOSITORY and change.modes[0] != _REPOSITORY
    ]


def find_links(raw: bytes) -> list[str]:
    """Return the paths at which `git diff --raw -z` has a link now."""
    found = _parse(raw.decode(errors="surrogateescape"))
    return [change.path for change in found if change.modes[1] == _LINK]


def _parse(raw: str) -> Iterator[_Difference]:
    fields = iter(raw.split("\0"))
    for head in fields:
        if not head:
            return
        old, new, before, after, status = head.removeprefix(":").split(" ")
        path = next(fields)
        moved_from = path if status[0] == "R" else None
        moved_to = next(fields) if moved_from else path
        yield _Difference(status[0], (old, new), before, after, moved_to, moved_from)


def _sizes(tree: WorkTree, blobs: list[str]) -> Mapping[str, int]:
    told = tree.run_blocking("cat-file", "--batch-check", given="\n".join(blobs).encode()).decode()
    lines = (line.split(" ") for line in told.split("\n"))
    return {line[0]: int(line[2]) for line in lines if len(line) == 3 and line[1] == "blob"}  # noqa: PLR2004


def _contents(tree: WorkTree, blobs: list[str]) -> Mapping[str, bytes]:
    told = tree.run_blocking("cat-file", "--batch", given="\n".join(blobs).encode())
    found: dict[str, bytes] = {}
    at = 0
    while at < len(told):
        end = told.index(b"\n", at)
        blob, _, size = told[at:end].decode().split(" ")
        found[blob] = told[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)
    return found


def _changed(one: _Difference, sizes: Mapping[str, int], texts: Mapping[str, bytes]) -> ChangedFile:
    sides = [b"" if not blob.strip("0") else texts.get(blob) for blob in (one.before, one.after)]
    unread: Unread | None = None
    decoded: list[str | None] = [None, None]
    if find_secret(one.path.split("/")) is not None:
        unread = "secret"
    elif None in sides:
        unread = "too_large"
    else:
        try:
            decoded = [(side or b"").decode() for side in sides]
        except UnicodeDecodeError:
            unread = "binary"
    before, after = decoded if unread is None else (None, None)
    return ChangedFile(
        path=one.path,
        kind=_KINDS.get(one.kind, "modified"),
        size_bytes=None if one.kind == "D" else sizes.get(one.after, 0),
        before=before,
        after=after,
        moved_from=one.moved_from,
        unread=unread,
    )
