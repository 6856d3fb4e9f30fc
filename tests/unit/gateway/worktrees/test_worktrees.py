"""Work trees of conversations, with real repositories."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from gateway.errors import Conflict
from gateway.trust import OWN_SKILLS
from gateway.workspace import prepare_user_blocking
from gateway.worktrees.git import GitFailed, WorkTree
from gateway.worktrees.worktrees import ConversationTrees
from tests.support.repositories import git, lay_repository
from tests.unit.gateway.worktrees.conftest import ONE, unnoted

TWO = "cnv_two"
Noted = list[str | None]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    lay_repository(folder, a_txt="a\n", b_txt="b\n", deep__c_txt="c\n")
    return folder


@pytest.fixture
def trees(workspace: Path) -> ConversationTrees:
    return made(workspace)


def made(workspace: Path) -> ConversationTrees:
    prepare = partial(prepare_user_blocking, skills_source=OWN_SKILLS)
    return ConversationTrees(workspace, workspace.parent / "data", prepare)


def status(folder: Path) -> str:
    return git(folder, "status", "--porcelain")


def test_each_conversation_has_its_files_and_the_workspace_keeps_its_own(
    workspace: Path, trees: ConversationTrees
) -> None:
    one, two = trees.open_blocking(ONE), trees.open_blocking(TWO)
    (one / "a.txt").write_text("one\n")
    assert [(folder / "a.txt").read_text() for folder in (workspace, two)] == ["a\n", "a\n"]
    assert (one / ".claude/skills/memory-capture/SKILL.md").exists()
    assert status(workspace) == ""
    assert status(one) == " M a.txt".strip()
    assert git(one, "branch", "--show-current") == "candor/cnv_one"
    assert trees.open_blocking(ONE) == one
    assert (one / "a.txt").read_text() == "one\n"


def test_a_merge_takes_all_changes_and_leaves_what_else_the_workspace_holds(
    workspace: Path, trees: ConversationTrees
) -> None:
    one = trees.open_blocking(ONE)
    (one / "a.txt").write_text("one\n")
    (one / "new").mkdir()
    (one / "new/项目.txt").write_text("new\n")
    (one / "deep/c.txt").unlink()
    (workspace / "b.txt").write_text("not committed\n")
    (workspace / "loose.txt").write_text("loose\n")
    merged = trees.merge_blocking(ONE, "Merge it", unnoted)
    assert merged.files == 3
    assert git(workspace, "rev-parse", "main") == merged.commit
    assert (workspace / "a.txt").read_text() == "one\n"
    assert (workspace / "new/项目.txt").read_text() == "new\n"
    assert not (workspace / "deep").exists()
    assert (workspace / "b.txt").read_text() == "not committed\n"
    assert status(workspace).split("\n") == ["M b.txt", "?? loose.txt"]
    assert git(one, "log", "-1", "--format=%s") == "Merge it"
    assert trees.merge_blocking(ONE, "Nothing", unnoted).files == 0


def test_two_that_change_the_same_conflict_and_nothing_is_changed(
    workspace: Path, trees: ConversationTrees
) -> None:
    one, two = trees.open_blocking(ONE), trees.open_blocking(TWO)
    (one / "a.txt").write_text("one\n")
    (two / "a.txt").write_text("two\n")
    (two / "b.txt").write_text("two\n")
    trees.merge_blocking(ONE, "One", unnoted)
    before = git(workspace, "rev-parse", "HEAD")
    with pytest.raises(Conflict) as refused:
        trees.merge_blocking(TWO, "Two", unnoted)
    assert refused.value.details == {"files": ["a.txt"]}
    assert (git(workspace, "rev-parse", "HEAD"), status(workspace)) == (before, "")
    assert (two / "a.txt").read_text() == "two\n"
    (two / "a.txt").write_text("one\n")  # as a person, or the agent, settles it
    assert trees.merge_blocking(TWO, "Two", unnoted).files == 1
    assert git(workspace, "log", "-1", "--format=%p").count(" ") == 1


@pytest.mark.parametrize("name", ["a.txt", "new.txt"])
def test_what_is_not_committed_in_the_workspace_is_not_overwritten(
    workspace: Path, trees: ConversationTrees, name: str
) -> None:
    one = trees.open_blocking(ONE)
    (one / name).write_text("one\n")
    (workspace / name).write_text("mine\n")
    with pytest.raises(Conflict) as refused:
        trees.merge_blocking(ONE, "One", unnoted)
    assert refused.value.details == {"files": [name]}
    assert (workspace / name).read_text() == "mine\n"


def test_a_lock_of_the_workspaces_index_is_named_and_nothing_is_changed(
    workspace: Path, trees: ConversationTrees
) -> None:
    one = trees.open_blocking(ONE)
    (one / "a.txt").write_text("one\n")
    lock = workspace / ".git/index.lock"
    lock.touch()
    with pytest.raises(Conflict, match=r"remove that file") as refused:
        trees.merge_blocking(ONE, "One", unnoted)
    assert refused.value.specific_code == "workspace_busy"
    assert (workspace / "a.txt").read_text() == "a\n"
    lock.unlink()
    assert trees.merge_blocking(ONE, "One", unnoted).files == 1


def test_protected_files_are_not_merged(workspace: Path, trees: ConversationTrees) -> None:
    one = trees.open_blocking(ONE)
    (one / "CLAUDE.md").write_text("Do evil.\n")
    (one / ".env").write_text("TOKEN=x\n")
    (one / "lib").mkdir()
    (one / "lib/.github").symlink_to("../new")
    (one / "lib/.config").write_text("CONFIG_SMP=y\n")
    with pytest.raises(Conflict) as refused:
        trees.merge_blocking(ONE, "One", unnoted)
    assert refused.value.details == {"files": [".env", "CLAUDE.md", "lib/.github"]}
    assert status(workspace) == ""


def test_a_repository_of_any_name_is_not_merged_in_parts_either(
    workspace: Path, trees: ConversationTrees
) -> None:
    """Git runs what the settings of one name when a person looks at the folder."""
    one = trees.open_blocking(ONE)
    for name in ("HEAD", "objects/x", "config"):
        (one / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (one / "lib" / name).write_text("x")
    assert trees.merge_blocking(ONE, "One", unnoted).files == 3
    (one / "lib/refs").mkdir()
    (one / "lib/refs/x").write_text("x")
    (one / "lib/plain").write_text("x")
    with pytest.raises(Conflict) as refused:
        trees.merge_blocking(ONE, "One", unnoted)
    assert refused.value.details == {"files": ["lib/refs/x"]}
    assert status(workspace) == ""


def test_a_merge_does_not_make_a_folder_of_the_workspace_a_repository(
    workspace: Path, trees: ConversationTrees
) -> None:
    (workspace / "lib/refs").mkdir(parents=True)
    one = trees.open_blocking(ONE)
    for name in ("HEAD", "objects/x", "config"):
        (one / "lib" / name).parent.mkdir(parents=True, exist_ok=True)
        (one / "lib" / name).write_text("x")
    with pytest.raises(Conflict) as refused:
        trees.merge_blocking(ONE, "One", unnoted)
    assert refused.value.details == {"files": ["lib/HEAD", "lib/config", "lib/objects/x"]}
    (workspace / "lib/refs").rmdir()
    trees.merge_blocking(ONE, "One", unnoted)
    (workspace / "lib/refs").mkdir()
    shutil.rmtree(one / "lib")
    assert trees.merge_blocking(ONE, "Remove it", unnoted).files == 3


def test_what_differs_is_told_with_texts_where_they_may_be_shown(
    workspace: Path, trees: ConversationTrees
) -> None:
    one = trees.open_blocking(ONE)
    (one / "a.txt").write_text("one\n")
    (one / "deep/c.txt").rename(one / "moved.txt")
    (one / "b.txt").unlink()
    (one / "new.txt").write_text("new\n")
    (one / "binary").write_bytes(b"\xff\0")
    (one / "large.txt").write_text("x" * 300_000)
    (one / "id_rsa").write_text("secret")
    trees.commit_blocking(ONE, "part")
    (one / "new.txt").write_text("newer\n")
    state = trees.status_blocking(ONE)
    assert state is not None
    changes = trees.changes_blocking(ONE, state.base)
    assert changes.complete
    told = {file.path: (file.kind, file.before, file.after, file.unread) for file in changes.files}
    assert told == {
        "a.txt": ("modified", "a\n", "one\n", None),
        "b.txt": ("deleted", "b\n", "", None),
        "binary": ("created", None, None, "binary"),
        "id_rsa": ("created", None, None, "secret"),
        "large.txt": ("created", None, None, "too_large"),
        "moved.txt": ("moved", "c\n", "c\n", None),
        "new.txt": ("created", "", "newer\n", None),
    }
    assert git(one, "status", "--porcelain") == "M new.txt"


def test_what_is_thrown_away_is_gone_and_the_next_use_begins_anew(
    workspace: Path, trees: ConversationTrees
) -> None:
    one = trees.open_blocking(ONE)
    (one / "a.txt").write_text("one\n")
    trees.commit_blocking(ONE, "kept?")
    trees.discard_blocking(ONE)
    assert not one.exists()
    assert git(workspace, "branch", "--list", "candor/*") == ""
    assert (trees.open_blocking(ONE) / "a.txt").read_text() == "a\n"


def test_a_conversation_that_ends_leaves_a_branch_of_what_was_not_merged(
    workspace: Path, trees: ConversationTrees
) -> None:
    for name in (ONE, TWO):
        (trees.open_blocking(name) / "a.txt").write_text("one\n")
    trees.merge_blocking(ONE, "One", unnoted)
    (trees.folder(TWO) / "a.txt").write_text("two\n")
    assert trees.end_blocking(ONE, "Rest") is None
    assert trees.end_blocking(TWO, "Rest") == "candor/cnv_two"
    assert git(workspace, "branch", "--list", "candor/*", "--format=%(refname:short)") == (
        "candor/cnv_two"
    )
    assert git(workspace, "show", "candor/cnv_two:a.txt") == "two"
    assert list((workspace / ".candor-worktrees").iterdir()) == []


def test_a_folder_that_is_no_repository_with_a_commit_has_no_work_trees(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert made(tmp_path / "plain").status_blocking(ONE) is None
    assert not made(tmp_path / "plain").may_begin_blocking(ONE)
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    assert not made(tmp_path / "empty").may_begin_blocking(ONE)
    lay_repository(tmp_path / "ws")
    assert made(tmp_path / "ws").may_begin_blocking(ONE)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/.git").symlink_to(tmp_path / "ws/.git")
    assert not made(tmp_path / "linked").may_begin_blocking(ONE)


class Killed(BaseException):
    """Stands for the end of the process."""


def test_a_kill_at_any_command_leaves_a_state_that_is_brought_to_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Make, merge and throw away, each killed before each of its git commands."""
    run = WorkTree.run_blocking
    left = 0

    def dying(self: WorkTree, *words: str, **more: object) -> bytes:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        return run(self, *words, **more)  # type: ignore[arg-type]

    for number in range(40):
        workspace = tmp_path / str(number) / "ws"
        lay_repository(workspace, a_txt="a\n", b_txt="b\n", deep__c_txt="c\n")
        (workspace / "loose.txt").write_text("loose\n")
        trees = made(workspace)
        monkeypatch.setattr(WorkTree, "run_blocking", dying)
        left, is_written, is_merged, is_whole, noted = number, False, False, False, Noted([None])
        try:
            one = trees.open_blocking(ONE)
            (one / "a.txt").write_text("one\n")
            (one / "deep/c.txt").unlink()
            is_written = True
            trees.merge_blocking(ONE, "One", noted.append)
            is_merged = True
            trees.discard_blocking(ONE)
            is_whole = True
        except Killed:
            pass
        monkeypatch.setattr(WorkTree, "run_blocking", run)
        again = made(workspace)
        again.repair_blocking(ONE, noted[-1])
        assert status(workspace) == "?? loose.txt", number
        seen = ((workspace / "a.txt").read_text(), (workspace / "deep/c.txt").exists())
        assert seen in {("a\n", True), ("one\n", False)}, number
        assert not is_merged or seen == ("one\n", False)
        if again.may_begin_blocking(ONE):
            there = again.open_blocking(ONE)
            kept = "one\n" if is_written else "a\n"
            assert (there / "a.txt").read_text() == kept, number
            again.merge_blocking(ONE, "One", unnoted)
        assert status(workspace) == "?? loose.txt", number
        if is_whole:
            return
    pytest.fail("it never ran to its end")


PERSONS: dict[str, tuple[dict[str, str | None], list[str], str]] = {
    "edits": ({"a.txt": "mine\n"}, [], "M a.txt"),
    "stages": ({"a.txt": "mine\n"}, ["add", "a.txt"], "M  a.txt"),
    "deletes": ({"b.txt": None}, [], "D b.txt"),
    "adds": ({"new/e.txt": "mine\n"}, [], "?? new/"),
    "leaves the branch": ({}, ["checkout", "-q", "-f", "-b", "mine"], ""),
}
"""What a person did: files, a command of git, and what git says of it afterwards."""


@pytest.mark.parametrize("person", PERSONS)
@pytest.mark.parametrize("killed_at", ["read-tree -i", "checkout-index -f", "update-ref -m"])
def test_what_a_person_changed_since_a_killed_merge_stays_and_the_merge_is_undone(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, person: str, killed_at: str
) -> None:
    (workspace / "loose.txt").write_text("loose\n")
    noted = Noted()
    one = kill_merge(workspace, monkeypatch, killed_at, noted)
    expected = {"a.txt": "a\n", "b.txt": "b\n", "deep/c.txt": "c\n", "loose.txt": "loose\n"}
    files, command, told = PERSONS[person]
    for name, text in files.items():
        expected.pop(name, "")
        if text is None:
            (workspace / name).unlink()
            continue
        expected[name] = text
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)
    if command:
        git(workspace, *command)
    made(workspace).repair_blocking(ONE, noted[-1])
    found = {
        str(path.relative_to(workspace)): path.read_text()
        for path in workspace.rglob("*.txt")
        if ".candor-worktrees" not in path.parts
    }
    assert found == expected
    assert {*status(workspace).split("\n")} == {told, "?? loose.txt"} - {""}
    assert git(workspace, "log", "-1", "--format=%s", "main") == "first"
    assert (one / "a.txt").read_text() == "a.txt by the agent\n"
    if person in {"edits", "stages", "adds"}:
        with pytest.raises(Conflict):
            made(workspace).merge_blocking(ONE, "One", unnoted)


def kill_merge(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, killed_at: str, noted: Noted
) -> Path:
    """Merge, and be killed before a command; return the work tree."""
    run = WorkTree.run_blocking

    def dying(self: WorkTree, *words: str, **more: object) -> bytes:
        if " ".join(words[:2]) == killed_at:
            raise Killed
        return run(self, *words, **more)  # type: ignore[arg-type]

    trees = made(workspace)
    one = trees.open_blocking(ONE)
    (one / "new").mkdir()
    for name in ("a.txt", "b.txt", "new/e.txt"):
        (one / name).write_text(f"{name} by the agent\n")
    (one / "deep/c.txt").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(WorkTree, "run_blocking", dying)
        with pytest.raises(Killed):
            trees.merge_blocking(ONE, "One", noted.append)
    return one


@pytest.mark.parametrize("has_commit", [False, True])
def test_a_repository_within_a_work_tree_is_named_and_nothing_of_it_is_lost(
    workspace: Path, trees: ConversationTrees, *, has_commit: bool
) -> None:
    one = trees.open_blocking(ONE)
    (one / "a.txt").write_text("one\n")
    (one / "sub").mkdir()
    (one / "sub/f.txt").write_text("mine\n")
    git(one / "sub", "init", "-q")
    if has_commit:
        git(one / "sub", "add", "-A")
        git(one / "sub", "commit", "-q", "-m", "sub")
    changes = trees.changes_blocking(ONE, git(workspace, "rev-parse", "HEAD"))
    assert "a.txt" in [file.path for file in changes.files]
    assert not changes.complete
    with pytest.raises(Conflict) as refused:
        trees.merge_blocking(ONE, "One", unnoted)
    assert refused.value.details == {"files": ["sub"]}
    assert (workspace / "a.txt").read_text() == "a\n"

    shutil.rmtree(one / "sub/.git")

    assert trees.merge_blocking(ONE, "One", unnoted).files == 2
    assert (workspace / "sub/f.txt").read_text() == "mine\n"


def test_a_merge_that_the_agent_began_keeps_both_parents(
    workspace: Path, trees: ConversationTrees
) -> None:
    one = trees.open_blocking(ONE)
    (one / "b.txt").write_text("one\n")
    trees.commit_blocking(ONE, "One")
    (workspace / "a.txt").write_text("mine\n")
    git(workspace, "commit", "-q", "-am", "mine")
    git(one, "merge", "--no-commit", "main")

    trees.commit_blocking(ONE, "Two")

    assert git(one, "log", "-1", "--format=%p").count(" ") == 1
    assert trees.merge_blocking(ONE, "Merge", unnoted).files == 1


def test_git_that_takes_too_long_is_ended(workspace: Path) -> None:
    common = workspace / ".git"
    tree = WorkTree(folder=workspace, git_dir=common, common_dir=common)
    with pytest.raises(GitFailed, match="too long"):
        tree.run_blocking("cat-file", "--batch", timeout_s=0.0)
