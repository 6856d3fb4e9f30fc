"""The objects that commands made in a work tree, as git in their box makes them."""

import os
import subprocess
import zlib
from pathlib import Path

import pytest

from gateway.worktrees.worktrees import ConversationTrees
from tests.support.repositories import git, lay_repository

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


def in_box(tree: Path, store: Path, *words: str) -> str:
    """Run git as a command in the box does: new objects go to the store."""
    objects = {
        "GIT_OBJECT_DIRECTORY": str(store),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(tree.parents[1] / ".git/objects"),
    }
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ["git", *who, *words],
        cwd=tree,
        env=os.environ | objects,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def commit(tree: Path, store: Path, content: str) -> str:
    (tree / "a.txt").write_text(content)
    in_box(tree, store, "commit", "-qam", "change it")
    return in_box(tree, store, "rev-parse", "HEAD")


def files(store: Path) -> list[str]:
    return sorted(path.name for path in store.rglob("*") if path.is_file())


@pytest.mark.parametrize("is_packed", [False, True])
def test_what_a_command_committed_is_taken_into_the_repository(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path, *, is_packed: bool
) -> None:
    made = commit(tree, store, content := f"one{' ' * 3_000_000}{'x' * 700}\n")
    if is_packed:
        in_box(tree, store, "repack", "-adlqn")
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
    made = commit(tree, store, "one\n")
    shown = trees.status_blocking(ONE)
    assert shown is not None
    assert [file.path for file in trees.changes_blocking(ONE, shown.base).files] == ["a.txt"]
    made = commit(tree, store, "two\n")
    trees.merge_blocking(ONE, "Merge it", lambda _: None)
    assert git(workspace, "rev-parse", "HEAD") == made
    assert (workspace / "a.txt").read_text() == "two\n"


def test_a_start_keeps_a_work_tree_whose_last_commit_was_not_taken_in(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path
) -> None:
    made = commit(tree, store, "one\n")
    again = ConversationTrees(workspace, workspace.parent / "data", lambda _: None)
    again.repair_blocking(ONE, None)
    assert (tree / "a.txt").read_text() == "one\n"
    assert again.commit_blocking(ONE, "Keep it") == made


def test_an_object_that_is_not_what_its_name_says_is_left_out(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path, tmp_path: Path
) -> None:
    made = commit(tree, store, "one\n")
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


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_branch_whose_commit_a_command_deleted_begins_again_with_the_files_as_they_are(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path, *, is_deleted: bool
) -> None:
    commit(tree, store, "one\n")
    for path in store.glob("??/*"):
        path.unlink()
    if is_deleted:
        branch = trees.end_blocking(ONE, "Keep it")
        assert git(workspace, "show", f"{branch}:a.txt") == "one"
    else:
        assert trees.status_blocking(ONE) is not None
        trees.merge_blocking(ONE, "Merge it", lambda _: None)
        assert (workspace / "a.txt").read_text() == "one\n"
    assert "missing" not in git(workspace, "fsck")
