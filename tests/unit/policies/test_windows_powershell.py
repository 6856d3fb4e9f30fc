"""PowerShell's commands, and folders that Windows commands move or copy."""

from pathlib import Path

from policies.verdict import Allow, CommandApproval, Deny, Verdict
from policies.windows.judge import KNOWN_COMMANDS, Shell, judge_windows_command
from policies.windows.workspace import WindowsWorkspace
from tests.support.tables import read_pairs, read_table_text
from tests.unit.policies.judging import find_misses, read_list, validate_windows_command


def _judge(root: Path, command: str, *, shell: Shell = "any", cwd: str | None = None) -> Verdict:
    line = command.replace("{WS}", str(root))
    return validate_windows_command(line, root=root, cwd=cwd or root, shell=shell)


def _runs(root: Path, command: str) -> str:
    verdict = _judge(root, command)
    assert isinstance(verdict, Allow), verdict
    assert verdict.updated_input is not None
    line = str(verdict.updated_input["command"])
    assert _judge(root, line, shell="powershell") == verdict
    return line


def _rule(root: Path, command: str) -> str:
    verdict = _judge(root, command)
    assert isinstance(verdict, Deny), verdict
    return verdict.rule


RUNS = read_pairs("windows-powershell-runs")


def test_plain_commands_run_with_every_parameter_named(shared_workspace: Path) -> None:
    assert {command: _runs(shared_workspace, command) for command in RUNS} == RUNS
    _runs(shared_workspace, "Get-ChildItem -LiteralPath {WS}")


REFUSED = read_table_text("windows-powershell-refused")


def test_everything_else_is_refused_by_name(shared_workspace: Path) -> None:
    assert find_misses(REFUSED, lambda line: _judge(shared_workspace, line)) == []


ROOT = r"""
workspace_root: Remove-Item . ¦ Remove-Item -Recurse -Force {WS} ¦ Remove-Item -LiteralPath '{WS}\' ¦ Remove-Item src\..\
    ¦ Remove-Item a.txt,{WS} ¦ Move-Item {WS} docs ¦ Move-Item . docs
"""


def test_taking_the_workspace_itself_away_ends_the_run(shared_workspace: Path) -> None:
    assert find_misses(ROOT, lambda line: _judge(shared_workspace, line)) == []
    verdict = _judge(shared_workspace, "Remove-Item .")
    assert isinstance(verdict, Deny)
    assert verdict.interrupt


def test_the_names_of_cmd_are_aliases_where_powershell_alone_gets_the_line(
    shared_workspace: Path,
) -> None:
    for command in ("del a.txt", "MOVE a.txt b.txt", "copy a.txt b.txt", "ren a.txt b.txt"):
        verdict = _judge(shared_workspace, command, shell="powershell")
        assert isinstance(verdict, Deny)
        assert verdict.rule == "alias"


def test_only_listing_changes_nothing(shared_workspace: Path) -> None:
    commands = ("Get-ChildItem", "New-Item x", "Copy-Item a.txt x", "Remove-Item a.txt")
    verdicts = [_judge(shared_workspace, command) for command in commands]
    assert [v.changes for v in verdicts if isinstance(v, Allow)] == [False, True, True, True]


def test_what_a_command_touches_is_told(shared_workspace: Path) -> None:
    def touched(command: str) -> set[str]:
        judged = judge_windows_command(
            command, WindowsWorkspace(shared_workspace, shared_workspace), KNOWN_COMMANDS
        )
        assert isinstance(judged, CommandApproval), judged
        return {Path(path).relative_to(shared_workspace).as_posix() for path in judged.paths}

    assert touched("del a.txt b.txt") == {"a.txt", "b.txt"}
    assert touched("copy data\\*.csv archive") == {"data/1.csv", "data/2.csv", "archive"}
    assert touched("ren data\\1.csv 1.txt") >= {"data/1.csv", "data/1.txt"}
    assert touched("Get-ChildItem") == {"."}
    assert touched("Move-Item a.txt,b.txt docs") == {"a.txt", "b.txt", "docs"}


def test_what_lands_under_a_protected_name_is_refused(workspace: Path) -> None:
    (workspace / "new").mkdir()
    (workspace / "new" / "CLAUDE.md").write_text("x", encoding="utf-8")
    (workspace / "new" / "settings.json").write_text("x", encoding="utf-8")
    for command in ("copy new docs", "copy new\\* docs", "move new other", "move new .claude"):
        assert isinstance(_judge(workspace, command), Deny), command


LINKED = r"""
Remove-Item -Recurse junc ¦ Remove-Item JUNC\* ¦ Get-ChildItem junc ¦ Get-ChildItem *
Get-ChildItem -Recurse ¦ Get-ChildItem build -Depth 2 ¦ Copy-Item a.txt junc
Copy-Item build docs -Recurse ¦ Move-Item a.txt -Destination junc\x
New-Item junc\x -ItemType Directory ¦ del junc\* ¦ del /q JUNC ¦ del junc\keep.txt
copy a.txt junc\ ¦ copy a.txt junc\x.txt ¦ copy junc docs ¦ copy out.txt b.txt
copy a.txt out.txt ¦ move junc x ¦ del out.* ¦ del /s /q build\*.tmp ¦ copy build docs
"""


def test_links_that_lead_outside_are_refused(workspace: Path) -> None:
    (workspace / "junc").symlink_to("../outdir")
    (workspace / "out.txt").symlink_to("../outside.txt")
    (workspace / "build" / "deep").symlink_to("../../outdir")
    verdicts = {command: _judge(workspace, command) for command in read_list(LINKED)}
    assert [command for command, v in verdicts.items() if not isinstance(v, Deny)] == []
    assert isinstance(_judge(workspace, "Get-ChildItem build"), Allow)


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
