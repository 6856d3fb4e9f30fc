"""Command lines for PowerShell: five cmdlets, exact parameters, plain values."""

from pathlib import Path

import pytest

from policies.verdict import Allow, Deny, Verdict
from policies.windows import WindowsWorkspace, judge_windows_command
from policies.windows.approval import WindowsApproval
from policies.windows.judge import KNOWN_COMMANDS, Shell
from tests.unit.policies.judging import validate_windows_command


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


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("remove-item A.TXT", "Remove-Item -LiteralPath 'A.TXT'"),
        ("REMOVE-ITEM -PATH a.txt -FORCE", "Remove-Item -LiteralPath 'a.txt' -Force"),
        ("Remove-Item -Path:'a b.txt'", "Remove-Item -LiteralPath 'a b.txt'"),
        ("Remove-Item 'it''s.txt'", "Remove-Item -LiteralPath 'it''s.txt'"),
        ('Remove-Item "it\'s.txt"', "Remove-Item -LiteralPath 'it''s.txt'"),
        ("Remove-Item a.txt,b.txt", "Remove-Item -LiteralPath 'a.txt','b.txt'"),
        ("Remove-Item a.txt , 'a b.txt'", "Remove-Item -LiteralPath 'a.txt','a b.txt'"),
        ("Remove-Item build\\*", "Remove-Item -Path 'build\\*'"),
        ("Remove-Item build\\[xy].tmp", "Remove-Item -Path 'build\\[xy].tmp'"),
        ("Remove-Item *.log,a.txt", "Remove-Item -Path '*.log','a.txt'"),
        ("Remove-Item *.md~", "Remove-Item -Path '*.md~'"),
        ("Remove-Item src/util.py", "Remove-Item -LiteralPath 'src\\util.py'"),
        (
            "Remove-Item build -Recurse -Force -Confirm:$false",
            "Remove-Item -LiteralPath 'build' -Recurse -Force -Confirm:$false",
        ),
        ("Remove-Item build -Recurse:$True", "Remove-Item -LiteralPath 'build' -Recurse"),
        ("Remove-Item a.txt -Recurse:$false", "Remove-Item -LiteralPath 'a.txt'"),
        (
            "Remove-Item a.txt -ErrorAction SilentlyContinue -WhatIf -Verbose",
            "Remove-Item -LiteralPath 'a.txt' -ErrorAction 'SilentlyContinue' -WhatIf -Verbose",
        ),
        ("Remove-Item -Recurse node_modules", "Remove-Item -LiteralPath 'node_modules' -Recurse"),
        ("Remove-Item 报告（最终版）.docx", "Remove-Item -LiteralPath '报告（最终版）.docx'"),
        ("Remove-Item data -Include *.csv", "Remove-Item -LiteralPath 'data' -Include '*.csv'"),
        ("Move-Item a.txt docs\\", "Move-Item -LiteralPath 'a.txt' -Destination 'docs'"),
        (
            "Move-Item -Destination archive -Path a.txt,b.txt -PassThru",
            "Move-Item -LiteralPath 'a.txt','b.txt' -Destination 'archive' -PassThru",
        ),
        ("Move-Item 项目 备份", "Move-Item -LiteralPath '项目' -Destination '备份'"),
        (
            "Copy-Item src backup -Recurse",
            "Copy-Item -LiteralPath 'src' -Destination 'backup' -Recurse",
        ),
        (
            "Copy-Item 'img\\IMG_2024 (1).png' p.png",
            "Copy-Item -LiteralPath 'img\\IMG_2024 (1).png' -Destination 'p.png'",
        ),
        ("Copy-Item a.txt 'x; calc'", "Copy-Item -LiteralPath 'a.txt' -Destination 'x; calc'"),
        (
            "Copy-Item a.txt 'x $(calc) `y'",
            "Copy-Item -LiteralPath 'a.txt' -Destination 'x $(calc) `y'",
        ),
        ('Copy-Item a.txt "R&D.txt"', "Copy-Item -LiteralPath 'a.txt' -Destination \"R&D.txt\""),
        (
            "Copy-Item a.txt '“草稿”.txt'",
            "Copy-Item -LiteralPath 'a.txt' -Destination '“草稿”.txt'",
        ),
        ("New-Item a\\b\\c -ItemType directory", "New-Item -Path 'a\\b\\c' -ItemType 'directory'"),
        ("New-Item -Path src -Name x.py", "New-Item -Path 'src\\x.py'"),
        ("New-Item -Name x.py -Value '你好'", "New-Item -Path '.\\x.py' -Value '你好'"),
        ('New-Item x -Value "a & b | c"', "New-Item -Path 'x' -Value \"a & b | c\""),
        ("New-Item 'a','b' -ItemType Directory", "New-Item -Path 'a','b' -ItemType 'Directory'"),
        ("Get-ChildItem", "Get-ChildItem"),
        ("Get-ChildItem .claude", "Get-ChildItem -LiteralPath '.claude'"),
        ("Get-ChildItem .*", "Get-ChildItem -Path '.*'"),
        ("Get-ChildItem . *.py", "Get-ChildItem -LiteralPath '.' -Filter '*.py'"),
        ("Get-ChildItem src,docs -File", "Get-ChildItem -LiteralPath 'src','docs' -File"),
        (
            "Get-ChildItem -Recurse -Include *.py,'*.md' -Depth 3",
            "Get-ChildItem -Include '*.py','*.md' -Depth '3' -Recurse",
        ),
        ("Get-ChildItem -Force -Directory -Name", "Get-ChildItem -Force -Directory -Name"),
        ("Get-ChildItem -LiteralPath {WS}", None),
    ],
)
def test_plain_commands_run_with_every_parameter_named(
    shared_workspace: Path, command: str, runs: str | None
) -> None:
    line = _runs(shared_workspace, command)
    assert runs is None or line == runs


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("Remove-Item a.txt; calc", "separator_semicolon"),
        ("Remove-Item a.txt | calc", "operator_pipe"),
        ("Remove-Item a.txt && calc", "operator_and"),
        ("Remove-Item a.txt > x", "redirect"),
        ("Remove-Item a.txt *> x", "redirect"),
        ("Remove-Item a.txt &", "operator_ampersand"),
        ("& Remove-Item a.txt", "operator_ampersand"),
        ("Remove-Item $x", "variable_dollar"),
        ("Remove-Item ${env:X}", "variable_dollar"),
        ('Remove-Item "$x"', "variable_dollar"),
        ("Remove-Item $(calc)", "subexpression"),
        ('Remove-Item "$(calc)"', "variable_dollar"),
        ("Remove-Item (calc)", "grouping"),
        ("Remove-Item {calc}", "script_block"),
        ("Remove-Item @(calc)", "array_expression"),
        ("Remove-Item @{a=1}", "hash_table"),
        ("Remove-Item @args", "splatting"),
        ("Remove-Item @'x", "here_string"),
        ("Remove-Item @'\nx\n'@", "here_string"),
        ("Remove-Item a`b", "backtick"),
        ('Remove-Item "a`nb"', "backtick"),
        ("Remove-Item `\n x", "line_continuation"),
        ("Remove-Item a.txt\ncalc", "newline"),
        ("Remove-Item --% a.txt", "stop_parsing"),
        ("Remove-Item <# x #> a.txt", "block_comment"),
        ("Remove-Item a.txt # x", "comment"),
        ("Remove-Item “a.txt”", "smart_quote"),
        ("Remove-Item ‚a.txt‛", "smart_quote"),
        ('Remove-Item "a”; calc"', "smart_quote"),
        ("Remove-Item 'a’; calc'", "smart_quote"),
        ('Remove-Item "a’b"', "smart_quote"),
        ("Remove-Item –Recurse a.txt", "smart_dash"),
        ("Remove-Item —Recurse a.txt", "smart_dash"),
        ("Remove-Item ―Recurse a.txt", "smart_dash"),
        ("Remove-Item 'a & calc'", "operator_in_quotes"),
        ("Remove-Item '%X%'", "variable_percent"),
        ('Remove-Item "!X!"', "variable_delayed"),
        ("Remove-Item %X%", "variable_percent"),
        ("Remove-Item a^b", "caret"),
        ("Remove-Item 'a", "unclosed_quote"),
        ("Remove-Item 'a'b", "quote_inside_word"),
        ("Remove-Item a'b'", "quote_inside_word"),
        ('Remove-Item "a""b"', "quote_inside_word"),
        ("Remove-Item -Path:a'b'", "quote_inside_word"),
        ("Remove-Item ,a.txt", "array_form"),
        ("Remove-Item a.txt,", "array_form"),
        ("Remove-Item a.txt,,b.txt", "array_form"),
        ("Remove-Item a.txt,-Recurse", "array_form"),
        ("Remove-Item a.txt,..\\outside.txt", "outside_workspace"),
        ("Remove-Item 'a.txt', 'C:\\x'", "path_drive"),
        ("Remove-Item a.txt,.env", "secret_file"),
        ("Remove-Item a.txt b.txt", "operands"),
        ("Remove-Item", "operands"),
        ("Remove-Item -Recurse", "operands"),
        ("Move-Item a.txt", "operands"),
        ("Copy-Item -Destination docs", "operands"),
        ("Copy-Item a.txt b.txt docs", "operands"),
        ("Remove-Item -Path", "value_missing"),
        ("Remove-Item -Path -Recurse", "value_missing"),
        ("Remove-Item -Path ''", "value_empty"),
        ("Remove-Item a.txt -Path b.txt", "operands"),
        ("Remove-Item -Path a.txt -path b.txt", "parameter_twice"),
        ("Remove-Item -Recurse -Recurse a.txt", "parameter_twice"),
        ("Remove-Item -Path a.txt -LiteralPath b.txt", "parameter_twice"),
        ("Remove-Item -Path: a.txt", "parameter_form"),
        ("Remove-Item - a.txt", "parameter_form"),
        ("Remove-Item -- a.txt", "parameter_form"),
        ("Remove-Item -1", "parameter_form"),
        ("Remove-Item -Path$x", "variable_dollar"),
        ("Remove-Item -Force:x a.txt", "switch_value"),
        ("Remove-Item a.txt -Force:$x", "variable_dollar"),
        ("Remove-Item -Path:$true", "variable_dollar"),
        ("Remove-Item -r build", "parameter_not_allowed"),
        ("Remove-Item -fo a.txt", "parameter_not_allowed"),
        ("Remove-Item -Rec build", "parameter_not_allowed"),
        ("Remove-Item -PSPath a.txt", "parameter_not_allowed"),
        ("Remove-Item -LP a.txt", "parameter_not_allowed"),
        ("Remove-Item a.txt -Credential x", "parameter_not_allowed"),
        ("Remove-Item a.txt -ErrorVariable x", "parameter_not_allowed"),
        ("Remove-Item a.txt -ev x", "parameter_not_allowed"),
        ("Remove-Item a.txt -ov x", "parameter_not_allowed"),
        ("Remove-Item a.txt -OutVariable PSDefaultParameterValues", "parameter_not_allowed"),
        ("Get-ChildItem -PipelineVariable x", "parameter_not_allowed"),
        ("Get-ChildItem -WarningVariable x", "parameter_not_allowed"),
        ("Get-ChildItem -InformationVariable x", "parameter_not_allowed"),
        ("Get-ChildItem -FollowSymlink", "parameter_not_allowed"),
        ("Get-ChildItem -UseTransaction", "parameter_not_allowed"),
        ("Copy-Item a.txt x -ToSession y", "parameter_not_allowed"),
        ("Copy-Item a.txt x -Container", "parameter_not_allowed"),
        ("New-Item l -Target src", "parameter_not_allowed"),
        ("New-Item -Type Directory x", "parameter_not_allowed"),
        ("Remove-Item a.txt -ErrorAction Inquire", "parameter_value"),
        ("Get-ChildItem -Depth x", "parameter_value"),
        ("Get-ChildItem -Filter a,b", "parameter_value"),
        ("Copy-Item a.txt -Destination b,c", "parameter_value"),
        ("New-Item l -ItemType SymbolicLink -Value a.txt", "item_type"),
        ("New-Item l -ItemType Junction -Value src", "item_type"),
        ("New-Item l -ItemType HardLink -Value a.txt", "item_type"),
        ("New-Item l -ItemType sym*", "item_type"),
        ("New-Item l -ItemType 'File','SymbolicLink'", "item_type"),
        ("New-Item x -ItemType Directory -Value src", "parameter_value"),
        ("New-Item nosuch\\x.txt", "folder_missing"),
        ("New-Item -ItemType Directory x\\.git\\..", "target_parent"),
        ("New-Item -Force x\\.git\\..\\y", "target_parent"),
        ("New-Item '*' -Name x", "target_pattern"),
        ("New-Item -Path src -Name ..\\..\\x", "rename_path"),
        ("New-Item -Path src -Name C:\\x", "rename_path"),
        ("New-Item -Path src -Name \\x", "rename_path"),
        ("New-Item -Path .. -Name x", "outside_workspace"),
        ("New-Item -Path . -Name .mcp.json", "protected_path"),
        ("New-Item -Path .git\\hooks -Name pre-commit", "protected_path"),
        ("New-Item CLAUDE.md -Force", "protected_path"),
        ("New-Item .env", "secret_file"),
        ("Copy-Item a.txt d[oO]cs", "target_pattern"),
        ("Move-Item a.txt 'do?s'", "target_pattern"),
        ("Get-ChildItem -Filter ..\\*", "filter_path"),
        ("Get-ChildItem -Include C:*", "filter_path"),
        ("Remove-Item data -Exclude ../x", "filter_path"),
        ("Remove-Item [!a]*", "variable_delayed"),
        ("Remove-Item '[!a]*'", "glob_bracket"),
        ("Remove-Item [", "glob_bracket"),
        ("Remove-Item a]", "glob_bracket"),
        ("Remove-Item [z-a].txt", "glob_bracket"),
        ("Remove-Item -LiteralPath *.txt", "path_wildcard"),
        ("Remove-Item nosuch.txt", "source_missing"),
        ("Get-ChildItem nosuch", "source_missing"),
        ("Get-ChildItem junc\\*", "folder_missing"),
        ("Get-ChildItem Env:", "path_provider"),
        ("Get-ChildItem 'Env:\\'", "path_provider"),
        ("Get-ChildItem Function:\\*", "path_provider"),
        ("Get-ChildItem C:", "path_drive_relative"),
        ("Get-ChildItem .env", "secret_file"),
        ("Copy-Item .env x.txt", "secret_file"),
        ("Copy-Item * docs", "secret_file"),
        ("Copy-Item .e* docs", "secret_file"),
        ("Copy-Item [.]env docs", "glob_bracket"),
        ("Copy-Item . docs -Recurse", "source_name"),
        ("Move-Item * docs", "glob_root"),
        ("Remove-Item *", "glob_root"),
        ("Remove-Item -Recurse -Force .\\*", "glob_root"),
        ("Remove-Item -Recurse {WS}\\*", "glob_root"),
        ("Remove-Item -Recurse src\\..\\*", "glob_root"),
        ("Remove-Item * -Include *.txt", "glob_root"),
        ("Remove-Item .claude -Recurse", "protected_path"),
        ("Move-Item CLAUDE.md x", "protected_path"),
        ("Get-Content a.txt", "command_not_allowed"),
        ("Set-Content a.txt x", "command_not_allowed"),
        ("Rename-Item a.txt b.txt", "command_not_allowed"),
        ("Clear-Content a.txt", "command_not_allowed"),
        ("Invoke-Item a.txt", "command_not_allowed"),
        ("Start-Process calc", "command_not_allowed"),
        ("ri a.txt", "command_not_allowed"),
        ("gci", "command_not_allowed"),
        ("Remove-Itеm a.txt", "command_not_allowed"),
        ("Remove–Item a.txt", "command_not_allowed"),
        ("Management\\Remove-Item a.txt", "command_qualified"),
        ("Set-Location ..", "change_folder"),
        ("sl ..", "change_folder"),
        ("pwsh -c x", "wrapper"),
        ("PowerShell.exe -enc AAAA", "wrapper"),
        ("foreach ($x in 1) {}", "loop"),
        ("while(1){}", "loop"),
        ("param($x) ls", "loop"),
        ("[IO.File]::Delete('a')", "type_literal"),
        ("$x = 1", "variable_dollar"),
        ("'x'", "command_quoted"),
        ("@{}", "hash_table"),
        ("#x", "comment"),
        ("1..3", "command_not_allowed"),
        (". .\\x.ps1", "command_not_allowed"),
        (".\\x.ps1", "command_qualified"),
    ],
)
def test_everything_else_is_refused_by_name(
    shared_workspace: Path, command: str, rule: str
) -> None:
    assert _rule(shared_workspace, command) == rule


@pytest.mark.parametrize(
    "command",
    [
        "Remove-Item .",
        "Remove-Item -Recurse -Force {WS}",
        "Remove-Item -LiteralPath '{WS}\\'",
        "Remove-Item src\\..\\",
        "Remove-Item a.txt,{WS}",
        "Move-Item {WS} docs",
        "Move-Item . docs",
    ],
)
def test_taking_the_workspace_itself_away_ends_the_run(
    shared_workspace: Path, command: str
) -> None:
    verdict = _judge(shared_workspace, command)
    assert isinstance(verdict, Deny)
    assert (verdict.rule, verdict.interrupt) == ("workspace_root", True)


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
        "New-Item -Path junc -Name x",
    ):
        assert isinstance(_judge(workspace, command), Deny), command
    assert isinstance(_judge(workspace, "Get-ChildItem build"), Allow)


def test_what_a_command_touches_is_told(shared_workspace: Path) -> None:
    def touched(command: str) -> set[str]:
        judged = judge_windows_command(
            command, WindowsWorkspace(shared_workspace, shared_workspace), KNOWN_COMMANDS
        )
        assert isinstance(judged, WindowsApproval), judged
        return {Path(path).relative_to(shared_workspace).as_posix() for path in judged.paths}

    assert touched("del a.txt b.txt") == {"a.txt", "b.txt"}
    assert touched("copy data\\*.csv archive") == {"data/1.csv", "data/2.csv", "archive"}
    assert touched("ren data\\*.csv *.txt") >= {"data/1.csv", "data/1.txt"}
    assert touched("del /s build\\*.tmp") >= {"build"}
    assert touched("New-Item -Path src -Name x.py") == {"src/x.py"}
    assert touched("Get-ChildItem") == {"."}
    assert touched("Move-Item a.txt,b.txt docs") == {"a.txt", "b.txt", "docs"}
