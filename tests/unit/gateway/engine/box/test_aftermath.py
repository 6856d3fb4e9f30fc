"""What a command left is taken away."""

from pathlib import Path

import pytest

from gateway.engine.box.aftermath import restore_blocking
from gateway.engine.box.search import Protected, Searcher

COUNT = 300


class Watched(Protected):
    """A protected entry that counts how often it is compared."""

    compared = 0
    __hash__ = Protected.__hash__

    def __eq__(self, other: object) -> bool:
        Watched.compared += 1
        return super().__eq__(other)


def test_the_entries_are_not_compared_with_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command can leave 200,000 of them."""
    for number in range(COUNT):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}/CLAUDE.md").touch()
    monkeypatch.setattr("gateway.engine.box.search.Protected", Watched)
    after, _ = Searcher(tmp_path).search_blocking()
    assert len(restore_blocking(tmp_path, (), after, at="/at").removed) == COUNT
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    assert Watched.compared <= COUNT


def test_a_new_folder_of_secrets_is_no_root_of_a_workspace(tmp_path: Path) -> None:
    for name in (
        "logs",
        ".candor-worktrees/x",
        "CLAUDE.md",
        "logs/.vscode",
        "k.pem/logs/.mcp.json",
    ):
        (tmp_path / ".aws" / name).mkdir(parents=True)
    after, _ = Searcher(tmp_path).search_blocking()
    removed = restore_blocking(tmp_path, (), after, at="/at").removed
    assert sorted(removed) == [".aws/CLAUDE.md", ".aws/k.pem/logs/.mcp.json", ".aws/logs/.vscode"]
    assert (tmp_path / ".aws/.candor-worktrees/x").is_dir()
