"""A person's files that git itself would replace or delete when a merge comes into a workspace."""

from pathlib import Path

import pytest

from gateway.errors import Conflict
from gateway.worktrees.worktrees import ConversationTrees
from tests.support.repositories import git, lay_repository
from tests.unit.gateway.worktrees.conftest import ONE, unnoted


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    lay_repository(folder, a_txt="a\n", b_txt="b\n")
    return folder


def refused_files(trees: ConversationTrees) -> object:
    with pytest.raises(Conflict) as refused:
        trees.merge_blocking(ONE, "One", unnoted)
    assert refused.value.details is not None
    return refused.value.details["files"]


@pytest.mark.parametrize("name", ["a.txt", "new.txt"])
def test_a_file_that_is_staged_as_it_is_merged_and_was_changed_since(
    workspace: Path, trees: ConversationTrees, tree: Path, name: str
) -> None:
    (tree / name).write_text("one\n")
    (workspace / name).write_text("one\n")
    git(workspace, "add", name)
    (workspace / name).write_text("mine\n")
    assert refused_files(trees) == [name]
    assert (workspace / name).read_text() == "mine\n"


def test_a_file_that_git_ignores_from_now_on_and_the_merge_deletes(
    workspace: Path, trees: ConversationTrees, tree: Path
) -> None:
    (tree / "a.txt").unlink()
    git(workspace, "rm", "-q", "--cached", "a.txt")
    (workspace / ".git/info/exclude").write_text("a.txt\n")
    assert refused_files(trees) == ["a.txt"]
    assert (workspace / "a.txt").read_text() == "a\n"


def test_a_link_that_git_ignores_where_the_merge_has_a_folder(
    workspace: Path, trees: ConversationTrees, tree: Path
) -> None:
    (tree / "data").mkdir()
    (tree / "data/new.txt").write_text("one\n")
    git(tree, "add", "data")
    (workspace / ".git/info/exclude").write_text("data\n")
    (workspace / "data").symlink_to(workspace.parent)
    assert refused_files(trees) == ["data"]
    assert (workspace / "data").is_symlink()


def test_a_submodule_where_the_merge_has_a_file(
    workspace: Path, trees: ConversationTrees, tree: Path
) -> None:
    submodule = workspace / "sub"
    lay_repository(submodule, a_txt="a\n")
    git(workspace, "add", "sub")
    git(workspace, "commit", "-q", "-m", "Add it")
    git(tree, "reset", "-q", "--hard", "main")
    (tree / "sub").rmdir()
    (tree / "sub").write_text("one\n")
    (submodule / "mine.txt").write_text("mine\n")
    assert refused_files(trees) == ["sub"]
    assert (submodule / "mine.txt").read_text() == "mine\n"


def test_a_file_that_git_ignores(workspace: Path, trees: ConversationTrees) -> None:
    (workspace / ".gitignore").write_text("*.db\n")
    git(workspace, "add", ".gitignore")
    git(workspace, "commit", "-q", "-m", "Ignore")
    tree = trees.open_blocking(ONE)
    (tree / ".gitignore").unlink()
    (tree / "local.db").write_text("one\n")
    (workspace / "local.db").write_text("mine\n")
    assert refused_files(trees) == ["local.db"]
    assert (workspace / "local.db").read_text() == "mine\n"
    (workspace / "local.db").unlink()
    assert trees.merge_blocking(ONE, "One", unnoted).files == 2


def test_a_folder_that_git_ignores_where_the_merge_has_a_link(
    workspace: Path, trees: ConversationTrees
) -> None:
    (workspace / ".gitignore").write_text("data/\n")  # which takes no link
    git(workspace, "add", ".gitignore")
    git(workspace, "commit", "-q", "-m", "Ignore")
    tree = trees.open_blocking(ONE)
    (tree / "data").symlink_to(workspace / "data")
    (workspace / "data/deep").mkdir(parents=True)
    (workspace / "data/deep/mine.txt").write_text("mine\n")
    assert refused_files(trees) == ["data"]
    assert (workspace / "data/deep/mine.txt").read_text() == "mine\n"
