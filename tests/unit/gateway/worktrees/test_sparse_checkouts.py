"""Work trees of a workspace whose sparse checkout leaves files out."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Conflict
from gateway.worktrees.git import WorkTree
from gateway.worktrees.worktrees import ConversationTrees
from tests.support.repositories import git, lay_repository
from tests.unit.gateway.worktrees.conftest import ONE, unnoted


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    lay_repository(folder, a_txt="a\n", b_txt="b\n", deep__c_txt="c\n")
    return folder


def test_what_is_written_where_a_sparse_checkout_leaves_files_out_is_merged(
    workspace: Path, trees: ConversationTrees
) -> None:
    git(workspace, "sparse-checkout", "set", "--cone", "new")
    one = trees.open_blocking(ONE)
    assert not (one / "deep").exists()
    for name in ("deep/c.txt", "deep/d.txt", "more/e.txt"):
        (one / name).parent.mkdir(exist_ok=True)
        (one / name).write_text("one\n")
    base = git(workspace, "rev-parse", "main")
    changes = trees.changes_blocking(ONE, base)
    assert [file.path for file in changes.files] == ["deep/c.txt", "deep/d.txt", "more/e.txt"]
    (workspace / "deep").mkdir()
    (workspace / "deep/d.txt").write_text("mine\n")
    with pytest.raises(Conflict) as refused:
        trees.merge_blocking(ONE, "One", unnoted)
    assert refused.value.details == {"files": ["deep/d.txt"]}
    assert (workspace / "deep/d.txt").read_text() == "mine\n"
    shutil.rmtree(workspace / "deep")
    assert trees.merge_blocking(ONE, "One", unnoted).files == 3
    assert git(workspace, "show", "HEAD:deep/c.txt") == "one"
    assert git(workspace, "status", "--porcelain") == ""
    assert (one / "more/e.txt").read_text() == "one\n"


def test_a_merge_brings_files_that_git_passes_over_once_a_sparse_checkout_has_ended(
    workspace: Path, trees: ConversationTrees
) -> None:
    git(workspace, "sparse-checkout", "set", "--cone", "new")
    git(workspace, "sparse-checkout", "disable")
    git(workspace, "update-index", "--skip-worktree", "b.txt")
    one = trees.open_blocking(ONE)
    (one / "b.txt").write_text("one\n")
    trees.merge_blocking(ONE, "One", unnoted)
    assert (workspace / "b.txt").read_text() == "one\n"


def test_git_is_given_no_name_that_it_adds_by_itself(
    workspace: Path, trees: ConversationTrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It compares each file of the index with each name, which took minutes in large trees."""
    given: list[object] = []
    run = WorkTree.run_blocking

    def noted(tree: WorkTree, *words: str, **options: Any) -> bytes:
        if words[0] == "add":
            given.append(options["given"])
        return run(tree, *words, **options)

    git(workspace, "sparse-checkout", "set", "--cone", "new")
    one = trees.open_blocking(ONE)
    for name in ("a.txt", "new/b.txt", "more/e.txt"):
        (one / name).parent.mkdir(exist_ok=True)
        (one / name).write_text("one\n")
    monkeypatch.setattr(WorkTree, "run_blocking", noted)
    changes = trees.changes_blocking(ONE, git(workspace, "rev-parse", "main"))
    assert [file.path for file in changes.files] == ["a.txt", "more/e.txt", "new/b.txt"]
    assert given == [b"", b"more/e.txt"]


def test_what_a_sparse_checkout_leaves_out_is_not_deleted_whatever_its_index_says(
    workspace: Path, trees: ConversationTrees
) -> None:
    git(workspace, "sparse-checkout", "set", "--cone", "new")
    one = trees.open_blocking(ONE)
    git(one, "read-tree", "HEAD")  # forgets what is left out
    (one / "link").symlink_to("new")
    (one / "more").mkdir()
    git(one / "more", "init", "-q")
    changes = trees.changes_blocking(ONE, git(workspace, "rev-parse", "main"))
    assert ([file.path for file in changes.files], changes.complete) == (["link"], False)
    (one / "deep").symlink_to("new")
    changes = trees.changes_blocking(ONE, git(workspace, "rev-parse", "main"))
    assert [file.path for file in changes.files] == ["deep", "deep/c.txt", "link"]
    shutil.rmtree(one / "more")
    assert trees.merge_blocking(ONE, "One", unnoted).files == 3
