"""Command lines for cmd: four commands, listed switches, names that cmd and PowerShell read alike."""

from pathlib import Path

from policies.verdict import Allow, Deny, Verdict
from tests.unit.policies.judging import find_misses, validate_windows_command


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


RUNS = {
    "del a.txt": 'del "a.txt"',
    "  DeL\t.\\A.TXT ": 'del ".\\A.TXT"',
    'del "a b.txt" b.txt': 'del "a b.txt" "b.txt"',
    "del /F/Q a.txt": 'del /f /q "a.txt"',
    "del a.txt /q": 'del /q "a.txt"',
    "del build\\cache\\*": 'del "build\\cache\\*"',
    "del *.log": 'del "*.log"',
    "del build\\?.tmp": 'del "build\\?.tmp"',
    "del nothing*.xyz": 'del "nothing*.xyz"',
    'del "img\\IMG_2024 (1).png"': 'del "img\\IMG_2024 (1).png"',
    'del "src/util.py"': 'del "src\\util.py"',
    "del 报告.docx résumé.txt 🎉party.txt": 'del "报告.docx" "résumé.txt" "🎉party.txt"',
    "del 报告（最终版）.docx": 'del "报告（最终版）.docx"',
    "del notes.md~": 'del "notes.md~"',
    "copy a.txt c.txt": 'copy "a.txt" "c.txt"',
    "COPY /Y /b a.txt docs\\": 'copy /y /b "a.txt" "docs"',
    'copy a.txt "dir with space\\"': 'copy "a.txt" "dir with space"',
    "copy .env.example sample.txt": 'copy ".env.example" "sample.txt"',
    "copy CLAUDE.md rules.txt": 'copy "CLAUDE.md" "rules.txt"',
    "move *.log archive": 'move "*.log" "archive"',
    "move 项目\\子目录 備份": 'move "项目\\子目录" "備份"',
    "move /-y src\\util.py .": 'move /-y "src\\util.py" "."',
    "ren src\\main.py app.py": 'ren "src\\main.py" "app.py"',
    "ren 项目 project": 'ren "项目" "project"',
}


def test_plain_commands_run_quoted_anew(shared_workspace: Path) -> None:
    assert {command: _runs(shared_workspace, command) for command in RUNS} == RUNS


REFUSED = r"""
command_empty: {EMPTY} ¦ {U+0020}{U+0009}{U+0020}
operator_ampersand: del a.txt & calc ¦ del a.txt&calc
operator_and: del a.txt&&calc
operator_or: del nosuch||calc
operator_pipe: del a.txt|more
redirect: del a.txt>nul ¦ del a.txt 2>&1 ¦ copy<x a.txt
variable_percent: del %TEMP%\x ¦ del "%CD%\a.txt" ¦ del %~dp0a.txt ¦ del a%%b
variable_delayed: del !X! ¦ del "!X!"
caret: del a^&b ¦ del a^.txt ¦ del "a^.txt" ¦ d^el a.txt
variable_dollar: del $HOME ¦ del "$(calc)"
subexpression: del $(calc)
backtick: del `x ¦ del "a`$x"
separator_semicolon: del a.txt;b.txt ¦ del;a.txt
delimiter_comma: del a.txt,b.txt
command_not_allowed: del,a.txt ¦ rd /s /q build ¦ erase a.txt ¦ rename a.txt b.txt ¦ xcopy a b
    ¦ md x ¦ dir ¦ type .env ¦ mklink l C:\ ¦ del.exe a.txt ¦ set X=1 ¦ ｄｅｌ a.txt ¦ ls ¦ rm -rf .
assignment: del=a.txt
delimiter_equals: del a.txt=b.txt
concatenation: copy a.txt+b.txt c.txt ¦ copy "a.txt+b.txt" c.txt ¦ copy a.txt c.txt+,,
grouping: (del a.txt) ¦ del (a.txt)
script_block: del {a}
splatting: del @x
array_expression: del @('x')
comment: del #x
block_comment: del <# x #> a.txt
echo_prefix: @del a.txt ¦ @echo off
single_quote: del 'a.txt' ¦ del it's.txt
quote_inside_word: del a"b c".txt ¦ del "a"b ¦ del "a""b"
unclosed_quote: del "a.txt
command_quoted: "del" a.txt
smart_quote: del “a.txt” ¦ del "a”b" ¦ del ‘a.txt’
smart_dash: del –x ¦ del —x
dash: del -x ¦ del -Recurse src
bracket: del a[1].txt ¦ del "[.]env"
newline: del a.txt{U+000A}calc ¦ del a.txt{U+000D}{U+000A}calc
line_continuation: del a.txt^{U+000A}calc
control_character: del a{U+00A0}b ¦ del a{U+3000}b ¦ del a{U+200B}b ¦ del a{U+202E}b
    ¦ del a{U+001A}b
switch_not_allowed: del /s docs\ ¦ del /s /q build\*.tmp ¦ del /p a.txt ¦ del /a:h a.txt ¦ del /ah a.txt ¦ del /x a.txt ¦ del /? a.txt
    ¦ copy /l a.txt b ¦ copy /d a.txt b ¦ move /x a.txt b ¦ ren /y a.txt b
command_qualified: del/q a.txt ¦ .\del a.txt ¦ C:\del.bat
slash_in_name: del a.txt/q ¦ del src/util.py ¦ del build/s
operands: del ¦ del /q ¦ copy a.txt ¦ copy /y docs\readme.md ¦ move a.txt b.txt docs ¦ ren a.txt
path_empty: del ""
rename_path: ren a.txt src\b.txt ¦ ren a.txt .\b.txt ¦ ren a.txt "src/b.txt" ¦ ren a.txt b.txt:s
    ¦ ren a.txt ..
copied_folder: copy src docs ¦ copy do* archive
target_pattern: ren data\*.csv *.txt ¦ ren *.txt *x* ¦ ren a.txt ?env ¦ copy a.txt *.bak
source_missing: del nosuch.txt ¦ copy nosuch.txt b.txt
folder_missing: copy a.txt nosuch\b.txt ¦ copy a.txt nosuch\ ¦ del nosuch\*
glob_folder: del src\*\x.py ¦ del src\*\..\..\x
path_stream: del build\*.tmp:s
path_device: del con.* ¦ copy nul a.txt ¦ copy a.txt PRN
path_short_name: del GIT~* ¦ del GIT~? ¦ del CLAUDE~1.MD
path_drive: del C:\*
path_rooted: del \*
path_share: del \\server\share\*
outside_workspace: del ..\* ¦ copy a.txt ..\
path_namespace: copy a.txt \??\C:\x
change_folder: cd src ¦ cd.. ¦ chdir \ ¦ pushd src
wrapper: call del a.txt ¦ start calc ¦ CMD /c del a.txt ¦ cmd.exe /c calc ¦ wsl rm a.txt
loop: for %i in (*) do del %i ¦ if exist a.txt del a.txt ¦ forfiles /c calc
"""


def test_everything_else_is_refused_by_name(shared_workspace: Path) -> None:
    assert find_misses(REFUSED, lambda line: _judge(shared_workspace, line)) == []


def test_taking_the_workspace_itself_away_ends_the_run(shared_workspace: Path) -> None:
    for command in (
        *("del {WS}", "del .", "del .\\", "del src\\..", "del {WS}\\src\\..\\", "del /f /q ."),
        *("move {WS} docs", "move . docs", "ren . x", "ren {WS} x"),
    ):
        verdict = _judge(shared_workspace, command)
        assert isinstance(verdict, Deny), command
        assert (verdict.rule, verdict.interrupt) == ("workspace_root", True)


def test_patterns_that_take_all_of_the_root_are_refused(shared_workspace: Path) -> None:
    patterns = ("*", "*.*", "?*", "????????.???", ".\\*", "{WS}\\*", "src\\..\\*", "**", "*.?*")
    for command in ("del {}", "del /q {}", "move {} docs", "ren {} x"):
        rules = {_rule(shared_workspace, command.replace("{}", pattern)) for pattern in patterns}
        assert rules <= {"glob_root", "secret_file", "protected_path"}, command


PROTECTED = r"""
del .env ¦ del .ENV ¦ del .e* ¦ del .* ¦ copy .env x.txt ¦ copy .Env.local x.txt
copy *.* docs ¦ copy * docs ¦ copy .env* docs ¦ copy .?nv docs ¦ copy . docs
copy .claude docs ¦ copy a.txt .claude\x ¦ copy a.txt .GIT\hooks\pre-commit
copy a.txt CLAUDE.MD ¦ copy a.txt docs\claude.md ¦ copy a.txt logs\ ¦ copy a.txt .vscode
move .mcp.json x ¦ move .claude x ¦ move .git\config x ¦ move a.txt id_rsa ¦ move cl* docs
ren a.txt .env ¦ ren a.txt .mcp.json ¦ ren a.txt .bashrc ¦ ren .claude claude
ren .gitignore *.env ¦ ren *.txt *.pem ¦ ren nothing*.xyz *.pem ¦ ren nothing*.xyz .env
ren src\nothing*.xyz NUL ¦ del /s *.json ¦ del /s settings.json ¦ del /q .git\hooks\*
del .git\hooks\nothing*.xyz ¦ move .claude\nothing* x ¦ del /s /q .git ¦ del logs\app.log
"""


def test_protected_names_are_refused_in_every_spelling(shared_workspace: Path) -> None:
    commands = [c.strip() for line in PROTECTED.strip().splitlines() for c in line.split("¦")]
    verdicts = {command: _judge(shared_workspace, command) for command in commands}
    assert [command for command, v in verdicts.items() if not isinstance(v, Deny)] == []


def test_patterns_may_take_protected_files_by_their_short_names(workspace: Path) -> None:
    (workspace / "CLAUDE.md").unlink()
    for command in (
        "copy e* docs",
        "copy en* x.txt",
        "copy ??v* docs",
        "copy *~? x.txt",
        "move cl*.* x",
    ):
        assert isinstance(_judge(workspace, command), Deny), command


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
