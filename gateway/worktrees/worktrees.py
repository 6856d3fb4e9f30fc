"""Work trees of conversations: made, looked at, merged, thrown away, repaired.

    WORKSPACE/.candor-worktrees/ID       the folder that the conversation's agent works in
    branch candor/ID                     what was committed of it

Which conversations have one is known to the database, and so is a merge that has begun to change
the workspace's files. Each step leaves a state that the next use, or `repair_blocking`, brings to
an end; a merge into files that a person changed meanwhile is undone. A work tree without its mark
was not made whole, or is being thrown away. Everything here blocks, and one call at a time may run
for a workspace.
"""

import json
import logging
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from gateway.errors import Conflict
from gateway.files.snapshot import FileChanges
from gateway.trust import OWN_SKILLS, WORKTREES
from gateway.worktrees.branches import OBJECT, Branches, branch_of, own_parts
from gateway.worktrees.changes import find_links, find_new_repositories, read_changes_blocking
from gateway.worktrees.git import GitFailed, WorkTree
from gateway.worktrees.index import add_all_blocking, overwritten_blocking, skipped_blocking
from gateway.worktrees.interrupted_merge import InterruptedMerge, delete_blocking
from gateway.worktrees.objects import has_new, take_in_blocking
from gateway.worktrees.repository_files import RepositoryFiles
from policies.paths.protected import (
    IN_REPOSITORY,
    find_acting,
    find_repository_parts,
    find_secret,
    may_hold_acting,
)

_log = logging.getLogger(__name__)

Note = Callable[[str | None], None]
Enclose = Callable[[Path, Path], Sequence[str]]
"""Returns bubblewrap with the mounts of a box for git in the two folders."""

MOST_NAMED: Final = 50
"""Files that an error names."""
NAME: Final = re.compile(r"cnv_[a-z0-9]{1,64}")
"""Of a conversation."""
_READY: Final = "candor-ready"
"""In a work tree's part of the repository: it was made whole."""
_LOCK: Final = (".git", "index.lock")
_LOCKED: Final = (
    "Another git changes the workspace, or was killed and left .git/index.lock;"
    " if none runs, remove that file."
)
_QUOTED: Final = re.compile(r"^error: .*?'(.+?)'", re.MULTILINE)
_MOST_PARENTS: Final = 16
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

    def __init__(
        self,
        workspace: Path,
        own_dir: Path,
        prepare: Callable[[Path], None],
        enclose: Enclose | None = None,
    ) -> None:
        """Initialise; `prepare` puts into a new folder what each workspace has. `own_dir` is where
        this server keeps an index for a moment. `enclose` is for repositories that commands write.
        """
        self._root = workspace
        self._own_dir = own_dir
        self._prepare = prepare
        self._files = RepositoryFiles(workspace)
        git_dir = workspace / ".git"
        self._main = WorkTree(
            folder=workspace,
            git_dir=git_dir,
            common_dir=git_dir,
            enclosed_in=enclose(workspace, own_dir) if enclose else (),
        )
        self._branches = Branches(self._main, self._files, workspace)

    def folder(self, conversation_id: str) -> Path:
        """Return where the work tree of a conversation is, or would be."""
        return self._root / WORKTREES / conversation_id

    def may_begin_blocking(self, conversation_id: str) -> bool:
        """Return whether a conversation can have a work tree: the workspace is a repository with a
        commit.
        """
        return NAME.fullmatch(conversation_id) is not None and self._has_commit()

    def open_blocking(self, conversation_id: str) -> Path:
        """Return the folder of a conversation's work tree, which is made if it is missing.

        Raise `GitFailed` or `OSError` if it cannot be made.
        """
        folder, commit = self.folder(conversation_id), self._mended(conversation_id)
        if self._is_whole(conversation_id):
            return folder
        self._exclude()
        self._remove(conversation_id)
        branch = branch_of(conversation_id)
        new = () if commit is not None else ("-b", branch)
        start = "HEAD" if new else branch
        folder.parent.mkdir(exist_ok=True)
        self._main.run_blocking("worktree", "add", "-q", *new, str(folder), start)
        own = (*own_parts(conversation_id), "config.worktree")
        sparse = self._main.sparse_settings_blocking()
        if sparse and not self._files.has_file(own):  # git in its box does not copy them
            self._files.write(own, sparse)
        self._prepare(folder)
        self._files.write((*own_parts(conversation_id), _READY), b"")
        return folder

    def has_blocking(self, conversation_id: str) -> bool:
        """Return whether there is something of a work tree, whatever its state is."""
        if self._has_files(conversation_id):
            return True
        is_repository = self._files.has_folder((".git",))
        return is_repository and self._branches.named(conversation_id) is not None

    def has_new_blocking(self, conversation_id: str) -> bool:
        """Return whether commands made objects which the repository may not have yet."""
        return has_new(self._files, own_parts(conversation_id))

    def take_in_blocking(self, conversation_id: str) -> None:
        """Take into the repository what commands committed in a work tree.

        Raise `GitFailed` or `OSError` if that cannot be done now; nothing is lost then.
        """
        take_in_blocking(self._main, self._files, own_parts(conversation_id))

    def status_blocking(self, conversation_id: str) -> TreeStatus | None:
        """Return the state of a conversation's work tree; None: it has none now.

        Nothing is mended, because a command may be committing meanwhile: a tree whose last commit
        is gone is compared with the workspace's.
        """
        self._tree(conversation_id)
        if not self._files.has_file((*own_parts(conversation_id), _READY)):
            return None
        named, is_whole = self._branches.state(conversation_id)
        commit = named if named and is_whole else "HEAD"
        base = self._main.run_blocking("merge-base", "HEAD", commit).decode().strip()
        branch = branch_of(conversation_id)
        return TreeStatus(branch=branch, target=self._target(), base=base)

    def changes_blocking(self, conversation_id: str, base: str) -> FileChanges:
        """Return how the files of a work tree differ from a commit; nothing is changed.

        What a repository within it holds is not among them.
        """
        tree, index = self._tree(conversation_id), self._index(conversation_id)
        try:
            named, is_whole = self._branches.state(conversation_id)
            if named is None or is_whole:
                self._files.copy((*own_parts(conversation_id), "index"), index)
            else:  # its index may name what is gone, too
                tree.run_blocking("read-tree", base, index=index)
            untaken = add_all_blocking(tree, index)
            words = ("diff", "--cached", "--no-ext-diff", "--no-textconv", "--raw", "--no-abbrev")
            raw = tree.run_blocking(*words, "-z", "-M", base, index=index)
            untaken += find_new_repositories(raw)
            changes = read_changes_blocking(tree, raw)
            return replace(changes, complete=changes.complete and not untaken)
        finally:
            index.unlink(missing_ok=True)

    def commit_blocking(self, conversation_id: str, message: str) -> str:
        """Commit what is not committed of a work tree, in which no command runs; return its last
        commit.

        Raise `Conflict` if it holds a repository of its own, whose files no commit can take along.
        """
        tree = self._tree(conversation_id)
        self._branches.unlock(conversation_id)
        self._files.remove((*own_parts(conversation_id), "index.lock"))
        untaken = add_all_blocking(tree)
        head = self._head(tree)
        changed = tree.run_blocking("diff", "--cached", "--raw", "--no-renames", "-z", head)
        nested = find_new_repositories(changed)
        if nested:  # once they are plain folders, their files are taken in
            given = "\0".join(nested).encode(errors="surrogateescape")
            tree.run_blocking("update-index", "--force-remove", "-z", "--stdin", given=given)
        untaken += nested
        if untaken:
            raise _conflict(
                "Folders that are repositories of their own cannot be merged: remove their .git,"
                " or merge them yourself.",
                untaken,
            )
        merged = self._merged_heads(conversation_id)
        if not changed and not merged:
            return head
        # not `git commit`, which writes to more places that a command may have put links at
        root = tree.run_blocking("write-tree").decode().strip()
        parents = [word for parent in (head, *merged) for word in ("-p", parent)]
        made = tree.run_blocking("commit-tree", root, *parents, given=message.encode())
        commit = made.decode().strip()
        self._branches.set_to(conversation_id, commit, head)
        self._files.remove((*own_parts(conversation_id), "MERGE_HEAD"))
        return commit

    def merge_blocking(self, conversation_id: str, message: str, note: Note) -> Merged:
        """Merge a conversation's branch into the branch that the workspace is on.

        What is not committed in the work tree is committed first. `note` is called before the
        workspace changes, with what it takes to repair that, and with None when it has changed.
        Raise `Conflict`, and change nothing in the workspace, if both changed the same, a changed
        file of the workspace is in the way, or a file that is protected would change; it names the
        files. So it does if the index is locked. Raise `GitFailed` if the branch changes meanwhile;
        the next merge takes that in.
        """
        target = self._target()
        if target is None:
            raise Conflict("The workspace is on no branch.", code="no_branch")
        if self._files.has_file(_LOCK):
            raise Conflict(_LOCKED, code="workspace_busy")
        self._mended(conversation_id)
        theirs = self.commit_blocking(conversation_id, message)
        head = self._head()
        commit = self._merge_commit(head, theirs, message)
        changed = self._changed(head, commit)
        self._refuse_protected([path for path, _ in changed], head, commit)
        if commit != head:
            self._check_unchanged(head, commit)
            step = {"head": head, "commit": commit, "branch": target}
            note(json.dumps(step))
            self._apply(head, commit, changed)
            note(None)
        tree = self._tree(conversation_id)
        tree.run_blocking("read-tree", "-m", "-u", "--no-sparse-checkout", theirs, commit)
        self._branches.set_to(conversation_id, commit, theirs)
        return Merged(commit=commit, files=len(changed))

    def discard_blocking(self, conversation_id: str) -> None:
        """Throw a work tree away with all that is in it; the next turn makes a new one.

        Raise `OSError` if files of it are left, and `GitFailed` if its branch is.
        """
        self._files.remove((*own_parts(conversation_id), _READY))
        self._branches.unlock(conversation_id)
        try:
            if not self._is_on(conversation_id):
                self._branches.delete(conversation_id)
        finally:
            self._remove(conversation_id)
        if self._has_files(conversation_id):
            raise FileExistsError(self.folder(conversation_id))

    def end_blocking(self, conversation_id: str, message: str) -> str | None:
        """Remove a work tree for good; return the branch that keeps what was not merged, if any."""
        branch = branch_of(conversation_id)
        if self._mended(conversation_id) and self._files.has_file(
            (*own_parts(conversation_id), _READY)
        ):
            self.commit_blocking(conversation_id, message)
        self._remove(conversation_id)
        commit = self._branches.commit(conversation_id)
        if commit and not self._is_on(conversation_id) and self._is_merged(commit):
            self._branches.delete(conversation_id, commit)
            commit = None
        return branch if commit else None

    def repair_blocking(self, conversation_id: str, merging: str | None) -> None:
        """Bring to an end what a server that was killed had begun; `merging` is what `note` of
        `merge_blocking` was called with last.
        """
        if merging is not None:
            self._end_merge(conversation_id, **json.loads(merging))
        is_marked = self._files.has_file((*own_parts(conversation_id), _READY))
        if not is_marked and self._branches.named(conversation_id) is None:
            self._remove(conversation_id)  # it was being thrown away

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

    def _refuse_protected(self, changed: Sequence[str], head: str, commit: str) -> None:
        """Raise `Conflict` if a file that agents may not write would change: a command may have
        committed it past the policy.
        """
        names = [path for path in changed if find_acting(p := path.split("/")) or find_secret(p)]
        names += find_repository_parts(changed, partial(self._paths, commit, {*changed}))
        raw = self._main.run_blocking("diff-tree", "-r", "-z", "--no-renames", head, commit)
        names += [path for path in find_links(raw) if may_hold_acting(path.rpartition("/")[2])]
        if names:
            raise _conflict("Protected files were changed; merge them yourself.", names)

    def _paths(self, commit: str, changed: Collection[str]) -> Iterator[str]:
        """Yield the paths of a commit, and what else stands in the workspace beside the changed
        ones that makes a folder a repository.
        """
        told = self._main.run_blocking("ls-tree", "-r", "-t", "-z", "--name-only", commit)
        yield from told.decode(errors="surrogateescape").split("\0")
        for folder in {folder for path in changed for folder in PurePosixPath(path).parents}:
            beside = {f"{folder}/{name}" for name in IN_REPOSITORY}.difference(changed)
            yield from (path for path in beside if os.path.lexists(self._root / path))

    def _check_unchanged(self, head: str, commit: str) -> None:
        try:
            self._main.run_blocking("update-index", "-q", "--refresh")
        except GitFailed as exc:
            if exc.code != 1:  # some differ
                raise
        told = "Files of the workspace that are not committed are in the way."
        try:
            words = ("read-tree", "-n", "-m", "-u", "--no-sparse-checkout")
            self._main.run_blocking(*words, head, commit)
        except GitFailed as exc:
            names = _QUOTED.findall(exc.errors) or _LISTED.findall(exc.errors)
            raise _conflict(told, names) from exc
        if ignored := overwritten_blocking(self._main, head, commit):  # which git replaces
            raise _conflict(told, ignored)

    def _apply(self, head: str, commit: str, changed: Sequence[tuple[str, bool]]) -> None:
        """Bring index, files and branch of the workspace to a commit. May be done again."""
        self._main.run_blocking("read-tree", "-i", "-m", head, commit)
        skipped = skipped_blocking(self._main)
        present = "\0".join(path for path, is_there in changed if is_there and path not in skipped)
        self._main.run_blocking(
            "checkout-index",
            "-f",
            "-q",
            "-u",
            "--ignore-skip-worktree-bits",
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
        self._branches.open_folder(conversation_id)
        for place in (own_parts(conversation_id), (WORKTREES, conversation_id)):
            self._files.make_changeable(place)
        self.take_in_blocking(conversation_id)
        common, folder = self._main.common_dir, self.folder(conversation_id)
        git_dir = common / "worktrees" / conversation_id
        tree = replace(self._main, folder=folder, git_dir=git_dir)
        if self._is_whole(conversation_id):
            own = own_parts(conversation_id)
            self._set((*own, "commondir"), "../..")
            self._set((*own, "gitdir"), f"{folder}/.git")
            self._set((*own, "HEAD"), f"ref: refs/heads/{branch_of(conversation_id)}")
            self._set((WORKTREES, conversation_id, ".git"), f"gitdir: {git_dir}")
            self._branches.make_plain(conversation_id)
        return tree

    def _has_files(self, conversation_id: str) -> bool:
        places = (self.folder(conversation_id), self._root.joinpath(*own_parts(conversation_id)))
        return any(map(os.path.lexists, places))

    def _is_whole(self, conversation_id: str) -> bool:
        return self._files.has_file(
            (*own_parts(conversation_id), _READY)
        ) and self._files.has_folder((WORKTREES, conversation_id))

    def _set(self, parts: Sequence[str], line: str) -> None:
        wanted = f"{line}\n".encode()
        if self._files.read(parts) != wanted:
            self._files.write(parts, wanted)

    def _mended(self, conversation_id: str) -> str | None:
        """Return the last commit of a branch, which is mended; None: there is no branch."""
        tree = self._tree(conversation_id)
        is_whole = self._is_whole(conversation_id)
        return self._branches.mended(conversation_id, tree if is_whole else None)

    def _merged_heads(self, conversation_id: str) -> list[str]:
        """Return the commits that a command was merging into the work tree."""
        told = self._files.read((*own_parts(conversation_id), "MERGE_HEAD")) or b""
        lines = told.split(b"\n")[:_MOST_PARENTS]
        return [line.decode() for line in lines if OBJECT.fullmatch(line)]

    def _remove(self, conversation_id: str) -> None:
        self._files.remove((*own_parts(conversation_id), _READY))
        self._files.remove((WORKTREES, conversation_id))
        self._files.remove(own_parts(conversation_id))

    def _exclude(self) -> None:
        place = (".git", "info", "exclude")
        content = self._files.read(place)
        if content is None and os.path.lexists(self._root.joinpath(*place)):
            return  # a person's link
        known = (content or b"").decode("utf-8", "surrogateescape")
        missing = [line for line in _EXCLUDED if line not in known.split("\n")]
        if missing:
            text = "\n".join((known.rstrip("\n"), *missing)).lstrip("\n")
            self._files.write(place, f"{text}\n".encode("utf-8", "surrogateescape"))

    def _has_commit(self) -> bool:
        return self._files.has_folder((".git",)) and self._branches.commit_of("HEAD") is not None

    def _head(self, tree: WorkTree | None = None) -> str:
        return (tree or self._main).run_blocking("rev-parse", "HEAD").decode().strip()

    def _target(self) -> str | None:
        try:
            return self._main.run_blocking("symbolic-ref", "-q", "--short", "HEAD").decode().strip()
        except GitFailed:
            return None

    def _is_on(self, conversation_id: str) -> bool:
        """Return whether a person works in the workspace on the branch of a conversation."""
        return self._target() == branch_of(conversation_id)

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


def _conflict(sentence: str, names: Sequence[str]) -> Conflict:
    files = sorted({name for name in names if name})
    shown = [name.encode(errors="replace").decode() for name in files[:MOST_NAMED]]
    return Conflict(sentence, code="merge_conflict", details={"files": shown})
