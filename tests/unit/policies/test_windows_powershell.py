"""PowerShell's commands, and folders that Windows commands move or copy."""

from pathlib import Path

from policies.verdict import Allow, CommandApproval, Deny, Verdict
from policies.windows.judge import KNOWN_COMMANDS, Shell, judge_windows_command
from policies.windows.workspace import WindowsWorkspace
from tests.unit.policies.judging import find_misses, validate_windows_command


def _judge(root: Path, command: str, *, shell: Shell = "any") -> Verdict:
    line = command.replace("{WS}", str(root))
    return validate_windows_command(line, root=root, cwd=root, shell=shell)


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


RUNS = {
    "remove-item A.TXT": "Remove-Item -LiteralPath 'A.TXT'",
    "REMOVE-ITEM -PATH a.txt -FORCE": "Remove-Item -LiteralPath 'a.txt' -Force",
    "Remove-Item 'it''s.txt'": "Remove-Item -LiteralPath 'it''s.txt'",
    'Remove-Item "it\'s.txt"': "Remove-Item -LiteralPath 'it''s.txt'",
    "Remove-Item a.txt,b.txt": "Remove-Item -LiteralPath 'a.txt','b.txt'",
    "Remove-Item a.txt , 'a b.txt'": "Remove-Item -LiteralPath 'a.txt','a b.txt'",
    "Remove-Item build\\*": "Remove-Item -Path 'build\\*'",
    "Remove-Item *.log,a.txt": "Remove-Item -Path '*.log','a.txt'",
    "Remove-Item *.md~": "Remove-Item -Path '*.md~'",
    "Remove-Item src/util.py": "Remove-Item -LiteralPath 'src\\util.py'",
    "Remove-Item build -Recurse -Force -Confirm:$false": "Remove-Item -LiteralPath 'build' -Recurse -Force -Confirm:$false",
    "Remove-Item build -Recurse:$True": "Remove-Item -LiteralPath 'build' -Recurse",
    "Remove-Item a.txt -Recurse:$false": "Remove-Item -LiteralPath 'a.txt'",
    "Remove-Item a.txt -ErrorAction SilentlyContinue -WhatIf -Verbose": "Remove-Item -LiteralPath 'a.txt' -ErrorAction 'SilentlyContinue' -WhatIf -Verbose",
    "Remove-Item -Recurse node_modules": "Remove-Item -LiteralPath 'node_modules' -Recurse",
    "Remove-Item 报告（最终版）.docx": "Remove-Item -LiteralPath '报告（最终版）.docx'",
    "Move-Item a.txt docs\\": "Move-Item -LiteralPath 'a.txt' -Destination 'docs'",
    "Move-Item -Destination archive -Path a.txt,b.txt -PassThru": "Move-Item -LiteralPath 'a.txt','b.txt' -Destination 'archive' -PassThru",
    "Move-Item 项目 备份": "Move-Item -LiteralPath '项目' -Destination '备份'",
    "Copy-Item src backup -Recurse": "Copy-Item -LiteralPath 'src' -Destination 'backup' -Recurse",
    "Copy-Item 'img\\IMG_2024 (1).png' p.png": "Copy-Item -LiteralPath 'img\\IMG_2024 (1).png' -Destination 'p.png'",
    "Copy-Item a.txt 'x; calc'": "Copy-Item -LiteralPath 'a.txt' -Destination 'x; calc'",
    "Copy-Item a.txt 'x $(calc) `y'": "Copy-Item -LiteralPath 'a.txt' -Destination 'x $(calc) `y'",
    'Copy-Item a.txt "R&D.txt"': "Copy-Item -LiteralPath 'a.txt' -Destination \"R&D.txt\"",
    "Copy-Item a.txt '“草稿”.txt'": "Copy-Item -LiteralPath 'a.txt' -Destination '“草稿”.txt'",
    "New-Item a\\b\\c -ItemType directory": "New-Item -Path 'a\\b\\c' -ItemType 'directory'",
    'New-Item x -Value "a & b | c"': "New-Item -Path 'x' -Value \"a & b | c\"",
    "New-Item 'a','b' -ItemType Directory": "New-Item -Path 'a','b' -ItemType 'Directory'",
    "Get-ChildItem": "Get-ChildItem",
    "Get-ChildItem .claude": "Get-ChildItem -LiteralPath '.claude'",
    "Get-ChildItem .*": "Get-ChildItem -Path '.*'",
    "Get-ChildItem . *.py": "Get-ChildItem -LiteralPath '.' -Filter '*.py'",
    "Get-ChildItem src,docs -File": "Get-ChildItem -LiteralPath 'src','docs' -File",
    "Get-ChildItem -Force -Directory -Name": "Get-ChildItem -Force -Directory -Name",
}


def test_plain_commands_run_with_every_parameter_named(shared_workspace: Path) -> None:
    assert {command: _runs(shared_workspace, command) for command in RUNS} == RUNS
    _runs(shared_workspace, "Get-ChildItem -LiteralPath {WS}")


REFUSED = r"""
separator_semicolon: Remove-Item a.txt; calc
operator_pipe: Remove-Item a.txt | calc
operator_and: Remove-Item a.txt && calc
redirect: Remove-Item a.txt > x ¦ Remove-Item a.txt *> x
operator_ampersand: Remove-Item a.txt & ¦ & Remove-Item a.txt
variable_dollar: Remove-Item $x ¦ Remove-Item ${env:X} ¦ Remove-Item "$x" ¦ Remove-Item "$(calc)"
    ¦ Remove-Item -Path$x ¦ Remove-Item a.txt -Force:$x ¦ Remove-Item -Path:$true ¦ $x = 1
subexpression: Remove-Item $(calc)
grouping: Remove-Item (calc)
script_block: Remove-Item {calc}
array_expression: Remove-Item @(calc)
hash_table: Remove-Item @{a=1} ¦ @{}
splatting: Remove-Item @args
here_string: Remove-Item @'x ¦ Remove-Item @'{U+000A}x{U+000A}'@
backtick: Remove-Item a`b ¦ Remove-Item "a`nb"
line_continuation: Remove-Item `{U+000A} x
newline: Remove-Item a.txt{U+000A}calc
stop_parsing: Remove-Item --% a.txt
block_comment: Remove-Item <# x #> a.txt
comment: Remove-Item a.txt # x ¦ #x
smart_quote: Remove-Item “a.txt” ¦ Remove-Item ‚a.txt‛ ¦ Remove-Item "a”; calc"
    ¦ Remove-Item 'a’; calc' ¦ Remove-Item "a’b"
smart_dash: Remove-Item –Recurse a.txt ¦ Remove-Item —Recurse a.txt ¦ Remove-Item ―Recurse a.txt
operator_in_quotes: Remove-Item 'a & calc'
variable_percent: Remove-Item '%X%' ¦ Remove-Item %X%
variable_delayed: Remove-Item "!X!" ¦ Remove-Item [!a]*
caret: Remove-Item a^b
unclosed_quote: Remove-Item 'a
quote_inside_word: Remove-Item 'a'b ¦ Remove-Item a'b' ¦ Remove-Item "a""b"
array_form: Remove-Item ,a.txt ¦ Remove-Item a.txt, ¦ Remove-Item a.txt,,b.txt
    ¦ Remove-Item a.txt,-Recurse
outside_workspace: Remove-Item a.txt,..\outside.txt
path_drive: Remove-Item 'a.txt', 'C:\x'
secret_file: Remove-Item a.txt,.env ¦ New-Item .env ¦ Get-ChildItem .env ¦ Copy-Item .env x.txt
    ¦ Copy-Item * docs ¦ Copy-Item .e* docs
operands: Remove-Item a.txt b.txt ¦ Remove-Item ¦ Remove-Item -Recurse ¦ Move-Item a.txt
    ¦ Copy-Item -Destination docs ¦ Copy-Item a.txt b.txt docs ¦ Remove-Item a.txt -Path b.txt
value_missing: Remove-Item -Path ¦ Remove-Item -Path -Recurse
value_empty: Remove-Item -Path ''
parameter_twice: Remove-Item -Path a.txt -path b.txt ¦ Remove-Item -Recurse -Recurse a.txt
    ¦ Remove-Item -Path a.txt -LiteralPath b.txt
parameter_form: Remove-Item -Force:x a.txt ¦ Remove-Item -Path:a.txt ¦ Remove-Item -Path: a.txt ¦ Remove-Item - a.txt ¦ Remove-Item -- a.txt
    ¦ Remove-Item -1
parameter_not_allowed: Remove-Item -r build ¦ Remove-Item -fo a.txt ¦ Remove-Item -Rec build
    ¦ Remove-Item -PSPath a.txt ¦ Remove-Item -LP a.txt ¦ Remove-Item a.txt -Credential x
    ¦ Remove-Item a.txt -ErrorVariable x ¦ Remove-Item a.txt -ev x ¦ Remove-Item a.txt -ov x
    ¦ Remove-Item a.txt -OutVariable PSDefaultParameterValues ¦ Get-ChildItem -PipelineVariable x
    ¦ Get-ChildItem -WarningVariable x ¦ Get-ChildItem -InformationVariable x
    ¦ Get-ChildItem -FollowSymlink ¦ Get-ChildItem -UseTransaction
    ¦ Copy-Item a.txt x -ToSession y ¦ Copy-Item a.txt x -Container ¦ New-Item l -Target src
    ¦ New-Item -Type Directory x ¦ New-Item -Name x ¦ Remove-Item data -Include *.csv
parameter_value: Remove-Item a.txt -ErrorAction Inquire ¦ Get-ChildItem -Depth x
    ¦ Get-ChildItem -Filter a,b ¦ Copy-Item a.txt -Destination b,c
    ¦ New-Item x -ItemType Directory -Value src
item_type: New-Item l -ItemType SymbolicLink -Value a.txt
    ¦ New-Item l -ItemType Junction -Value src ¦ New-Item l -ItemType HardLink -Value a.txt
    ¦ New-Item l -ItemType sym* ¦ New-Item l -ItemType 'File','SymbolicLink'
folder_missing: New-Item nosuch\x.txt ¦ Get-ChildItem junc\*
target_parent: New-Item -ItemType Directory x\.git\.. ¦ New-Item -Force x\.git\..\y
target_pattern: Copy-Item a.txt d[oO]cs ¦ Move-Item a.txt 'do?s'
protected_path: New-Item .mcp.json ¦ New-Item CLAUDE.md -Force ¦ Remove-Item .claude -Recurse ¦ Move-Item CLAUDE.md x
filter_path: Get-ChildItem -Filter ..\* ¦ Get-ChildItem -Filter C:*
glob_bracket: Remove-Item '[!a]*' ¦ Remove-Item [ ¦ Remove-Item a] ¦ Remove-Item [z-a].txt
    ¦ Copy-Item [.]env docs ¦ Remove-Item build\[xy].tmp
path_wildcard: Remove-Item -LiteralPath *.txt
source_missing: Remove-Item nosuch.txt ¦ Get-ChildItem nosuch
path_provider: Get-ChildItem Env: ¦ Get-ChildItem 'Env:\' ¦ Get-ChildItem Function:\*
path_drive_relative: Get-ChildItem C:
source_name: Copy-Item . docs -Recurse
glob_root: Move-Item * docs ¦ Remove-Item * ¦ Remove-Item -Recurse -Force .\*
    ¦ Remove-Item -Recurse {WS}\* ¦ Remove-Item -Recurse src\..\*
command_not_allowed: Get-Content a.txt ¦ Set-Content a.txt x ¦ Rename-Item a.txt b.txt
    ¦ Clear-Content a.txt ¦ Invoke-Item a.txt ¦ Start-Process calc ¦ ri a.txt ¦ gci
    ¦ Remove-Itеm a.txt ¦ Remove–Item a.txt ¦ 1..3 ¦ . .\x.ps1
command_qualified: Management\Remove-Item a.txt ¦ .\x.ps1
change_folder: Set-Location .. ¦ sl ..
wrapper: pwsh -c x ¦ PowerShell.exe -enc AAAA
loop: foreach ($x in 1) {} ¦ while(1){} ¦ param($x) ls
type_literal: [IO.File]::Delete('a')
command_quoted: 'x'
"""


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


def test_links_that_lead_outside_are_refused(workspace: Path) -> None:
    (workspace / "junc").symlink_to("../outdir")
    (workspace / "build" / "deep").symlink_to("../../outdir")
    for command in (
        "Remove-Item -Recurse junc",
        "Remove-Item JUNC\\*",
        "Get-ChildItem junc",
        "Get-ChildItem *",
        "Get-ChildItem -Recurse",
        "Get-ChildItem build -Depth 2",
        "Copy-Item a.txt junc",
        "Copy-Item build docs -Recurse",
        "Move-Item a.txt -Destination junc\\x",
        "New-Item junc\\x -ItemType Directory",
    ):
        assert isinstance(_judge(workspace, command), Deny), command
    assert isinstance(_judge(workspace, "Get-ChildItem build"), Allow)


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


def _judge_tree(root: Path, command: str, *, cwd: str | None = None) -> Verdict:
    line = command.replace("{WS}", str(root))
    return validate_windows_command(line, root=root, cwd=cwd or root)


def _tree_rule(root: Path, command: str) -> str:
    verdict = _judge_tree(root, command)
    assert isinstance(verdict, Deny), verdict
    return verdict.rule


def test_what_lands_under_a_protected_name_is_refused(workspace: Path) -> None:
    (workspace / "new").mkdir()
    (workspace / "new" / "CLAUDE.md").write_text("x", encoding="utf-8")
    (workspace / "new" / "settings.json").write_text("x", encoding="utf-8")
    for command in ("copy new docs", "copy new\\* docs", "move new other", "move new .claude"):
        assert isinstance(_judge_tree(workspace, command), Deny), command


def test_links_in_folders_that_lead_outside_are_refused(workspace: Path) -> None:
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
        assert isinstance(_judge_tree(workspace, command), Deny), command


def test_a_file_with_further_names_is_not_overwritten(workspace: Path) -> None:
    (workspace / "shared.txt").hardlink_to(workspace.parent / "outside.txt")
    (workspace / "docs" / "src").mkdir()
    (workspace / "docs" / "src" / "main.py").hardlink_to(workspace / "shared.txt")
    for command in ("copy a.txt shared.txt", "Copy-Item -Recurse src docs"):
        assert _tree_rule(workspace, command) == "hard_link", command
    assert isinstance(_judge_tree(workspace, "copy shared.txt own.txt"), Allow)
    assert isinstance(_judge_tree(workspace, "del shared.txt"), Allow)


def test_a_folder_that_holds_protected_files_is_not_moved(workspace: Path) -> None:
    (workspace / "src" / ".env").write_text("x", encoding="utf-8")
    assert _tree_rule(workspace, "move src other") == "protected_inside"
    assert _tree_rule(workspace, "Copy-Item src docs -Recurse") == "protected_inside"
    assert _tree_rule(workspace, "del src") == "protected_inside"
    (workspace / "docs" / "配置").mkdir()
    (workspace / "docs" / "配置" / "a.pem").write_text("x", encoding="utf-8")
    verdict = _judge_tree(workspace, "move docs other")
    assert "holds 配置\\a.pem, which" in verdict.reason


def test_the_folder_that_the_command_runs_in_stays(workspace: Path) -> None:
    cwd = f"{workspace}\\SRC"
    for command in ("move {WS}\\src docs", "ren {WS}\\src x", "del {WS}\\src"):
        verdict = _judge_tree(workspace, command, cwd=cwd)
        assert isinstance(verdict, Deny)
        assert verdict.rule == "working_directory"
    swept = _judge_tree(workspace, "del *", cwd=cwd)
    assert isinstance(swept, Deny)
    assert swept.rule == "glob_root"
    assert isinstance(_judge_tree(workspace, "del main.py", cwd=cwd), Allow)


def test_folders_of_secrets_are_not_looked_through(workspace: Path) -> None:
    (workspace / ".ssh").mkdir()
    for command in ("copy .ssh\\nothing* docs", "Get-ChildItem .ssh\\*", "Copy-Item .ssh\\n* docs"):
        assert _tree_rule(workspace, command) == "secret_file"


def test_links_must_not_lead_outside_from_where_they_land(workspace: Path) -> None:
    (workspace / "archive" / "2024" / "up").symlink_to("../../a.txt")
    (workspace / "docs" / "beside").symlink_to("readme.md")
    for command in (
        "move archive\\2024\\up .",
        "ren archive\\2024 x",
        "Move-Item archive\\2024 .",
        "Copy-Item archive\\2024 . -Recurse",
    ):
        verdict = _judge_tree(workspace, command)
        expected = "windows_ren" if command.startswith("ren") else "link_turned"
        assert verdict.rule == expected, command
    assert isinstance(_judge_tree(workspace, "move docs papers"), Allow)
