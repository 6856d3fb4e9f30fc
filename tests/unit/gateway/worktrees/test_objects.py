"""The objects that commands made in a work tree, as git in their box makes them."""

import os
import zlib
from pathlib import Path

import pytest

from gateway.worktrees.worktrees import ConversationTrees
from tests.support.repositories import commit_in_box, git, git_in_box, lay_repository

ONE = "cnv_one"


@pytest.fixture(params=["sha1", "sha256"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    git(folder, "init", "-q", f"--object-format={request.param}")
    lay_repository(folder, a_txt="a\n")
    return folder


@pytest.fixture
def trees(workspace: Path) -> ConversationTrees:
    return ConversationTrees(workspace, workspace.parent / "data", lambda _: None)


@pytest.fixture
def tree(trees: ConversationTrees) -> Path:
    return trees.open_blocking(ONE)


@pytest.fixture
def store(workspace: Path, tree: Path) -> Path:
    folder = workspace / f".git/worktrees/{tree.name}/objects"
    (folder / "info").mkdir(parents=True)
    (folder / "info/alternates").touch()
    return folder


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
