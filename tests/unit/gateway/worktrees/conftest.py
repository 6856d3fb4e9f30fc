"""A work tree of the workspace of the test's module, with the object folder of its box."""

from pathlib import Path

import pytest

from gateway.worktrees.worktrees import ConversationTrees

ONE = "cnv_one"


def unnoted(_: str | None) -> None:
    """Keep nothing of a merge that nobody kills."""


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
