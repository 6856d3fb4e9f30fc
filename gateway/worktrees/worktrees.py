"""Work trees of conversations: made, looked at, merged, thrown away, repaired.

    WORKSPACE/.candor-worktrees/ID       the folder that the conversation's agent works in
    branch candor/ID                     what was committed of it

Which conversations have one is known to the database, and so is a merge that has begun to change
the workspace's files. Each step leaves a state that the next use, or `repair_blocking`, brings to
an end; a merge into files that a person changed meanwhile is undone. A branch that is missing says
that its work tree was thrown away. Everything here blocks, and one call at a time may run for a
workspace.
"""

import json
import logging
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.atomic import write_atomically_blocking
from gateway.errors import Conflict
from gateway.files.snapshot import FileChanges
from gateway.trust import OWN_SKILLS, WORKTREES
from gateway.worktrees.changes import read_changes_blocking
from gateway.worktrees.git import GitFailed, WorkTree
from gateway.worktrees.interrupted_merge import InterruptedMerge, delete_blocking
from policies.paths.protected import find_acting, find_secret

_log = logging.getLogger(__name__)

Note = Callable[[str | None], None]

MOST_NAMED: Final = 50
"""Files that an error names."""
_NAME: Final = re.compile(r"cnv_[a-z0-9]{1,64}")
_READY: Final = "candor-ready"
"""In a work tree's part of the repository: it was made whole."""
_QUOTED: Final = re.compile(r"^error: .*?'(.+?)'", re.MULTILINE)
_LISTED: Final = re.compile(r"^\t(.+)$", re.MULTILINE)
_EXCLUDED: Final = (
    f"/{WORKTREES}/",
    "/memory/README.md",
    "/uploads/",
    "/.claude/skills/.candor.json",
    *(f"/.claude/skills/{skill.parent.name}/" for skill in sorted(OWN_SKILLS.glob("*/SKILL.md"))),
)
"""What the gateway itself puts into a folder, uploads too; no commit takes it along."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A merge that is done."""

    commit: str
    files: int
    """That differ in the workspace now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeStatus:
    """A conversation's work tree beside the workspace's branch."""

    branch: str
    target: str | None
    """The branch that the workspace is on; None: on none."""
    base: str
    """The commit that both come from."""


class ConversationTrees:
    """The work trees of one workspace."""

    def __init__(self, workspace: Path, own_dir: Path, prepare: Callable[[Path], None]) -> None:
        """Initialise; `prepare` puts into a new folder what each workspace has. `own_dir` is where
        this server keeps an index for a moment.
        """
        self._root = workspace
        self._own_dir = own_dir
        self._prepare = prepare
        git_dir = workspace / ".git"
        self._main = WorkTree(folder=workspace, git_dir=git_dir, common_dir=git_dir)

    def folder(self, conversation_id: str) -> Path:
        """Return where the work tree of a conversation is, or would be."""
        return self._root / WORKTREES / conversation_id

    def may_begin_blocking(self, conversation_id: str) -> bool:
        """Return whether a conversation can have a work tree: the workspace is a repository with a
        commit.
        """
        return _NAME.fullmatch(conversation_id) is not None and self._has_commit()

    def open_blocking(self, conversation_id: str) -> Path:
        """Return the folder of a conversation's work tree, which is made if it is missing.

        Raise `GitFailed` or `OSError` if it cannot be made.
        """
        tree = self._tree(conversation_id)
        if (tree.git_dir / _READY).exists() and tree.folder.is_dir():
            return tree.folder
        self._exclude()
        self._remove(tree)
        branch = _branch(conversation_id)
        new = () if self._commit_of(branch) else ("-b", branch)
        start = "HEAD" if new else branch
        tree.folder.parent.mkdir(exist_ok=True)
        self._main.run_blocking("worktree", "add", "-q", *new, str(tree.folder), start)
        self._prepare(tree.folder)
        (tree.git_dir / _READY).touch()
        return tree.folder

    def status_blocking(self, conversation_id: str) -> TreeStatus | None:
        """Return the state of a conversation's work tree; None: it has none now."""
        branch = _branch(conversation_id)
        if not (self._tree(conversation_id).git_dir / _READY).exists():
            return None
        commit = self._commit_of(branch)
        if commit is None:
            return None
        base = self._main.run_blocking("merge-base", "HEAD", commit).decode().strip()
        return TreeStatus(branch=branch, target=self._target(), base=base)

    def changes_blocking(self, conversation_id: str, base: str) -> FileChanges:
        """Return how the files of a work tree differ from a commit; nothing is changed."""
        tree, index = self._tree(conversation_id), self._index(conversation_id)
        try:
            shutil.copyfile(tree.git_dir / "index", index)
            tree.run_blocking("add", "-A", index=index)
            words = ("diff", "--cached", "--no-ext-diff", "--no-textconv", "--raw", "--no-abbrev")
            raw = tree.run_blocking(*words, "-z", "-M", base, index=index)
            return read_changes_blocking(tree, raw)
        finally:
            index.unlink(missing_ok=True)

    def commit_blocking(self, conversation_id: str, message: str) -> str:
        """Commit what is not committed of a work tree; return its last commit."""
        tree = self._tree(conversation_id)
        tree.run_blocking("add", "-A")
        if tree.run_blocking("diff", "--cached", "--name-only", "-z", "HEAD"):
            tree.run_blocking("commit", "-q", "--no-verify", "-F", "-", given=message.encode())
        return tree.run_blocking("rev-parse", "HEAD").decode().strip()

    def merge_blocking(self, conversation_id: str, message: str, note: Note) -> Merged:
        """Merge a conversation's branch into the branch that the workspace is on.

        What is not committed in the work tree is committed first. `note` is called before the
        workspace changes, with what it takes to repair that, and with None when it has changed.
        Raise `Conflict`, and change nothing in the workspace, if both changed the same, a changed
        file of the workspace is in the way, or a file that is protected would change; it names the
        files.
        """
        target = self._target()
        if target is None:
            raise Conflict("The workspace is on no branch.", code="no_branch")
        theirs = self.commit_blocking(conversation_id, message)
        head = self._head()
        commit = self._merge_commit(head, theirs, message)
        changed = self._changed(head, commit)
        _refuse_protected(path for path, _ in changed)
        if commit != head:
            self._check_unchanged(head, commit)
            step = {"head": head, "commit": commit, "branch": target}
            note(json.dumps(step))
            self._apply(head, commit, changed)
            note(None)
        tree = self._tree(conversation_id)
        tree.run_blocking("read-tree", "-m", "-u", "HEAD", commit)
        tree.run_blocking("update-ref", "HEAD", commit)
        return Merged(commit=commit, files=len(changed))

    def discard_blocking(self, conversation_id: str) -> None:
        """Throw a work tree away with all that is in it; the next turn makes a new one."""
        with suppress(GitFailed):
            self._main.run_blocking("update-ref", "-d", f"refs/heads/{_branch(conversation_id)}")
        self._remove(self._tree(conversation_id))

    def end_blocking(self, conversation_id: str, message: str) -> str | None:
        """Remove a work tree for good; return the branch that keeps what was not merged, if any."""
        branch = _branch(conversation_id)
        tree = self._tree(conversation_id)
        if self._commit_of(branch) and (tree.git_dir / _READY).exists():
            self.commit_blocking(conversation_id, message)
        self._remove(tree)
        commit = self._commit_of(branch)
        if commit and self._is_merged(commit):
            self._main.run_blocking("update-ref", "-d", f"refs/heads/{branch}", commit)
            commit = None
        return branch if commit else None

    def repair_blocking(self, conversation_id: str, merging: str | None) -> None:
        """Bring to an end what a server that was killed had begun; `merging` is what `note` of
        `merge_blocking` was called with last.
        """
        if merging is not None:
            self._end_merge(conversation_id, **json.loads(merging))
        if self._commit_of(_branch(conversation_id)) is None:  # it was being thrown away
            self._remove(self._tree(conversation_id))

    def _end_merge(self, conversation_id: str, head: str, commit: str, branch: str = "") -> None:
        """End a merge, or undo it if a person has changed a file of it since or left the branch."""
        if self._head() != head:
            return
        index = self._index(conversation_id)
        merge = InterruptedMerge(self._main, head, commit, index)
        changed = merge.changed_blocking()
        if not changed and branch in {"", self._target()}:
            self._apply(head, commit, self._changed(head, commit))
            return
        merge.undo_blocking(changed)
        _log.warning("merge_undone", extra={"changed_meanwhile": changed[:MOST_NAMED]})

    def _merge_commit(self, head: str, theirs: str, message: str) -> str:
        if self._is_merged(theirs):
            return head
        words = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z")
        try:
            told = self._main.run_blocking(*words, head, theirs)
        except GitFailed as exc:
            if exc.code != 1:
                raise
            names = exc.output.decode(errors="replace").split("\0")[1:]
            raise _conflict("Both sides changed the same files.", names) from exc
        if self._main.run_blocking("merge-base", head, theirs).decode().strip() == head:
            return theirs
        tree, parents = told.decode().split("\0")[0], ("-p", head, "-p", theirs)
        made = self._main.run_blocking("commit-tree", tree, *parents, given=message.encode())
        return made.decode().strip()

    def _check_unchanged(self, head: str, commit: str) -> None:
        try:
            self._main.run_blocking("update-index", "-q", "--refresh")
        except GitFailed as exc:
            if exc.code != 1:  # some differ
                raise
        try:
            self._main.run_blocking("read-tree", "-n", "-m", "-u", head, commit)
        except GitFailed as exc:
            names = _QUOTED.findall(exc.errors) or _LISTED.findall(exc.errors)
            told = "Files of the workspace that are not committed are in the way."
            raise _conflict(told, names) from exc

    def _apply(self, head: str, commit: str, changed: Sequence[tuple[str, bool]]) -> None:
        """Bring index, files and branch of the workspace to a commit. May be done again."""
        self._main.run_blocking("read-tree", "-i", "-m", head, commit)
        present = "\0".join(path for path, is_there in changed if is_there)
        self._main.run_blocking(
            "checkout-index",
            "-f",
            "-q",
            "-u",
            "-z",
            "--stdin",
            given=present.encode(errors="surrogateescape"),
        )
        for path, is_there in changed:
            if not is_there:
                delete_blocking(self._root, path.split("/"))
        self._main.run_blocking("update-ref", "-m", "candor: merge", "HEAD", commit, head)

    def _changed(self, before: str, after: str) -> list[tuple[str, bool]]:
        """Return the paths that differ between commits, and whether each is in the later one."""
        words = ("diff-tree", "-r", "-z", "--name-status", "--no-renames", before, after)
        told = self._main.run_blocking(*words).decode(errors="surrogateescape").split("\0")
        return [(path, kind != "D") for kind, path in zip(told[::2], told[1::2], strict=False)]

    def _tree(self, conversation_id: str) -> WorkTree:
        """Return a work tree by the names that it has; the files by which git finds its parts are
        set right, because a command may have changed them.
        """
        common, folder = self._main.common_dir, self.folder(conversation_id)
        git_dir = common / "worktrees" / conversation_id
        if (git_dir / _READY).exists() and folder.is_dir():
            _set(git_dir / "commondir", "../..")
            _set(git_dir / "gitdir", f"{folder}/.git")
            _set(git_dir / "HEAD", f"ref: refs/heads/{_branch(conversation_id)}")
            _set(folder / ".git", f"gitdir: {git_dir}")
        return WorkTree(folder=folder, git_dir=git_dir, common_dir=common)

    def _remove(self, tree: WorkTree) -> None:
        (tree.git_dir / _READY).unlink(missing_ok=True)
        shutil.rmtree(tree.folder, ignore_errors=True)
        shutil.rmtree(tree.git_dir, ignore_errors=True)

    def _exclude(self) -> None:
        file = self._main.common_dir / "info" / "exclude"
        known = file.read_text("utf-8", "surrogateescape") if file.exists() else ""
        missing = [line for line in _EXCLUDED if line not in known.split("\n")]
        if missing:
            file.parent.mkdir(exist_ok=True)
            text = "\n".join((known.rstrip("\n"), *missing)).lstrip("\n")
            write_atomically_blocking(file, f"{text}\n".encode("utf-8", "surrogateescape"))

    def _has_commit(self) -> bool:
        git_dir = self._main.git_dir
        if git_dir.is_symlink() or not git_dir.is_dir():
            return False
        return self._commit_of("HEAD", is_branch=False) is not None

    def _commit_of(self, name: str, *, is_branch: bool = True) -> str | None:
        ref = f"refs/heads/{name}" if is_branch else name
        try:
            words = ("rev-parse", "-q", "--verify", f"{ref}^{{commit}}")
            return self._main.run_blocking(*words).decode().strip()
        except GitFailed as exc:
            if exc.code != 1:
                raise
            return None

    def _head(self) -> str:
        return self._main.run_blocking("rev-parse", "HEAD").decode().strip()

    def _target(self) -> str | None:
        try:
            return self._main.run_blocking("symbolic-ref", "-q", "--short", "HEAD").decode().strip()
        except GitFailed:
            return None

    def _is_merged(self, commit: str) -> bool:
        try:
            self._main.run_blocking("merge-base", "--is-ancestor", commit, "HEAD")
        except GitFailed as exc:
            if exc.code != 1:
                raise
            return False
        return True

    def _index(self, conversation_id: str) -> Path:
        self._own_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._own_dir / f"{conversation_id}.index"


def read_kept_blocking(folder: Path) -> Mapping[Path, str | None]:
    """Return the files with which an earlier release marked conversations that have a work tree, by
    whose ids they are named, each with its merge that has not ended.
    """
    marks = [path for path in sorted(folder.glob("cnv_*")) if _NAME.fullmatch(path.name)]
    journals = [mark.with_suffix(".merge") for mark in marks]
    merging = [journal.read_text("utf-8") if journal.exists() else None for journal in journals]
    return dict(zip(marks, merging, strict=True))


def remove_kept_blocking(marks: Iterable[Path]) -> None:
    """Remove files that `read_kept_blocking` has read."""
    for mark in marks:
        mark.with_suffix(".merge").unlink(missing_ok=True)
        mark.unlink()


def _set(file: Path, line: str) -> None:
    wanted = f"{line}\n".encode()
    if file.is_symlink() or not file.is_file() or file.read_bytes() != wanted:
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        write_atomically_blocking(file, wanted)


def _branch(conversation_id: str) -> str:
    return f"candor/{conversation_id}"


def _refuse_protected(paths: Iterable[str]) -> None:
    """Raise `Conflict` if a file that agents may not write would change: a command may have
    committed it past the policy.
    """
    names = [path for path in paths if find_acting(p := path.split("/")) or find_secret(p)]
    if names:
        raise _conflict("Protected files were changed; merge them yourself.", names)


def _conflict(sentence: str, names: Sequence[str]) -> Conflict:
    files = sorted({name for name in names if name})
    shown = [name.encode(errors="replace").decode() for name in files[:MOST_NAMED]]
    return Conflict(sentence, code="merge_conflict", details={"files": shown})
