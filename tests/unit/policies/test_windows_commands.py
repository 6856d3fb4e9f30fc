"""Command lines for Windows: PowerShell's five cmdlets and four commands of cmd."""

from pathlib import Path

import pytest

from policies.verdict import Allow, CommandApproval, Deny, Verdict
from policies.windows.judge import KNOWN_COMMANDS, judge_windows_command
from policies.windows.workspace import WindowsWorkspace
from tests.support.tables import read_pairs, read_table_text
from tests.unit.policies.corpus import build_workspace
from tests.unit.policies.judging import find_misses, line_of, read_list, validate_windows_command


def judge(root: Path, command: str, *, cwd: str | None = None) -> Verdict:
    line = command.replace("{WS}", str(root))
    return validate_windows_command(line, root=root, cwd=cwd or root)


def test_plain_commands_run_as_cmdlets_with_every_path_whole(shared_workspace: Path) -> None:
    root = shared_workspace
    shown = str(root).replace("/", "\\")
    runs = read_pairs("windows-runs")
    lines = {command: line_of(judge(root, command)) for command in runs}
    assert {command: line.replace(shown, "{WS}") for command, line in lines.items()} == runs
    assert {command: line_of(judge(root, line)) for command, line in lines.items()} == lines


def test_everything_else_is_refused_by_name(shared_workspace: Path) -> None:
    table = read_table_text("windows-refused")
    assert find_misses(table, lambda line: judge(shared_workspace, line)) == []


def test_taking_the_workspace_itself_away_ends_the_run(shared_workspace: Path) -> None:
    for command in ("del .", "move {WS} docs", "Remove-Item .", "Move-Item . docs"):
        verdict = judge(shared_workspace, command)
        assert isinstance(verdict, Deny), command
        assert (verdict.rule, verdict.interrupt) == ("workspace_root", True)


def test_only_listing_changes_nothing(shared_workspace: Path) -> None:
    commands = ("Get-ChildItem", "New-Item x", "Copy-Item a.txt x", "Remove-Item a.txt")
    verdicts = [judge(shared_workspace, command) for command in commands]
    assert [v.changes for v in verdicts if isinstance(v, Allow)] == [False, True, True, True]


def test_what_a_command_touches_is_told(shared_workspace: Path) -> None:
    def touched(command: str) -> set[str]:
        judged = judge_windows_command(
            command, WindowsWorkspace(shared_workspace, shared_workspace), KNOWN_COMMANDS
        )
        assert isinstance(judged, CommandApproval), judged
        return {
            Path(shared_workspace, path).relative_to(shared_workspace).as_posix()
            for path in judged.paths
        }

    assert touched("del a.txt b.txt") == {"a.txt", "b.txt"}
    assert touched("copy data\\*.csv archive") == {"data/1.csv", "data/2.csv", "archive"}
    assert touched("ren data\\1.csv 1.txt") == {"data/1.csv", "data/1.txt"}
    assert touched("Get-ChildItem") == {"."}
    assert touched("Move-Item a.txt,b.txt docs") == {"a.txt", "b.txt", "docs"}


FILES = (
    *("new/CLAUDE.md", "new/settings.json", "hold/.env", "kept/配置/a.pem", "paper/readme.md"),
    *(".ssh/x", "double/src/x", "guided/x"),
)
LINKS = {
    "junc": "../outdir",
    "out.txt": "../outside.txt",
    "build/deep": "../../outdir",
    "archive/2024/up": "../../a.txt",
    "paper/beside": "readme.md",
    "guided/rules.md": "../CLAUDE.md",
    "inner": "src",
}
HERE = r"""
protected_path: copy new\* docs ¦ move new .claude
protected_inside: move new other ¦ move hold other ¦ Copy-Item hold docs -Recurse ¦ del hold
    ¦ move kept other
    ¦ copy new docs ¦ Copy-Item . docs -Recurse
link_outside: Remove-Item -Recurse junc ¦ Remove-Item junc\* ¦ Get-ChildItem junc ¦ Get-ChildItem *
    ¦ Copy-Item a.txt junc ¦ Move-Item a.txt -Destination junc\x
    ¦ New-Item junc\x -ItemType Directory
    ¦ del junc\* ¦ del /q junc ¦ del junc\keep.txt ¦ copy a.txt junc\ ¦ copy a.txt junc\x.txt
    ¦ copy junc docs ¦ copy out.txt b.txt ¦ copy a.txt out.txt ¦ move junc x ¦ del out.*
link_inside: Get-ChildItem -Recurse . ¦ Get-ChildItem build -Depth 2 ¦ Copy-Item build docs -Recurse
    ¦ Remove-Item build -Recurse ¦ move guided guide
link_itself: del inner ¦ Remove-Item -Recurse inner ¦ move inner x ¦ copy inner docs
hard_link: copy a.txt shared.txt ¦ Copy-Item -Recurse src double ¦ move shared.txt x
    ¦ ren shared.txt x
    ¦ Move-Item double twice
secret_file: copy .ssh\nothing* docs ¦ Get-ChildItem .ssh\* ¦ Copy-Item .ssh\n* docs
link_turned: Move-Item archive\2024 . ¦ Copy-Item archive\2024 . -Recurse
allowed: Get-ChildItem build ¦ copy shared.txt own.txt ¦ del shared.txt ¦ ren archive\2024 x
    ¦ move paper papers
    ¦ del inner\main.py
"""
BELOW = r"""
working_directory: move {WS}\src docs ¦ del {WS}\src
glob_root: del *
allowed: del main.py
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with protected files in folders, and with links in every direction."""
    workspace = build_workspace(tmp_path_factory.mktemp("scene"))
    for name in FILES:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).touch()
    for name, target in LINKS.items():
        (workspace / name).symlink_to(target)
    (workspace / "shared.txt").hardlink_to(workspace.parent / "outside.txt")
    (workspace / "double/src/main.py").hardlink_to(workspace / "shared.txt")
    return workspace


def test_what_an_operand_leads_to_or_holds_decides(scene: Path) -> None:
    assert find_misses(HERE, lambda line: judge(scene, line)) == []


def test_a_recursive_listing_without_a_path_is_inspected_too(scene: Path) -> None:
    assert judge(scene, "Get-ChildItem -Recurse").rule == "link_inside"


def test_the_folder_that_the_command_runs_in_stays(shared_workspace: Path) -> None:
    cwd = f"{shared_workspace}\\src"
    assert find_misses(BELOW, lambda line: judge(shared_workspace, line, cwd=cwd)) == []


def test_patterns_take_no_hidden_and_no_protected_names(workspace: Path) -> None:
    (workspace / "CLAUDE.md").rename(workspace / "claude.md")
    assert ".env" not in line_of(judge(workspace, "Get-ChildItem *"))
    for line in read_list("copy e* docs ¦ copy .e* docs ¦ copy *~? x.txt ¦ move cl*.* x"):
        assert isinstance(judge(workspace, line), Deny), line


def test_a_working_directory_outside_refuses_everything(shared_workspace: Path) -> None:
    root = shared_workspace
    elsewhere = rf"C:\ ¦ \ ¦ \\s\s ¦ {root.parent} ¦ {root}-evil ¦ src ¦ {root}\..\outdir"
    for cwd in read_list(elsewhere):
        for command in ("del a.txt", "del {WS}\\a.txt", "Get-ChildItem"):
            assert judge(root, command, cwd=cwd).rule == "cwd_outside"
    assert validate_windows_command("del a.txt", root=root, cwd="").rule == "cwd_outside"


def test_only_listed_commands_run(shared_workspace: Path) -> None:
    listed = frozenset({"copy", "Get-ChildItem"})
    verdicts = [
        validate_windows_command(
            command, root=shared_workspace, cwd=shared_workspace, commands=listed
        )
        for command in ("copy a.txt c.txt", "get-childitem", "del a.txt")
    ]
    assert [isinstance(verdict, Allow) for verdict in verdicts] == [True, True, False]
    assert getattr(verdicts[-1], "hint", "") == "Allowed are Get-ChildItem, copy."


def test_too_many_files_or_words_are_refused(tmp_path: Path) -> None:
    for i in range(600):
        (tmp_path / f"file{i}.tmp").touch()
    (tmp_path / "one.txt").touch()
    assert judge(tmp_path, "del f*.tmp").rule == "glob_too_wide"
    assert judge(tmp_path, "del " + "*?" * 20).rule == "glob_too_wide"
    assert judge(tmp_path, "del " + "a " * 600).rule == "glob_too_wide"
    assert judge(tmp_path, "del " + "a" * 5000).rule == "command_too_long"


def test_a_pattern_that_happens_to_take_everything_is_refused(tmp_path: Path) -> None:
    for name in ("a1.txt", "a2.txt", ".gitignore"):
        (tmp_path / name).touch()
    assert judge(tmp_path, "del a*").rule == "glob_root"
    assert judge(tmp_path, "Remove-Item a*.txt").rule == "glob_root"
    assert isinstance(judge(tmp_path, "del a1*"), Allow)
