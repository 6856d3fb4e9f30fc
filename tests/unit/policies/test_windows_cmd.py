"""Command lines for cmd: four commands, listed switches, names that cmd and PowerShell read alike."""

from pathlib import Path

from policies.verdict import Allow, Deny, Verdict
from tests.support.tables import read_pairs, read_table_text
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


RUNS = read_pairs("windows-cmd-runs")


def test_plain_commands_run_quoted_anew(shared_workspace: Path) -> None:
    assert {command: _runs(shared_workspace, command) for command in RUNS} == RUNS


REFUSED = read_table_text("windows-cmd-refused")


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
