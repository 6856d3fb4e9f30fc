"""What a repository names, hides or points to leads the server's git nowhere else."""

from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from gateway.engine.box.git_box import enclose_git_blocking
from gateway.errors import Conflict
from gateway.worktrees.worktrees import ConversationTrees
from tests.support.repositories import arm, git, lay_repository
from tests.support.walls import needs_boxes
from tests.unit.gateway.worktrees.conftest import ONE

TWO = "cnv_two"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    lay_repository(folder, a_txt="a\n", b_txt="b\n")
    return folder


@pytest.fixture
def enclosed(tmp_path: Path) -> ConversationTrees:
    """The work trees of the workspace, with the server's git in its box."""
    data = tmp_path / "data"
    return ConversationTrees(tmp_path / "ws", data, lambda _: None, enclose_git_blocking)


def unnoted(_: str | None) -> None:
    """Keep nothing of a merge that nobody kills."""


def test_nothing_that_the_repository_names_is_run(
    workspace: Path, tmp_path: Path, trees: ConversationTrees
) -> None:
    mark = tmp_path / "ran"
    arm(workspace, mark)
    one = trees.open_blocking(ONE)
    (one / "a.txt").write_text("one\n")
    state = trees.status_blocking(ONE)
    assert state is not None
    trees.changes_blocking(ONE, state.base)
    (workspace / "a.txt").write_text("other\n")
    with pytest.raises(Conflict):
        trees.merge_blocking(ONE, "One", unnoted)
    (workspace / "a.txt").write_text("a\n")
    two = trees.open_blocking(TWO)
    (two / "a.txt").write_text("two\n")
    trees.merge_blocking(TWO, "Two", unnoted)
    with pytest.raises(Conflict):  # this asks for the driver
        trees.merge_blocking(ONE, "One", unnoted)
    trees.discard_blocking(ONE)
    trees.end_blocking(ONE, "Rest")
    assert not mark.exists()


_CHANGES = """\
case "$*" in
  *"config --list"*) cp {folder}/good {place}; "$@"; code=$?; cp {folder}/evil {place} ;;
  *) "$@"; code=$? ;;
esac
exit $code
"""


@needs_boxes
@pytest.mark.parametrize("place", [".git/worktrees/cnv_one/config.worktree", "shared.settings"])
def test_settings_that_change_once_they_were_looked_at_are_not_read(
    workspace: Path, tmp_path: Path, place: str
) -> None:
    """A command that runs can change those of its work tree, and a file that others include."""
    good = '[odd "a.\\"b\\\\"]\n\tx = "1\\n\\"2\\\\"\n\ty\n[core]\n\tautocrlf = input\n'
    (tmp_path / "good").write_text(good)
    (tmp_path / "evil").write_text(f'[filter "evil"]\n\tclean = touch {workspace}/ran; cat\n')
    (tmp_path / "script").write_text(_CHANGES.format(folder=tmp_path, place=workspace / place))
    (workspace / ".git/worktrees/cnv_one").mkdir(parents=True)
    git(workspace, "config", "include.path", f"{workspace}/shared.settings")
    git(workspace, "config", "extensions.worktreeConfig", "true")

    def enclose(*folders: Path) -> Sequence[str]:
        return "/bin/sh", str(tmp_path / "script"), *enclose_git_blocking(*folders)

    enclosed = ConversationTrees(workspace, tmp_path / "data", lambda _: None, enclose)
    one = enclosed.open_blocking(ONE)
    (one / ".gitattributes").write_text("*.txt filter=evil\n")
    (one / "new.txt").write_text("one\r\n")
    state = enclosed.status_blocking(ONE)
    assert state is not None
    changes = enclosed.changes_blocking(ONE, state.base)
    assert {file.path: file.after for file in changes.files}["new.txt"] == "one\n"
    assert not (workspace / "ran").exists()


@needs_boxes
@pytest.mark.parametrize("place", ["ws/shared.settings", "elsewhere/settings"])
def test_settings_that_are_a_link_are_replaced_where_it_leads(
    workspace: Path, tmp_path: Path, enclosed: ConversationTrees, place: str
) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (workspace / ".git/config").rename(tmp_path / place)
    (workspace / ".git/config").symlink_to(tmp_path / place)
    one = enclosed.open_blocking(ONE)
    (one / "a.txt").write_text("one\n")
    assert enclosed.merge_blocking(ONE, "One", unnoted).files == 1


@needs_boxes
def test_a_merge_deletes_no_file_that_a_sparse_checkout_leaves_out(
    workspace: Path, enclosed: ConversationTrees
) -> None:
    """Its settings are the work tree's own, of which the server's git reads a copy."""
    (workspace / "left-out").mkdir()
    (workspace / "left-out/c.txt").write_text("c\n")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "Two")
    git(workspace, "sparse-checkout", "set", "--cone")
    one = enclosed.open_blocking(ONE)
    (one / "a.txt").write_text("one\n")
    assert not (one / "left-out").exists()
    assert enclosed.merge_blocking(ONE, "One", unnoted).files == 1
    assert git(workspace, "show", "HEAD:left-out/c.txt") == "c"


def test_the_settings_are_real_attacks(workspace: Path, tmp_path: Path) -> None:
    """So that the test above cannot pass because they do nothing anyway."""
    arm(workspace, tmp_path / "ran")
    (workspace / "a.txt").write_text("one\n")
    with pytest.raises(CalledProcessError):  # the filter answers nothing
        git(workspace, "add", "a.txt")
    assert (tmp_path / "ran").exists()


def test_a_work_tree_that_points_elsewhere_is_not_followed(
    workspace: Path, tmp_path: Path, trees: ConversationTrees
) -> None:
    one = trees.open_blocking(ONE)
    lay_repository(tmp_path / "evil")
    arm(tmp_path / "evil", tmp_path / "ran")
    (one / ".git").write_text(f"gitdir: {tmp_path}/evil/.git\n")
    (workspace / ".git/worktrees/cnv_one/commondir").write_text(f"{tmp_path}/evil/.git\n")
    (workspace / ".git/worktrees/cnv_one/HEAD").write_text("ref: refs/heads/main\n")
    (one / "a.txt").write_text("one\n")
    trees.commit_blocking(ONE, "One")
    assert git(workspace, "log", "-1", "--format=%s", "main") == "first"
    assert trees.merge_blocking(ONE, "One", unnoted).files == 1
    assert not (tmp_path / "ran").exists()
    assert (workspace / "a.txt").read_text() == "one\n"


@needs_boxes
def test_a_repository_leads_the_servers_git_to_no_other_one(
    tmp_path: Path, enclosed: ConversationTrees
) -> None:
    lay_repository(tmp_path / "theirs", private_txt="secret\n")
    workspace = tmp_path / "ws"
    workspace.mkdir()
    git(workspace, "init", "-q", "-b", "main")
    theirs = tmp_path / "theirs/.git"
    (workspace / ".git/objects/info/alternates").write_text(f"{theirs}/objects\n")
    (workspace / ".git/refs/heads/main").symlink_to(theirs / "refs/heads/main")
    plain = ConversationTrees(workspace, tmp_path / "data", lambda _: None)
    assert plain.may_begin_blocking(ONE), "git alone follows it"

    assert not enclosed.may_begin_blocking(ONE)


@needs_boxes
@pytest.mark.parametrize("name", ["COMMIT_EDITMSG", "logs/HEAD"])
def test_nothing_is_written_through_links_of_the_repository(
    workspace: Path, tmp_path: Path, enclosed: ConversationTrees, name: str
) -> None:
    one = enclosed.open_blocking(ONE)
    (one / "a.txt").write_text("one\n")
    outside = tmp_path / "outside"
    outside.write_text("kept\n")
    entry = workspace / ".git/worktrees/cnv_one" / name
    entry.unlink(missing_ok=True)
    entry.symlink_to(outside)

    assert enclosed.merge_blocking(ONE, "One", unnoted).files == 1

    assert outside.read_text() == "kept\n"


@pytest.mark.parametrize("way", ["symbolic", "link"])
def test_a_branch_that_is_another_name_of_the_persons_leaves_theirs_alone(
    workspace: Path, trees: ConversationTrees, way: str
) -> None:
    one = trees.open_blocking(ONE)
    first = git(workspace, "rev-parse", "main")
    if way == "symbolic":
        git(workspace, "symbolic-ref", "refs/heads/candor/cnv_one", "refs/heads/main")
    else:
        branch = workspace / ".git/refs/heads/candor/cnv_one"
        branch.unlink()
        branch.symlink_to("../main")
    trees.status_blocking(ONE)
    plain = workspace / ".git/refs/heads/candor/cnv_one"
    assert (plain.is_symlink(), plain.read_text().strip()) == (False, first)
    (one / "a.txt").write_text("one\n")
    trees.commit_blocking(ONE, "One")
    assert git(workspace, "rev-parse", "main") == first

    git(workspace, "symbolic-ref", "refs/heads/candor/cnv_one", "refs/heads/main")
    trees.discard_blocking(ONE)

    assert git(workspace, "rev-parse", "main") == first


def test_what_differs_cannot_be_hidden(workspace: Path, trees: ConversationTrees) -> None:
    one = trees.open_blocking(ONE)
    (one / "evil.py").write_text("evil\n")
    git(one, "add", "evil.py")
    git(one, "commit", "-q", "-m", "evil")
    main, root = git(workspace, "rev-parse", "main"), git(one, "rev-parse", "HEAD^{tree}")
    git(workspace, "replace", main, git(workspace, "commit-tree", root, "-m", "first"))
    (one / "a.txt").write_text("hidden\n")
    git(one, "update-index", "--assume-unchanged", "a.txt")
    (one / "b.txt").write_text("hidden\n")
    git(one, "update-index", "--skip-worktree", "b.txt")

    changes = trees.changes_blocking(ONE, main)

    assert [file.path for file in changes.files] == ["a.txt", "b.txt", "evil.py"]
    git(workspace, "update-index", "--skip-worktree", "b.txt")
    assert trees.merge_blocking(ONE, "One", unnoted).files == 3
    assert (workspace / "b.txt").read_text() == "hidden\n"


def test_an_index_that_is_no_file_is_not_read(workspace: Path, trees: ConversationTrees) -> None:
    trees.open_blocking(ONE)
    index = workspace / ".git/worktrees/cnv_one/index"
    index.unlink()
    index.symlink_to("/dev/full")  # without an end, as /dev/zero

    with pytest.raises(FileNotFoundError):
        trees.changes_blocking(ONE, "HEAD")

    assert not [*(workspace.parent / "data").iterdir()]
