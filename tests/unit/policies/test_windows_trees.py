"""What stands in the folders that a Windows command touches: links, protected files, packages."""

from pathlib import Path

from policies.verdict import Allow, Deny, Verdict
from tests.unit.policies.judging import validate_windows_command


def _judge(root: Path, command: str, *, cwd: str | None = None) -> Verdict:
    line = command.replace("{WS}", str(root))
    return validate_windows_command(line, root=root, cwd=cwd or root)


def _rule(root: Path, command: str) -> str:
    verdict = _judge(root, command)
    assert isinstance(verdict, Deny), verdict
    return verdict.rule


def test_what_lands_under_a_protected_name_is_refused(workspace: Path) -> None:
    (workspace / "new").mkdir()
    (workspace / "new" / "CLAUDE.md").write_text("x", encoding="utf-8")
    (workspace / "new" / "settings.json").write_text("x", encoding="utf-8")
    for command in ("copy new docs", "copy new\\* docs", "move new other", "move new .claude"):
        assert isinstance(_judge(workspace, command), Deny), command


def test_links_that_lead_outside_are_refused(workspace: Path) -> None:
    (workspace / "junc").symlink_to("../outdir")
    (workspace / "out.txt").symlink_to("../outside.txt")
    (workspace / "build" / "deep").symlink_to("../../outdir")
    for command in (
        "del junc\\*",
        "del /q JUNC",
        "del junc\\keep.txt",
        "copy a.txt junc\\",
        "copy a.txt junc\\x.txt",
        "copy junc docs",
        "copy out.txt b.txt",
        "copy a.txt out.txt",
        "move junc x",
        "del out.*",
        "del /s /q build\\*.tmp",
        "copy build docs",
    ):
        assert isinstance(_judge(workspace, command), Deny), command


def test_a_file_with_further_names_is_not_overwritten(workspace: Path) -> None:
    (workspace / "shared.txt").hardlink_to(workspace.parent / "outside.txt")
    (workspace / "docs" / "src").mkdir()
    (workspace / "docs" / "src" / "main.py").hardlink_to(workspace / "shared.txt")
    for command in ("copy a.txt shared.txt", "Copy-Item -Recurse src docs"):
        assert _rule(workspace, command) == "hard_link", command
    assert isinstance(_judge(workspace, "copy shared.txt own.txt"), Allow)
    assert isinstance(_judge(workspace, "del shared.txt"), Allow)


def test_a_folder_that_holds_protected_files_is_not_moved(workspace: Path) -> None:
    (workspace / "src" / ".env").write_text("x", encoding="utf-8")
    assert _rule(workspace, "move src other") == "protected_inside"
    assert _rule(workspace, "Copy-Item src docs -Recurse") == "protected_inside"
    assert _rule(workspace, "del src") == "protected_inside"
    (workspace / "docs" / "配置").mkdir()
    (workspace / "docs" / "配置" / "a.pem").write_text("x", encoding="utf-8")
    verdict = _judge(workspace, "move docs other")
    assert "holds 配置\\a.pem, which" in verdict.reason


def test_the_folder_that_the_command_runs_in_stays(workspace: Path) -> None:
    cwd = f"{workspace}\\SRC"
    for command in ("move {WS}\\src docs", "ren {WS}\\src x", "del {WS}\\src"):
        verdict = _judge(workspace, command, cwd=cwd)
        assert isinstance(verdict, Deny)
        assert verdict.rule == "working_directory"
    swept = _judge(workspace, "del *", cwd=cwd)
    assert isinstance(swept, Deny)
    assert swept.rule == "glob_root"
    assert isinstance(_judge(workspace, "del main.py", cwd=cwd), Allow)


def test_folders_of_secrets_are_not_looked_through(workspace: Path) -> None:
    (workspace / ".ssh").mkdir()
    for command in ("copy .ssh\\nothing* docs", "Get-ChildItem .ssh\\*", "Copy-Item .ssh\\n* docs"):
        assert _rule(workspace, command) == "secret_file"


def test_links_must_not_lead_outside_from_where_they_land(workspace: Path) -> None:
    (workspace / "archive" / "2024" / "up").symlink_to("../../a.txt")
    (workspace / "docs" / "beside").symlink_to("readme.md")
    for command in (
        "move archive\\2024\\up .",
        "ren archive\\2024 x",
        "Move-Item archive\\2024 .",
        "Copy-Item archive\\2024 . -Recurse",
    ):
        verdict = _judge(workspace, command)
        expected = "windows_ren" if command.startswith("ren") else "link_turned"
        assert verdict.rule == expected, command
    assert isinstance(_judge(workspace, "move docs papers"), Allow)
