"""`GET /skills`: what stands in the workspace, and why agents are not given it."""

from pathlib import Path

import anyio

from gateway import skills
from gateway.settings import Settings
from gateway.trust import trust_blocking
from tests.service.http.stage import staged
from tests.support.engine_world import write

GREET = ".claude/skills/greet/SKILL.md"
TEXT = "---\nname: greet\ndescription: Greets the person.\n---\nSay good morning.\n"


async def test_what_stands_in_the_workspace_is_listed_and_approved_by_its_content(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        workspace = stage.settings.workspace
        settings = Settings(workspace=workspace, data_dir=stage.settings.data_dir)
        write(workspace / GREET, TEXT)
        write(workspace / ".claude/agents/helper.md", "---\nname: helper\n---\nHelp.")
        write(workspace / ".claude/commands/now.md", "---\nallowed-tools: Bash\n---\n")
        write(workspace / "../outside/SKILL.md", TEXT)
        (workspace / ".claude/skills/linked").symlink_to(workspace / "../outside")
        listed = (await stage.client().get("/skills")).json()
        assert listed["truncated"] is False
        told = {item["path"]: (item["problem"], item["acts"]) for item in listed["skills"]}
        assert told == {
            ".claude/agents/helper.md": ("unapproved", []),
            ".claude/commands/now.md": ("acts", ["allowed-tools"]),
            GREET: ("unapproved", []),
            ".claude/skills/linked": ("link", []),
        }
        await anyio.to_thread.run_sync(trust_blocking, settings)
        (greet,) = [
            item
            for item in (await stage.client().get("/skills")).json()["skills"]
            if item["path"] == GREET
        ]
        assert greet == {
            "kind": "skill",
            "name": "greet",
            "description": "Greets the person.",
            "path": GREET,
            "trusted": True,
            "loaded": True,
            "problem": None,
            "acts": [],
        }
        write(workspace / GREET, TEXT + "And good night.")
        (greet,) = [
            item
            for item in (await stage.client().get("/skills")).json()["skills"]
            if item["path"] == GREET
        ]
        assert (greet["trusted"], greet["loaded"], greet["problem"]) == (False, False, "changed")


async def test_the_list_is_bounded_and_approvals_that_cannot_be_read_approve_nothing(
    tmp_path: Path,
) -> None:
    async with staged(tmp_path) as stage:
        for at in range(4):
            description = "x" * 5000
            text = f"---\ndescription: {description}\n---\n"
            write(stage.settings.workspace / f".claude/commands/c{at}.md", text)
        (stage.settings.data_dir / "trusted.json").mkdir()
        listed = (await stage.client().get("/skills")).json()["skills"]
        assert [item["problem"] for item in listed] == ["unapproved"] * 4
        assert len(listed[0]["description"]) < 1100


def test_a_list_that_is_too_long_says_so(tmp_path: Path) -> None:
    for at in range(skills.MAX_LISTED + 1):
        write(tmp_path / f".claude/commands/c{at}.md", "x")
    found = skills.WorkspaceSkills(tmp_path, None).list_blocking()
    assert (len(found.items), found.truncated) == (skills.MAX_LISTED, True)
