"""The objects that commands made in a work tree, as git in their box makes them."""

import errno
import hashlib
import os
import re
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Never

import pytest

from gateway.worktrees import repository_files
from gateway.worktrees.git import GitFailed, WorkTree
from gateway.worktrees.worktrees import ConversationTrees
from memory.notes.descriptors import open_file
from tests.support.repositories import commit_in_box, git, git_in_box, lay_repository
from tests.unit.gateway.worktrees.conftest import ONE


@pytest.fixture(params=["sha1", "sha256"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    git(folder, "init", "-q", f"--object-format={request.param}")
    lay_repository(folder, a_txt="a\n")
    return folder


def refuse_objects(patch: pytest.MonkeyPatch, fault: int) -> None:
    """Refuse to open any object of a work tree."""

    def refusing(root: Path, parts: Sequence[str]) -> int:
        if {"worktrees", "objects"}.issubset(parts):
            raise OSError(fault, os.strerror(fault))
        return open_file(root, parts)

    patch.setattr(repository_files, "open_file", refusing)


OBJECT = re.compile("[0-9a-f]{38}(?:[0-9a-f]{24})?")


def files(store: Path) -> list[str]:
    return sorted(path.name for path in store.rglob("*") if path.is_file())


@pytest.mark.parametrize("is_packed", [False, True])
def test_what_a_command_committed_is_taken_into_the_repository(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path, *, is_packed: bool
) -> None:
    made = commit_in_box(tree, store, content := f"one{' ' * 3_000_000}{'x' * 700}\n")
    if is_packed:
        git_in_box(tree, store, "repack", "-adlqn")
        assert any(store.glob("pack/*.pack"))
    assert trees.has_new_blocking(ONE)
    trees.take_in_blocking(ONE)
    assert git(workspace, "show", f"{made}:a.txt") == content.strip()
    git(workspace, "fsck", "--strict")
    assert files(store) == ["alternates"]
    assert not trees.has_new_blocking(ONE)


class Killed(BaseException):
    """Stands for the end of the process."""


def test_git_prune_removes_what_a_kill_leaves_of_an_object(
    workspace: Path,
    trees: ConversationTrees,
    tree: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = commit_in_box(tree, store, "one\n")

    def killed(*_: object, **__: object) -> Never:
        raise Killed

    with monkeypatch.context() as patched:
        for name in ("fsync", "unlink"):
            patched.setattr(os, name, killed)
        with pytest.raises(Killed):
            trees.take_in_blocking(ONE)
    trees.take_in_blocking(ONE)
    assert any(name for name in files(workspace / ".git/objects") if not OBJECT.fullmatch(name))
    git(workspace, "prune", "--expire=now")
    assert all(map(OBJECT.fullmatch, files(workspace / ".git/objects")))
    assert git(workspace, "show", f"{made}:a.txt") == "one"


def test_every_use_of_a_work_tree_finds_what_was_not_taken_in_yet(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path
) -> None:
    made = commit_in_box(tree, store, "one\n")
    shown = trees.status_blocking(ONE)
    assert shown is not None
    assert [file.path for file in trees.changes_blocking(ONE, shown.base).files] == ["a.txt"]
    made = commit_in_box(tree, store, "two\n")
    trees.merge_blocking(ONE, "Merge it", lambda _: None)
    assert git(workspace, "rev-parse", "HEAD") == made
    assert (workspace / "a.txt").read_text() == "two\n"


def test_a_start_keeps_a_work_tree_whose_last_commit_was_not_taken_in(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path
) -> None:
    made = commit_in_box(tree, store, "one\n")
    again = ConversationTrees(workspace, workspace.parent / "data", lambda _: None)
    again.repair_blocking(ONE, None)
    assert (tree / "a.txt").read_text() == "one\n"
    assert again.commit_blocking(ONE, "Keep it") == made


def test_an_object_that_is_not_what_its_name_says_is_left_out(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path, tmp_path: Path
) -> None:
    made = commit_in_box(tree, store, "one\n")
    chars = len(made) - 2
    (tmp_path / "outside").write_bytes(zlib.compress(b"blob 0\0"))
    for number, content in enumerate(
        (zlib.compress(b"blob 4\0evil"), b"no zlib", zlib.compress(b"blob 0\0") + b"more")
    ):
        place = store / "aa" / f"{number}".rjust(chars, "0")
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content)
    (store / "aa" / "f".rjust(chars, "0")).symlink_to(tmp_path / "outside")
    pack = store / "pack" / f"pack-{'0' * 40}.pack"
    pack.parent.mkdir(exist_ok=True)
    pack.write_bytes(b"PACK none")
    pipe = pack.with_name(f"pack-{'1' * 40}.pack")
    os.mkfifo(pipe)
    for one in (pack, pipe):
        one.with_suffix(".idx").touch()
    trees.take_in_blocking(ONE)
    assert git(workspace, "show", f"{made}:a.txt") == "one"
    git(workspace, "fsck", "--strict")
    assert not files(workspace / ".git/objects/aa")
    assert not trees.has_new_blocking(ONE)


def padded(content: bytes, size: int) -> bytes:
    """Return a zlib stream of exactly this size, which empty stored blocks fill up."""

    def block(stored: bytes, *, is_last: bool = False) -> bytes:
        length = len(stored)
        return struct.pack("<BHH", is_last, length, length ^ 0xFFFF) + stored

    body = b"\x78\x01" + block(content)
    end = block(b"", is_last=True) + zlib.adler32(content).to_bytes(4, "big")
    count, rest = divmod(size - len(body) - len(end), len(block(b"")))
    assert rest == 0
    return body + block(b"") * count + end


def named(store: Path, content: bytes) -> Path:
    """Return where the loose object with an unpacked content is to be."""
    name = hashlib.sha1(content, usedforsecurity=False).hexdigest()
    (store / name[:2]).mkdir(exist_ok=True)
    return store / name[:2] / name[2:]


@pytest.mark.parametrize("workspace", ["sha1"], indirect=True)
def test_what_stands_behind_an_object_at_the_end_of_a_piece_is_found(
    workspace: Path, trees: ConversationTrees, store: Path
) -> None:
    for text, more in ((b"evil", b"garbage"), (b"good", b"")):
        content = b"blob 6\0" + text + b"!!"
        packed = padded(content, 1 << 18)
        assert zlib.decompress(packed) == content
        named(store, content).write_bytes(packed + more)
    trees.take_in_blocking(ONE)
    assert git(workspace, "count-objects").startswith("4 objects")  # a commit, its own two, a good
    git(workspace, "fsck", "--strict")
    assert not trees.has_new_blocking(ONE)


@pytest.mark.parametrize("workspace", ["sha1"], indirect=True)
@pytest.mark.parametrize(
    "content", [b"blob 3\0evil", b"blob 5\0evil", b"blob 04\0evil", b"evil 4\0evil", b"blob 0", b""]
)
def test_an_object_with_a_header_that_git_does_not_write_is_left_out(
    workspace: Path, trees: ConversationTrees, store: Path, content: bytes
) -> None:
    place = named(store, content)
    place.write_bytes(zlib.compress(content))
    trees.take_in_blocking(ONE)
    assert not (workspace / ".git/objects" / place.parent.name / place.name).exists()
    assert not trees.has_new_blocking(ONE)


FAULTS = {
    "git took too long": -1,
    "git cannot be run (Cannot allocate memory)": -1,
    "": 137,
    "fatal: unable to write file: Disk quota exceeded": 128,
    "fatal: unable to create temporary file: Read-only file system": 128,
    "fatal: read error on input: Input/output error": 128,
    "fatal: Out of memory, malloc failed (tried to allocate 9 bytes)": 128,
    "fatal: pack signature mismatch": 1,
}


@pytest.mark.parametrize("errors", FAULTS)
def test_a_pack_that_git_cannot_read_now_stays_where_it_is(
    workspace: Path,
    trees: ConversationTrees,
    tree: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    errors: str,
) -> None:
    made = commit_in_box(tree, store, "one\n")
    git_in_box(tree, store, "repack", "-adlqn")
    before = files(store)
    run = WorkTree.run_blocking

    def failing(self: WorkTree, *words: str, **more: object) -> bytes:
        if words[0] == "index-pack":
            raise GitFailed(FAULTS[errors], b"", errors)
        return run(self, *words, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(WorkTree, "run_blocking", failing)
        with pytest.raises(GitFailed):
            trees.take_in_blocking(ONE)
    assert files(store) == before
    trees.take_in_blocking(ONE)
    assert git(workspace, "show", f"{made}:a.txt") == "one"


def test_packs_that_are_damaged_are_left_out(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path
) -> None:
    """Cut short, with more behind, with another sum, with another content, of another version."""
    (tree / "a.txt").write_text("".join(f"{number}\n" for number in range(2_000)))
    git_in_box(tree, store, "commit", "-qam", "change it")
    git_in_box(tree, store, "repack", "-adlqn")
    (pack,) = store.glob("pack/*.pack")
    good = pack.read_bytes()
    middle = len(good) // 2
    damaged = (
        good[:middle],
        good + b"more",
        good[:-1] + bytes([good[-1] ^ 1]),
        good[:middle]
        + bytes(byte ^ 255 for byte in good[middle : middle + 40])
        + good[middle + 40 :],
        good[:7] + b"\x09" + good[8:],
        good[:12] + b"\x00" + good[13:],
        b"",
    )
    for number, content in enumerate(damaged):
        place = pack.with_name(f"pack-{str(number) * 40}.pack")
        place.write_bytes(content)
        place.with_suffix(".idx").touch()
    trees.take_in_blocking(ONE)
    assert len(list(store.glob("pack/*.damaged"))) == len(damaged)
    assert not trees.has_new_blocking(ONE)
    git(workspace, "fsck", "--strict")


def test_an_object_that_cannot_be_opened_now_stays_where_it_is(
    workspace: Path,
    trees: ConversationTrees,
    tree: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = commit_in_box(tree, store, "one\n")
    before = files(store)
    with monkeypatch.context() as patched:
        refuse_objects(patched, errno.EMFILE)
        with pytest.raises(OSError, match="open files"):
            trees.take_in_blocking(ONE)
    assert files(store) == before
    trees.take_in_blocking(ONE)
    assert git(workspace, "show", f"{made}:a.txt") == "one"


def test_objects_that_a_command_has_closed_stay_and_do_not_keep_the_tree(
    workspace: Path,
    trees: ConversationTrees,
    tree: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit_in_box(tree, store, "one\n")
    before = files(store)
    refuse_objects(monkeypatch, errno.EACCES)
    assert trees.status_blocking(ONE) is not None
    assert files(store) == before
    trees.discard_blocking(ONE)
    assert not tree.exists()
    assert git(workspace, "status", "--porcelain") == ""
