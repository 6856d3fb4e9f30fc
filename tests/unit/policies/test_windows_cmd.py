"""Command lines for cmd: four commands, listed switches, names that cmd and PowerShell read alike."""

from pathlib import Path

import pytest

from policies.verdict import Allow, Deny, Verdict
from tests.unit.policies.judging import validate_windows_command


def _judge(root: Path, command: str, *, cwd: str | None = None) -> Verdict:
    line = command.replace("{WS}", str(root))
    return validate_windows_command(line, root=root, cwd=cwd or root)


def _runs(root: Path, command: str) -> str:
    verdict = _judge(root, command)
    assert isinstance(verdict, Allow), verdict
    assert verdict.changes
    assert verdict.updated_input is not None
    again = _judge(root, str(verdict.updated_input["command"]))
    assert again == verdict
    return str(verdict.updated_input["command"])


def _rule(root: Path, command: str) -> str:
    verdict = _judge(root, command)
    assert isinstance(verdict, Deny), verdict
    assert verdict.reason
    return verdict.rule


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("del a.txt", 'del "a.txt"'),
        ("  DeL\t.\\A.TXT ", 'del ".\\A.TXT"'),
        ('del "a b.txt" b.txt', 'del "a b.txt" "b.txt"'),
        ("del /F/Q a.txt", 'del /f /q "a.txt"'),
        ("del a.txt /q", 'del /q "a.txt"'),
        ("del /s docs\\", 'del /s "docs"'),
        ("del /s /q build\\*.tmp", 'del /s /q "build\\*.tmp"'),
        ("del build\\cache\\*", 'del "build\\cache\\*"'),
        ("del *.log", 'del "*.log"'),
        ("del build\\?.tmp", 'del "build\\?.tmp"'),
        ("del nothing*.xyz", 'del "nothing*.xyz"'),
        ('del "img\\IMG_2024 (1).png"', 'del "img\\IMG_2024 (1).png"'),
        ('del "src/util.py"', 'del "src\\util.py"'),
        ("del 报告.docx résumé.txt 🎉party.txt", 'del "报告.docx" "résumé.txt" "🎉party.txt"'),
        ("del 报告（最终版）.docx", 'del "报告（最终版）.docx"'),
        ("del notes.md~", 'del "notes.md~"'),
        ("copy a.txt c.txt", 'copy "a.txt" "c.txt"'),
        ("COPY /Y /b a.txt docs\\", 'copy /y /b "a.txt" "docs"'),
        ('copy a.txt "dir with space\\"', 'copy "a.txt" "dir with space"'),
        ("copy .env.example .env.example.bak.txt", None),
        ("copy .env.example sample.txt", 'copy ".env.example" "sample.txt"'),
        ("copy src docs", 'copy "src" "docs"'),
        ("copy CLAUDE.md rules.txt", 'copy "CLAUDE.md" "rules.txt"'),
        ("move *.log archive", 'move "*.log" "archive"'),
        ("move 项目\\子目录 備份", 'move "项目\\子目录" "備份"'),
        ("move /-y src\\util.py .", 'move /-y "src\\util.py" "."'),
        ("ren src\\main.py app.py", 'ren "src\\main.py" "app.py"'),
        ("ren data\\*.csv *.txt", 'ren "data\\*.csv" "*.txt"'),
        ("ren 项目 project", 'ren "项目" "project"'),
    ],
)
def test_plain_commands_run_quoted_anew(
    shared_workspace: Path, command: str, runs: str | None
) -> None:
    if runs is None:
        assert _rule(shared_workspace, command) == "secret_file"
        return
    assert _runs(shared_workspace, command) == runs


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("", "command_empty"),
        (" \t ", "command_empty"),
        ("del a.txt & calc", "operator_ampersand"),
        ("del a.txt&calc", "operator_ampersand"),
        ("del a.txt&&calc", "operator_and"),
        ("del nosuch||calc", "operator_or"),
        ("del a.txt|more", "operator_pipe"),
        ("del a.txt>nul", "redirect"),
        ("del a.txt 2>&1", "redirect"),
        ("copy<x a.txt", "redirect"),
        ("del %TEMP%\\x", "variable_percent"),
        ('del "%CD%\\a.txt"', "variable_percent"),
        ("del %~dp0a.txt", "variable_percent"),
        ("del a%%b", "variable_percent"),
        ("del !X!", "variable_delayed"),
        ('del "!X!"', "variable_delayed"),
        ("del a^&b", "caret"),
        ("del a^.txt", "caret"),
        ('del "a^.txt"', "caret"),
        ("d^el a.txt", "caret"),
        ("del $HOME", "variable_dollar"),
        ('del "$(calc)"', "variable_dollar"),
        ("del $(calc)", "subexpression"),
        ("del `x", "backtick"),
        ('del "a`$x"', "backtick"),
        ("del a.txt;b.txt", "separator_semicolon"),
        ("del a.txt,b.txt", "delimiter_comma"),
        ("del,a.txt", "command_not_allowed"),
        ("del=a.txt", "assignment"),
        ("del;a.txt", "separator_semicolon"),
        ("del a.txt=b.txt", "delimiter_equals"),
        ("copy a.txt+b.txt c.txt", "concatenation"),
        ('copy "a.txt+b.txt" c.txt', "concatenation"),
        ("copy a.txt c.txt+,,", "concatenation"),
        ("(del a.txt)", "grouping"),
        ("del (a.txt)", "grouping"),
        ("del {a}", "script_block"),
        ("del @x", "splatting"),
        ("del @('x')", "array_expression"),
        ("del #x", "comment"),
        ("del <# x #> a.txt", "block_comment"),
        ("@del a.txt", "echo_prefix"),
        ("@echo off", "echo_prefix"),
        ("del 'a.txt'", "single_quote"),
        ("del it's.txt", "single_quote"),
        ('del a"b c".txt', "quote_inside_word"),
        ('del "a"b', "quote_inside_word"),
        ('del "a""b"', "quote_inside_word"),
        ('del "a.txt', "unclosed_quote"),
        ('"del" a.txt', "command_quoted"),
        ("del “a.txt”", "smart_quote"),
        ('del "a”b"', "smart_quote"),
        ("del ‘a.txt’", "smart_quote"),
        ("del –x", "smart_dash"),
        ("del —x", "smart_dash"),
        ("del -x", "dash"),
        ("del -Recurse src", "dash"),
        ("del a[1].txt", "bracket"),
        ('del "[.]env"', "bracket"),
        ("del a.txt\ncalc", "newline"),
        ("del a.txt\r\ncalc", "newline"),
        ("del a.txt^\ncalc", "line_continuation"),
        ("del a\u00a0b", "control_character"),
        ("del a\u3000b", "control_character"),
        ("del a\u200bb", "control_character"),
        ("del a\u202eb", "control_character"),
        ("del a\x1ab", "control_character"),
        ("del /p a.txt", "switch_not_allowed"),
        ("del /a:h a.txt", "switch_not_allowed"),
        ("del /ah a.txt", "switch_not_allowed"),
        ("del /x a.txt", "switch_not_allowed"),
        ("del /? a.txt", "switch_not_allowed"),
        ("copy /l a.txt b", "switch_not_allowed"),
        ("copy /d a.txt b", "switch_not_allowed"),
        ("move /x a.txt b", "switch_not_allowed"),
        ("ren /y a.txt b", "switch_not_allowed"),
        ("del/q a.txt", "command_qualified"),
        ("del a.txt/q", "slash_in_name"),
        ("del src/util.py", "slash_in_name"),
        ("del build/s", "slash_in_name"),
        ("del", "operands"),
        ("del /q", "operands"),
        ("copy a.txt", "operands"),
        ("copy /y docs\\readme.md", "operands"),
        ("move a.txt b.txt docs", "operands"),
        ("ren a.txt", "operands"),
        ('del ""', "path_empty"),
        ("ren a.txt src\\b.txt", "rename_path"),
        ("ren a.txt .\\b.txt", "rename_path"),
        ('ren a.txt "src/b.txt"', "rename_path"),
        ("ren a.txt b.txt:s", "rename_path"),
        ("ren a.txt ..", "rename_path"),
        ("ren *.txt *x*", "target_pattern"),
        ("ren a.txt ?env", "target_pattern"),
        ("copy a.txt *.bak", "target_pattern"),
        ("del nosuch.txt", "source_missing"),
        ("copy nosuch.txt b.txt", "source_missing"),
        ("copy a.txt nosuch\\b.txt", "folder_missing"),
        ("copy a.txt nosuch\\", "folder_missing"),
        ("del nosuch\\*", "folder_missing"),
        ("del src\\*\\x.py", "glob_folder"),
        ("del src\\*\\..\\..\\x", "glob_parent"),
        ("del build\\*.tmp:s", "path_stream"),
        ("del con.*", "path_device"),
        ("del GIT~*", "path_short_name"),
        ("del GIT~?", "path_short_name"),
        ("del CLAUDE~1.MD", "path_short_name"),
        ("del C:\\*", "path_drive"),
        ("del \\*", "path_rooted"),
        ("del \\\\server\\share\\*", "path_share"),
        ("del ..\\*", "outside_workspace"),
        ("copy a.txt \\??\\C:\\x", "path_namespace"),
        ("copy a.txt ..\\", "outside_workspace"),
        ("copy nul a.txt", "path_device"),
        ("copy a.txt PRN", "path_device"),
        ("cd src", "change_folder"),
        ("cd..", "change_folder"),
        ("chdir \\", "change_folder"),
        ("pushd src", "change_folder"),
        ("call del a.txt", "wrapper"),
        ("start calc", "wrapper"),
        ("CMD /c del a.txt", "wrapper"),
        ("cmd.exe /c calc", "wrapper"),
        ("wsl rm a.txt", "wrapper"),
        ("for %i in (*) do del %i", "loop"),
        ("if exist a.txt del a.txt", "loop"),
        ("forfiles /c calc", "loop"),
        ("rd /s /q build", "command_not_allowed"),
        ("erase a.txt", "command_not_allowed"),
        ("rename a.txt b.txt", "command_not_allowed"),
        ("xcopy a b", "command_not_allowed"),
        ("md x", "command_not_allowed"),
        ("dir", "command_not_allowed"),
        ("type .env", "command_not_allowed"),
        ("mklink l C:\\", "command_not_allowed"),
        ("del.exe a.txt", "command_not_allowed"),
        (".\\del a.txt", "command_qualified"),
        ("C:\\del.bat", "command_qualified"),
        ("set X=1", "command_not_allowed"),
        ("ｄｅｌ a.txt", "command_not_allowed"),
        ("ls", "command_not_allowed"),
        ("rm -rf .", "command_not_allowed"),
    ],
)
def test_everything_else_is_refused_by_name(
    shared_workspace: Path, command: str, rule: str
) -> None:
    assert _rule(shared_workspace, command) == rule


@pytest.mark.parametrize(
    "command",
    [
        "del {WS}",
        "del .",
        "del .\\",
        "del src\\..",
        "del {WS}\\src\\..\\",
        "del /s /q .",
        "move {WS} docs",
        "move . docs",
        "ren . x",
        "ren {WS} x",
    ],
)
def test_taking_the_workspace_itself_away_ends_the_run(
    shared_workspace: Path, command: str
) -> None:
    verdict = _judge(shared_workspace, command)
    assert isinstance(verdict, Deny)
    assert (verdict.rule, verdict.interrupt) == ("workspace_root", True)


@pytest.mark.parametrize(
    "pattern", ["*", "*.*", "?*", "????????.???", ".\\*", "{WS}\\*", "src\\..\\*", "**", "*.?*"]
)
@pytest.mark.parametrize("command", ["del {}", "del /s /q {}", "move {} docs", "ren {} *.bak"])
def test_patterns_that_take_all_of_the_root_are_refused(
    shared_workspace: Path, command: str, pattern: str
) -> None:
    verdict = _judge(shared_workspace, command.format(pattern))
    assert isinstance(verdict, Deny)
    assert verdict.rule in {"glob_root", "secret_file", "protected_path"}


@pytest.mark.parametrize(
    "command",
    [
        "del .env",
        "del .ENV",
        "del .e*",
        "del .*",
        "copy .env x.txt",
        "copy .Env.local x.txt",
        "copy *.* docs",
        "copy * docs",
        "copy .env* docs",
        "copy .?nv docs",
        "copy . docs",
        "copy .claude docs",
        "copy a.txt .claude\\x",
        "copy a.txt .GIT\\hooks\\pre-commit",
        "copy a.txt CLAUDE.MD",
        "copy a.txt docs\\claude.md",
        "copy a.txt logs\\",
        "copy a.txt .vscode",
        "move .mcp.json x",
        "move .claude x",
        "move .git\\config x",
        "move a.txt id_rsa",
        "move cl* docs",
        "ren a.txt .env",
        "ren a.txt .mcp.json",
        "ren a.txt .bashrc",
        "ren .claude claude",
        "ren .gitignore *.env",
        "ren *.txt *.pem",
        "ren nothing*.xyz *.pem",
        "ren nothing*.xyz .env",
        "ren src\\nothing*.xyz NUL",
        "del /s *.json",
        "del /s settings.json",
        "del /q .git\\hooks\\*",
        "del .git\\hooks\\nothing*.xyz",
        "move .claude\\nothing* x",
        "del /s /q .git",
        "del logs\\app.log",
    ],
)
def test_protected_names_are_refused_in_every_spelling(
    shared_workspace: Path, command: str
) -> None:
    assert isinstance(_judge(shared_workspace, command), Deny)


@pytest.mark.parametrize(
    "command",
    ["copy e* docs", "copy en* x.txt", "copy ??v* docs", "copy *~? x.txt", "move cl*.* x"],
)
def test_patterns_may_take_protected_files_by_their_short_names(
    workspace: Path, command: str
) -> None:
    (workspace / "CLAUDE.md").unlink()
    assert isinstance(_judge(workspace, command), Deny)


def test_a_working_directory_outside_refuses_everything(workspace: Path) -> None:
    for cwd in ("C:\\", str(workspace.parent), "src", "", f"{workspace}\\..\\outdir"):
        for command in ("del a.txt", f"del {workspace}\\a.txt", "Get-ChildItem"):
            verdict = validate_windows_command(command, root=workspace, cwd=cwd)
            assert isinstance(verdict, Deny)
            assert verdict.rule == "cwd_outside"


def test_only_listed_commands_run(workspace: Path) -> None:
    def judge(command: str) -> Verdict:
        return validate_windows_command(
            command, root=workspace, cwd=workspace, commands=frozenset({"copy", "Get-ChildItem"})
        )

    assert isinstance(judge("copy a.txt c.txt"), Allow)
    assert isinstance(judge("get-childitem"), Allow)
    refused = judge("del a.txt")
    assert isinstance(refused, Deny)
    assert refused.hint == "Allowed are copy, Get-ChildItem."


def test_too_many_files_or_words_are_refused(tmp_path: Path) -> None:
    for i in range(2100):
        (tmp_path / f"file{i}.tmp").touch()
    assert _rule(tmp_path, "del f*.tmp") == "glob_too_wide"
    assert _rule(tmp_path, "del " + "*?" * 20) == "glob_too_wide"
    assert _rule(tmp_path, "del " + "a " * 600) == "too_many_words"
    assert _rule(tmp_path, "del " + "a" * 5000) == "command_too_long"


def test_a_pattern_that_happens_to_take_everything_is_refused(tmp_path: Path) -> None:
    for name in ("a1.txt", "a2.txt", ".gitignore"):
        (tmp_path / name).touch()
    assert _rule(tmp_path, "del a*") == "glob_root"
    assert _rule(tmp_path, "Remove-Item a*.txt") == "glob_root"
    assert isinstance(_judge(tmp_path, "del a1*"), Allow)
