"""Command lines: which command, which options, which operands, and what comes out to run."""

from pathlib import Path

import pytest

from policies.tools import validate_bash_command
from policies.verdict import Allow, Deny, Verdict
from tests.support.tables import read_pairs, read_table_text
from tests.unit.policies.judging import find_misses


def judge(command: str, root: Path, cwd: Path | None = None) -> Verdict:
    return validate_bash_command(command, root=root, cwd=cwd or root)


def run_line(command: str, root: Path, cwd: Path | None = None) -> str:
    """Return the line that would run; fails if the command is refused."""
    verdict = judge(command, root, cwd)
    assert isinstance(verdict, Allow), verdict
    assert verdict.updated_input is not None
    return str(verdict.updated_input["command"])


def denied_rule(command: str, root: Path, cwd: Path | None = None) -> str:
    """Return the rule that refuses; fails if the command is allowed."""
    verdict = judge(command, root, cwd)
    assert isinstance(verdict, Deny), verdict
    return verdict.rule


RUNS = read_pairs("bash-runs")


def test_what_runs_is_the_judged_command_quoted_anew(shared_workspace: Path) -> None:
    assert {command: run_line(command, shared_workspace) for command in RUNS} == RUNS
    assert {line: run_line(line, shared_workspace) for line in RUNS.values()} == {
        line: line for line in RUNS.values()
    }


REFUSED = read_table_text("bash-refused")


def test_other_commands_options_and_operands_are_refused(shared_workspace: Path) -> None:
    assert find_misses(REFUSED, lambda line: judge(line, shared_workspace)) == []


def test_a_refused_command_is_told_what_would_work(shared_workspace: Path) -> None:
    for command, tool in [("find .", "Glob"), ("grep x .", "Grep"), ("head a", "Read")]:
        verdict = validate_bash_command(command, root=shared_workspace, cwd=shared_workspace)
        assert isinstance(verdict, Deny)
        assert verdict.hint is not None
        assert tool in verdict.hint


def test_reading_commands_change_nothing_and_the_others_do(shared_workspace: Path) -> None:
    verdicts = {
        command.split()[0]: judge(command, shared_workspace)
        for command in ("ls", "cat a.txt", "rm a.txt", "mv a.txt c", "cp a.txt c", "mkdir c")
    }
    changing = {name for name, v in verdicts.items() if isinstance(v, Allow) and v.changes}
    assert changing == {"rm", "mv", "cp", "mkdir"}


def test_the_root_is_never_deleted_or_moved(shared_workspace: Path) -> None:
    for command in ("rm -rf .", "rm -rf ./", "rm -rf src/..", "mv . x"):
        verdict = judge(command, shared_workspace)
        assert isinstance(verdict, Deny), command
        assert (verdict.rule, verdict.interrupt) == ("workspace_root", True)
    other = judge("rm ../outside.txt", shared_workspace)
    assert isinstance(other, Deny)
    assert not other.interrupt


def test_the_root_is_known_under_every_spelling(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "alias").symlink_to(workspace)
    alias = tmp_path / "alias"
    for root in (workspace, alias):
        assert denied_rule(f"rm -rf {workspace}", root) == "workspace_root"
        assert run_line(f"cat {workspace}/a.txt", root) == f"cat -- {workspace}/a.txt"
    assert run_line(f"cat {alias}/a.txt", alias) == f"cat -- {alias}/a.txt"
    assert denied_rule(f"rm -rf {alias}", workspace) == "outside_workspace"


def test_the_working_directory_is_not_deleted_from_inside_it(workspace: Path) -> None:
    assert (
        denied_rule(f"rm -rf {workspace}/src", workspace, workspace / "src") == "working_directory"
    )


def test_paths_start_from_the_working_directory(workspace: Path) -> None:
    assert run_line("cat main.py", workspace, workspace / "src") == "cat -- main.py"
    assert denied_rule("cat ../a.txt", workspace, workspace / "src") == "cwd_ambiguous"
    assert denied_rule("cp a.txt x", workspace, workspace / ".git") == "protected_path"


def test_a_working_directory_outside_refuses_everything(workspace: Path) -> None:
    assert denied_rule("ls", workspace, workspace.parent) == "cwd_outside"
    assert denied_rule(f"cat {workspace}/a.txt", workspace, Path("/")) == "cwd_outside"
    assert denied_rule("ls", workspace, Path("src")) == "cwd_outside"


def test_wildcards_alone_do_not_sweep_the_root(workspace: Path) -> None:
    for command in ("rm -rf *", "rm *", "rm -rf ./*", "rm -r ?*", "rm -rf */*", "mv * archive"):
        assert denied_rule(command, workspace) == "glob_root"
    assert denied_rule("rm -rf *", workspace, workspace / "src") == "glob_root"
    assert denied_rule("rm *.*", workspace) == "glob_root"
    assert run_line("rm -f *~", workspace) == "rm -f -- 'notes.md~'"
    assert run_line("rm *-*", workspace) == "rm -- '*-*'"
    assert run_line("rm *，*", workspace) == "rm -- '*，*'"
    assert run_line("rm -f b*.txt", workspace) == "rm -f -- b.txt"
    assert run_line("rm -rf build/*", workspace).endswith(
        "build/cache build/out.o build/x.tmp build/y.tmp"
    )


def test_a_pattern_that_takes_every_visible_name_sweeps_too(tmp_path: Path) -> None:
    for name in ("a1", "a2", ".hidden"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    assert denied_rule("rm a*", tmp_path) == "glob_root"
    (tmp_path / "b").write_text("x", encoding="utf-8")
    assert run_line("rm a*", tmp_path) == "rm -- a1 a2"


def test_a_folder_with_something_protected_is_not_removed_moved_or_copied(workspace: Path) -> None:
    (workspace / "app").mkdir()
    (workspace / "app" / ".env").write_text("K=V", encoding="utf-8")
    (workspace / "app" / "配置" / ".docker").mkdir(parents=True)
    (workspace / "app" / "配置" / ".docker" / "config.json").write_text("{}", encoding="utf-8")
    for command in ("rm -rf app", "mv app app2", "cp -r app app2"):
        assert denied_rule(command, workspace) == "protected_inside"
    for command in ("rm -rf app/配置", "mv app/配置 b", "cp -r app/配置 docs"):
        verdict = validate_bash_command(command, root=workspace, cwd=workspace)
        assert isinstance(verdict, Deny), command
        assert " holds .docker/config.json, which is protected" in verdict.reason
        assert "beside it" in (verdict.hint or "")
    assert denied_rule("rm -rf app/.env", workspace) == "secret_file"


def test_a_dependency_folder_is_removed_with_its_settings(workspace: Path) -> None:
    (workspace / "node_modules" / "pkg" / ".vscode").mkdir()
    assert run_line("rm -rf node_modules", workspace) == "rm -r -f -- node_modules"
    assert denied_rule("cp -r node_modules deps", workspace) == "protected_inside"


def test_nothing_lands_under_a_protected_name(workspace: Path) -> None:
    (workspace / "workflows").mkdir()
    (workspace / "tree" / "workflows").mkdir(parents=True)
    (workspace / "tree" / "logs").mkdir()
    (workspace / ".github").mkdir()
    assert denied_rule("mv workflows .github", workspace) == "protected_path"
    assert denied_rule("mv a.txt .github/workflows", workspace) == "protected_path"
    assert denied_rule("cp -r tree/. .github", workspace) == "protected_inside"
    assert denied_rule("cp -r tree/. .", workspace) == "protected_inside"
    assert denied_rule("cp -r tree/ .", workspace) == "protected_inside"
    assert run_line("cp -r tree docs", workspace) == "cp -r -- tree docs"


def test_a_copy_does_not_follow_links_that_wait_in_its_target(workspace: Path) -> None:
    (workspace / "merged").mkdir()
    (workspace / "merged" / "main.py").symlink_to("../CLAUDE.md")
    assert denied_rule("cp -r src/. merged", workspace) == "link_inside"
    assert denied_rule("cp src/main.py merged", workspace) == "protected_path"


def test_a_copy_makes_no_link_that_leads_outside(workspace: Path) -> None:
    (workspace / "src" / "out").symlink_to("../../outside.txt")
    assert denied_rule("cp -r src copy", workspace) == "link_inside"
    assert denied_rule("cp -P src/out copy", workspace) == "link_outside"


def test_a_link_itself_may_be_removed_but_not_what_it_leads_to(workspace: Path) -> None:
    (workspace / "out").symlink_to("../outdir")
    assert run_line("rm -rf out", workspace) == "rm -r -f -- out"
    assert denied_rule("rm -rf out/", workspace) == "link_outside"
    assert denied_rule("rm -rf out/keep.txt", workspace) == "link_outside"
    assert denied_rule("ls out", workspace) == "link_outside"


def test_a_source_must_say_under_which_name_it_lands(workspace: Path) -> None:
    assert denied_rule("cp -r src/.. docs", workspace) == "source_name"


def test_a_command_looks_through_a_bounded_number_of_files(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policies.paths.trees.MAX_TREE_ENTRIES", 5)
    assert denied_rule("rm -rf build build build", workspace) == "tree_too_large"
    assert run_line("rm -rf img", workspace) == "rm -r -f -- img"


def test_whatever_goes_wrong_inside_is_a_denial(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policies.shell.judge.divide", lambda *_: 1 / 0)
    assert denied_rule("ls", workspace) == "policy_error"
    verdict = validate_bash_command(7, root=workspace, cwd=workspace)  # type: ignore[arg-type]
    assert isinstance(verdict, Deny)


def test_mkdir_makes_nothing_on_the_way_that_the_tidied_path_does_not_show(workspace: Path) -> None:
    for operand in (
        *("new/.git/..", "..x/new/.git/src/../..", "../newdir/../ws/x", "new/../src"),
        "src/../new/../x",
    ):
        assert denied_rule(f"mkdir -p {operand}", workspace) == "parents_spelling"
    assert run_line("mkdir -p src/../docs/new", workspace) == "mkdir -p -- src/../docs/new"


def test_a_link_that_leads_inside_does_not_come_to_lead_outside(workspace: Path) -> None:
    (workspace / "src" / "up").symlink_to("../docs")
    (workspace / "src" / "main").symlink_to("main.py")
    (workspace / "tree" / "deep").mkdir(parents=True)
    (workspace / "tree" / "deep" / "up").symlink_to("../../a.txt")
    for command in (
        *("mv src/up .", "cp -P src/up .", "cp -a src/up .", "mv src/up x"),
        *("mv tree/deep .", "cp -r tree/deep ."),
    ):
        assert denied_rule(command, workspace) == "link_turned"
    assert run_line("mv src/main .", workspace) == "mv -- src/main ."
    assert run_line("mv tree/deep src", workspace) == "mv -- tree/deep src"


def test_a_link_that_leads_to_itself_is_no_folder_and_no_way(workspace: Path) -> None:
    (workspace / "loop").symlink_to("loop")
    assert run_line("cat */main.py", workspace) == "cat -- src/main.py"
    for command in ("cat loop", "mkdir -p loop/new", "rm -rf loop/x"):
        assert denied_rule(command, workspace) == "link_outside"
    assert run_line("rm loop", workspace) == "rm -- loop"
