"""What agents are given of a workspace, as it stands now."""

from collections.abc import Callable
from pathlib import Path

import anyio.to_thread
import pytest

from gateway import skills
from gateway.settings import Settings
from gateway.skills import WorkspaceSkills
from gateway.trust import approvals_file, trust_blocking


def lay(workspace: Path, *names: str) -> None:
    for name in names:
        folder = workspace / ".claude/skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("x", encoding="utf-8")


async def in_thread(work: Callable[[], object]) -> None:
    await anyio.to_thread.run_sync(work)


def test_the_skills_are_those_of_the_workspace(tmp_path: Path) -> None:
    """Of which a person approved each."""
    settings = Settings(workspace=tmp_path / "ws", data_dir=tmp_path / "data")
    known = WorkspaceSkills(settings.workspace, approvals_file(settings.data_dir))
    assert known.typed_blocking() == ()
    lay(settings.workspace, "zeta", "alpha")
    (settings.workspace / ".claude/skills/empty").mkdir()
    assert known.typed_blocking() == ()
    trust_blocking(settings)
    assert known.typed_blocking() == ("alpha", "zeta")
    lay(settings.workspace, "later")
    assert known.typed_blocking() == ("alpha", "zeta")
    (settings.workspace / ".claude/skills/alpha/SKILL.md").write_text("y", encoding="utf-8")
    assert known.typed_blocking() == ("zeta",)
    assert known.names_blocking("Agent") == ()
    approvals = approvals_file(settings.data_dir)
    approvals.unlink()
    approvals.mkdir()
    assert known.typed_blocking() == ()


async def test_the_revision_changes_with_what_is_given_and_is_looked_at_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(workspace=tmp_path / "ws", data_dir=tmp_path / "data")
    known = WorkspaceSkills(settings.workspace, approvals_file(settings.data_dir))
    revisions = []
    for step in (
        lambda: None,
        lambda: lay(settings.workspace, "a"),
        lambda: trust_blocking(settings),
    ):
        await in_thread(step)
        await known.refresh()
        revisions.append(known.revision)
    assert len(set(revisions)) == 1
    monkeypatch.setattr(skills, "REFRESH_S", 0.0)
    known = WorkspaceSkills(settings.workspace, approvals_file(settings.data_dir))
    await known.refresh()
    assert known.revision != revisions[0]
    before = known.revision
    await in_thread(lambda: lay(settings.workspace, "not-approved"))
    await known.refresh()
    assert known.revision == before
