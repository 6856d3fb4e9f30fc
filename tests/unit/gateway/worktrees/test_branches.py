"""The branches of work trees whose commits are missing, or seem to be."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.worktrees.git import GitFailed, WorkTree
from gateway.worktrees.repository_files import RepositoryFiles
from gateway.worktrees.worktrees import ConversationTrees
from tests.support.repositories import commit_in_box, git, git_in_box, lay_repository
from tests.unit.gateway.worktrees.conftest import ONE

REPOSITORY = Path(__file__).parents[4]
_AS_NOBODY = """
import os, sys
from pathlib import Path
from gateway.worktrees.worktrees import ConversationTrees
from tests.support.repositories import git, lay_repository
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.umask(0o022)
workspace = Path(sys.argv[1]) / "ws"
os.environ["HOME"] = sys.argv[1]
lay_repository(workspace, a_txt="a")
trees = ConversationTrees(workspace, workspace.parent / "data", lambda _: None)
"""
_CLOSED_BRANCHES = f"""{_AS_NOBODY}
branches = workspace / ".git/refs/heads/candor"
(trees.open_blocking("cnv_one") / "a.txt").write_text("one")
branches.chmod(0o555)
trees.open_blocking("cnv_two")
branches.chmod(0o555)
trees.merge_blocking("cnv_one", "Merge it", lambda _: None)
assert (workspace / "a.txt").read_text() == "one"
branches.chmod(0o555)
trees.discard_blocking("cnv_one")
assert git(workspace, "branch", "--list", "candor/*").split() == ["+", "candor/cnv_two"]
assert branches.stat().st_mode & 0o777 == 0o755
"""
_CLOSED_TREE = f"""{_AS_NOBODY}
tree = trees.open_blocking("cnv_one")
for number, mode in enumerate((0o555, 0)):
    (tree / "b.txt").write_text(str(number))
    for folder in (workspace / ".git/worktrees/cnv_one", tree):
        folder.chmod(mode)
    assert trees.status_blocking("cnv_one") is not None
    trees.merge_blocking("cnv_one", "Merge it", lambda _: None)
    assert (workspace / "b.txt").read_text() == str(number)
"""
REF = f"refs/heads/candor/{ONE}"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    lay_repository(folder, a_txt="a\n")
    return folder


def log_of(workspace: Path) -> str:
    return (workspace / f".git/worktrees/{ONE}/logs/HEAD").read_text()


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_branch_whose_commit_a_command_deleted_begins_again_with_the_files_as_they_are(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path, *, is_deleted: bool
) -> None:
    commit_in_box(tree, store, "one\n")
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


@pytest.mark.parametrize("use", ["status", "open", "merge", "end"])
def test_a_commit_while_a_work_tree_is_looked_at_is_kept(
    workspace: Path,
    trees: ConversationTrees,
    tree: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    use: str,
) -> None:
    """The agent commits after the objects were taken in and before the branch is read."""
    made: list[str] = []
    run = WorkTree.run_blocking

    def committing(self: WorkTree, *words: str, **more: object) -> bytes:
        if words[0] == "rev-parse" and REF in words[-1] and not made:
            made.append(commit_in_box(tree, store, "one\n"))
        return run(self, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(WorkTree, "run_blocking", committing)
    if use == "status":
        state = trees.status_blocking(ONE)
        assert state is not None
        assert [file.after for file in trees.changes_blocking(ONE, state.base).files] == ["one\n"]
    elif use == "open":
        trees.open_blocking(ONE)
    elif use == "merge":
        trees.merge_blocking(ONE, "Merge it", lambda _: None)
    else:
        trees.end_blocking(ONE, "Keep it")
    assert git(workspace, "rev-parse", REF) == made[0]
    assert git(workspace, "show", f"{REF}:a.txt") == "one"


def test_a_look_at_a_branch_whose_commit_is_gone_changes_nothing(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path
) -> None:
    gone = commit_in_box(tree, store, "one\n")
    for path in store.glob("??/*"):
        path.unlink()
    before = log_of(workspace)
    state = trees.status_blocking(ONE)
    assert state is not None
    changes = trees.changes_blocking(ONE, state.base)
    assert [(file.path, file.before, file.after) for file in changes.files] == [
        ("a.txt", "a\n", "one\n")
    ]
    assert (workspace / ".git" / REF).read_text().strip() == gone
    assert log_of(workspace) == before
    trees.discard_blocking(ONE)
    assert not tree.exists()
    assert trees.status_blocking(ONE) is None


def test_a_branch_that_is_set_while_it_begins_again_keeps_what_it_was_set_to(
    workspace: Path,
    trees: ConversationTrees,
    tree: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = commit_in_box(tree, store, "one\n")
    trees.take_in_blocking(ONE)
    place = workspace / ".git" / REF
    place.write_text(f"{'1' * 40}\n")
    run = WorkTree.run_blocking

    def setting(self: WorkTree, *words: str, **more: object) -> bytes:
        if words[0] == "update-ref":
            place.write_text(f"{first}\n")
        return run(self, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(WorkTree, "run_blocking", setting)
    with pytest.raises(GitFailed):
        trees.end_blocking(ONE, "Keep it")
    assert place.read_text().strip() == first
    assert first in log_of(workspace)


def test_a_branch_that_is_set_during_a_merge_keeps_what_it_was_set_to(
    workspace: Path,
    trees: ConversationTrees,
    tree: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit_in_box(tree, store, "one\n")
    lay_repository(workspace, b_txt="b\n")
    run = WorkTree.run_blocking

    def committing(self: WorkTree, *words: str, **more: object) -> bytes:
        if words[0] == "update-ref" and REF in words:
            commit_in_box(tree, store, "two\n")
        return run(self, *words, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(WorkTree, "run_blocking", committing)
        with pytest.raises(GitFailed):
            trees.merge_blocking(ONE, "Merge it", lambda _: None)
    assert (workspace / "a.txt").read_text() == "one\n"
    assert (tree / "b.txt").read_text() == "b\n"
    trees.merge_blocking(ONE, "Merge it", lambda _: None)
    assert (workspace / "a.txt").read_text() == "two\n"
    assert (workspace / "b.txt").read_text() == "b\n"
    assert git(workspace, "log", "--format=%s", "HEAD").split("\n")[0] == "Merge it"


def test_a_branch_that_another_conversation_damaged_begins_at_its_own_last_commit(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path
) -> None:
    commit_in_box(tree, store, "one\n")
    last = commit_in_box(tree, store, "two\n")
    trees.take_in_blocking(ONE)
    before = log_of(workspace)
    (workspace / ".git" / REF).write_text(f"{'1' * 40}\n")
    trees.open_blocking(ONE)
    assert git(workspace, "rev-parse", REF) == last
    assert log_of(workspace) == before
    assert git(tree, "status", "--porcelain") == ""
    git(workspace, "fsck", "--strict")
    git(workspace, "gc", "-q", "--prune=now")
    assert git(workspace, "show", f"{last}:a.txt") == "two"


@pytest.mark.parametrize("lost", ["commit", "blob"])
def test_a_branch_whose_last_commit_is_gone_begins_at_the_one_before(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path, lost: str
) -> None:
    """Of the last commits one misses a file's content, and the very last one itself."""
    kept = commit_in_box(tree, store, "one\n")
    trees.take_in_blocking(ONE)
    ids = [commit_in_box(tree, store, content) for content in ("two\n", "three\n")]
    first = git_in_box(tree, store, "rev-parse", f"{ids[0]}:a.txt") if lost == "blob" else ids[0]
    for name in (first, ids[1]):
        (store / name[:2] / name[2:]).unlink()
    trees.open_blocking(ONE)
    assert git(workspace, "rev-parse", REF) == kept
    assert kept in log_of(workspace)
    assert not any(name in log_of(workspace) for name in ids)
    git(workspace, "fsck", "--strict")
    git(workspace, "gc", "-q", "--prune=now")
    trees.merge_blocking(ONE, "Merge it", lambda _: None)
    assert (workspace / "a.txt").read_text() == "three\n"


def test_a_kill_before_a_branch_begins_again_leaves_an_index_that_can_be_read(
    workspace: Path,
    trees: ConversationTrees,
    tree: Path,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit_in_box(tree, store, "one\n")
    for path in store.glob("??/*"):
        path.unlink()
    run = WorkTree.run_blocking
    left = True

    def dying(self: WorkTree, *words: str, **more: object) -> bytes:
        nonlocal left
        told = run(self, *words, **more)  # type: ignore[arg-type]
        if words[0] == "update-ref" and left:
            left = False
            raise KeyboardInterrupt
        return told

    monkeypatch.setattr(WorkTree, "run_blocking", dying)
    with pytest.raises(KeyboardInterrupt):
        trees.merge_blocking(ONE, "Merge it", lambda _: None)
    trees.merge_blocking(ONE, "Merge it", lambda _: None)
    assert (workspace / "a.txt").read_text() == "one\n"
    assert git(workspace, "status", "--porcelain") == ""


DAMAGES = {
    "emptied by a cut of the power": lambda ref: ref.write_bytes(b""),
    "zeroed by a cut of the power": lambda ref: ref.write_bytes(b"\0" * 41),
    "another name of nothing": lambda ref: ref.write_text("ref: refs/heads/nothing\n"),
    "renamed by a command": lambda ref: ref.rename(ref.with_name("other")),
}


@pytest.mark.parametrize("use", ["start", "merge", "end"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_work_tree_whose_branch_is_damaged_or_missing_keeps_its_files(
    workspace: Path, trees: ConversationTrees, tree: Path, store: Path, damage: str, use: str
) -> None:
    kept = commit_in_box(tree, store, "one\n")
    trees.take_in_blocking(ONE)
    (tree / "new.txt").write_text("new\n")
    DAMAGES[damage](workspace / ".git" / REF)
    if use == "start":
        trees.repair_blocking(ONE, None)
        state = trees.status_blocking(ONE)
        assert state is not None
        changes = trees.changes_blocking(ONE, state.base)
        assert [file.path for file in changes.files] == ["a.txt", "new.txt"]
        assert trees.open_blocking(ONE) == tree
        assert git(tree, "status", "--porcelain") == "?? new.txt"
    elif use == "merge":
        trees.merge_blocking(ONE, "Merge it", lambda _: None)
        assert (workspace / "new.txt").read_text() == "new\n"
    else:
        assert trees.end_blocking(ONE, "Keep it") == f"candor/{ONE}"
        assert git(workspace, "show", f"{REF}:new.txt") == "new"
    assert kept in git(workspace, "rev-list", REF).split("\n")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_work_tree_whose_branch_is_damaged_or_missing_can_be_thrown_away(
    workspace: Path, trees: ConversationTrees, tree: Path, damage: str
) -> None:
    DAMAGES[damage](workspace / ".git" / REF)
    trees.discard_blocking(ONE)
    assert not tree.exists()
    assert trees.open_blocking(ONE) == tree
    assert git(tree, "status", "--porcelain") == ""


def test_a_branch_that_git_cannot_delete_now_is_thrown_away_later(
    workspace: Path, trees: ConversationTrees, tree: Path
) -> None:
    """Otherwise the next turn would bring its commits back."""
    (tree / "new.txt").touch()
    trees.commit_blocking(ONE, "new")
    lock = workspace / ".git/packed-refs.lock"
    lock.touch()
    with pytest.raises(GitFailed):
        trees.discard_blocking(ONE)
    assert trees.has_blocking(ONE)
    lock.unlink()
    trees.discard_blocking(ONE)
    assert not trees.has_blocking(ONE)
    assert not (trees.open_blocking(ONE) / "new.txt").exists()


def test_branches_in_the_place_of_one_are_thrown_away_with_it(
    workspace: Path, trees: ConversationTrees, tree: Path
) -> None:
    git(workspace, "branch", "-m", f"candor/{ONE}", f"candor/{ONE}/new")
    trees.discard_blocking(ONE)
    assert trees.open_blocking(ONE) == tree
    assert git(workspace, "branch", "--list", "candor/*").split() == ["+", f"candor/{ONE}"]


def test_a_kill_while_a_work_tree_is_thrown_away_is_brought_to_an_end(
    trees: ConversationTrees, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = RepositoryFiles.remove

    def dying(self: RepositoryFiles, parts: Sequence[str]) -> None:
        if parts[-1] == ONE:
            raise KeyboardInterrupt
        remove(self, parts)

    with monkeypatch.context() as patched:
        patched.setattr(RepositoryFiles, "remove", dying)
        with pytest.raises(KeyboardInterrupt):
            trees.discard_blocking(ONE)
    assert trees.status_blocking(ONE) is None
    trees.repair_blocking(ONE, None)
    assert not tree.exists()


@pytest.mark.parametrize("use", ["merge", "end", "discard"])
@pytest.mark.parametrize("lock", [f"worktrees/{ONE}/index.lock", f"{REF}.lock"])
def test_a_lock_that_a_killed_command_left_does_not_keep_a_work_tree(
    workspace: Path, trees: ConversationTrees, tree: Path, lock: str, use: str
) -> None:
    (tree / "a.txt").write_text("one\n")
    (workspace / ".git" / lock).touch()
    if use == "merge":
        trees.merge_blocking(ONE, "Merge it", lambda _: None)
        assert (workspace / "a.txt").read_text() == "one\n"
    elif use == "end":
        trees.end_blocking(ONE, "Keep it")
        assert git(workspace, "show", f"{REF}:a.txt") == "one"
    else:
        trees.discard_blocking(ONE)
        assert git(workspace, "branch", "--list", "candor/*") == ""


def test_branches_whose_folder_a_command_has_closed_are_opened_again() -> None:
    """It is that of all conversations."""
    run_as_nobody(_CLOSED_BRANCHES)


def test_a_work_tree_whose_folders_a_command_has_closed_is_opened_again() -> None:
    run_as_nobody(_CLOSED_TREE)


def run_as_nobody(program: str) -> None:
    """Run a program as a user other than root, to whom no folder is closed."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        subprocess.run(
            [sys.executable, "-c", program, name], cwd=REPOSITORY, check=True, timeout=120
        )


def test_a_branch_that_a_person_works_on_in_the_workspace_is_not_deleted(
    workspace: Path, trees: ConversationTrees, tree: Path
) -> None:
    git(workspace, "worktree", "remove", "--force", str(tree))
    git(workspace, "checkout", "-q", f"candor/{ONE}")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "Mine")
    trees.discard_blocking(ONE)
    assert trees.end_blocking(ONE, "Keep it") == f"candor/{ONE}"
    assert git(workspace, "log", "-1", "--format=%s") == "Mine"
