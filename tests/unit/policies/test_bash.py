"""Command lines: which command, which options, which operands, and what comes out to run."""

from pathlib import Path

import pytest

from policies.tools import validate_bash_command
from policies.verdict import Allow, Deny, Verdict
from tests.support.tables import read_pairs, read_table_text
from tests.unit.policies.corpus import build_workspace
from tests.unit.policies.judging import find_misses, line_of


def judge(command: str, root: Path, cwd: Path | None = None) -> Verdict:
    return validate_bash_command(command, root=root, cwd=cwd or root)


def run_line(command: str, root: Path) -> str:
    return line_of(judge(command, root))


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
        verdict = judge(command, shared_workspace)
        assert isinstance(verdict, Deny)
        assert tool in (verdict.hint or "")


def test_reading_commands_change_nothing_and_the_others_do(shared_workspace: Path) -> None:
    verdicts = {
        command.split()[0]: judge(command, shared_workspace)
        for command in ("ls", "cat a.txt", "rm a.txt", "mv a.txt c", "cp a.txt c", "mkdir c")
    }
    changing = {name for name, v in verdicts.items() if isinstance(v, Allow) and v.changes}
    assert changing == {"rm", "mv", "cp", "mkdir"}


def test_only_what_would_take_the_root_away_ends_the_turn(shared_workspace: Path) -> None:
    for command in ("rm -rf .", "rm -rf ./", "rm -rf src/..", "mv . x", "rm ../outside.txt"):
        verdict = judge(command, shared_workspace)
        assert isinstance(verdict, Deny), command
        assert verdict.interrupt == ("outside" not in command)


FILES = {
    # removed, moved and copied as a whole
    "app/.env": "K=V",
    "app/配置/.docker/config.json": "{}",
    "node_modules/pkg/.vscode/x": "",
    # what lands under a protected name
    "workflows/x": "",
    "tree/workflows/x": "",
    "tree/logs/x": "",
    ".github/x": "",
    "ways/main.py": "",
    "narrow/a1": "",
    "narrow/a2": "",
    "narrow/.hidden": "",
}
LINKS = {
    "../alias": "ws",
    "out": "../outdir",
    "merged/main.py": "../CLAUDE.md",
    "leading/out": "../../outside.txt",
    "ways/up": "../docs",
    "ways/main": "main.py",
    "branch/deep/up": "../../a.txt",
    "loop": "loop",
}
HERE = r"""
workspace_root: rm -rf . ¦ rm -rf ./ ¦ rm -rf src/.. ¦ mv . x ¦ rm -rf {P}/ws
outside_workspace: rm -rf {P}/alias ¦ rm ../outside.txt
glob_root: rm -rf * ¦ rm * ¦ rm -rf ./* ¦ rm -r ?* ¦ mv * archive ¦ rm *.*
protected_inside: rm -rf app ¦ mv app app2 ¦ cp -r app app2 ¦ rm -rf app/配置 ¦ mv app/配置 b
    ¦ cp -r app/配置 docs ¦ cp -r node_modules deps ¦ cp -r tree/. .github ¦ cp -r tree/. .
    ¦ cp -r tree/ .
secret_file: rm -rf app/.env
protected_path: mv workflows .github ¦ mv a.txt .github/workflows ¦ cp src/main.py merged
    ¦ mv merged/main.py src/x
link_inside: cp -r src/. merged ¦ cp -r leading copy ¦ mv leading x ¦ mv merged x
link_outside: cp -P leading/out copy ¦ mv out x ¦ mv leading/out x ¦ mv loop x ¦ rm -rf out/
    ¦ rm -rf out/keep.txt ¦ ls out ¦ cat loop
    ¦ mkdir -p loop/new ¦ rm -rf loop/x
link_turned: mv ways/up . ¦ cp -P ways/up . ¦ cp -a ways/up . ¦ mv ways/up x ¦ mv branch/deep .
    ¦ cp -r branch/deep .
source_name: cp -r src/.. docs
parents_spelling: mkdir -p new/.git/.. ¦ mkdir -p ..x/new/.git/src/../..
    ¦ mkdir -p ../newdir/../ws/x
    ¦ mkdir -p new/../src ¦ mkdir -p src/../new/../x
"""
RUNS_HERE = {
    "cat {P}/ws/a.txt": "cat -- {P}/ws/a.txt",
    "rm -f *~": "rm -f -- 'notes.md~'",
    "rm *-*": "rm -- '*-*'",
    "rm *，*": "rm -- '*，*'",
    "rm -f b*.txt": "rm -f -- b.txt",
    "rm -rf build/*": "rm -r -f -- build/cache build/out.o build/x.tmp build/y.tmp",
    "rm -rf node_modules": "rm -r -f -- node_modules",
    "cp -r tree docs": "cp -r -- tree docs",
    "rm -rf out": "rm -r -f -- out",
    "mkdir -p src/../docs/new": "mkdir -p -- src/../docs/new",
    "mv ways/main .": "mv -- ways/main .",
    "mv branch/deep src": "mv -- branch/deep src",
    "cat [ls]*/main.py": "cat -- src/main.py",
    "rm loop": "rm -- loop",
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace with protected files in folders, and with links in every direction."""
    workspace = build_workspace(tmp_path_factory.mktemp("scene"))
    for name, text in FILES.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text, encoding="utf-8")
    for name, target in LINKS.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).symlink_to(target)
    return workspace


def test_what_an_operand_leads_to_or_holds_decides(scene: Path) -> None:
    """A link may itself be removed; nothing is read, made or taken away through it, or turned by moving it.

    One that leads outside or to something protected gets no other name.
    """
    parent = str(scene.parent)
    assert find_misses(HERE, lambda line: judge(line.replace("{P}", parent), scene)) == []
    runs = {line: run_line(line.replace("{P}", parent), scene) for line in RUNS_HERE}
    assert runs == {line: run.replace("{P}", parent) for line, run in RUNS_HERE.items()}


def test_the_root_is_known_under_another_name_too(scene: Path) -> None:
    alias = scene.parent / "alias"
    assert judge(f"rm -rf {scene}", alias).rule == "workspace_root"
    for root in (scene, alias):
        assert run_line(f"cat {root}/a.txt", alias) == f"cat -- {root}/a.txt"


ELSEWHERE = (
    ("src", "rm -rf {WS}/src", "working_directory"),
    ("src", "cat main.py", "bash_cat"),
    ("src", "cat ../a.txt", "cwd_ambiguous"),
    ("src", "rm -rf *", "glob_root"),
    (".git", "cp a.txt x", "protected_path"),
    (".ssh", "ls", "secret_file"),
    ("..", "ls", "cwd_outside"),
    ("/", "cat {WS}/a.txt", "cwd_outside"),
)


def test_paths_start_from_a_working_directory_inside(scene: Path) -> None:
    for cwd, command, rule in ELSEWHERE:
        found = judge(command.replace("{WS}", str(scene)), scene, (scene / cwd).resolve())
        assert found.rule == rule, command
    assert judge("ls", scene, Path("src")).rule == "cwd_outside"


def test_a_pattern_that_takes_every_visible_name_sweeps_too(
    scene: Path, shared_workspace: Path
) -> None:
    assert judge("rm -rf */*", shared_workspace).rule == "glob_root"
    narrow = scene / "narrow"
    assert judge("rm a*", narrow).rule == "glob_root"
    (narrow / "b").touch()
    assert run_line("rm a*", narrow) == "rm -- a1 a2"


def test_a_folder_is_refused_by_the_name_that_it_holds(scene: Path) -> None:
    verdict = judge("rm -rf app/配置", scene)
    assert isinstance(verdict, Deny)
    assert " holds .docker/config.json, which is protected" in verdict.reason
    assert "beside it" in (verdict.hint or "")


def test_a_command_looks_through_a_bounded_number_of_files(
    shared_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policies.paths.trees.MAX_TREE_ENTRIES", 5)
    assert judge("rm -rf build build build", shared_workspace).rule == "tree_too_large"
    assert run_line("rm -rf img", shared_workspace) == "rm -r -f -- img"


def test_no_command_puts_the_parts_of_a_repository_together(workspace: Path) -> None:
    for name in ("lib/objects", "lib/config", "parts/refs/x", "whole/objects", "whole/refs/x"):
        (workspace / name).mkdir(parents=True)
    for name in ("lib/HEAD", "whole/HEAD"):
        (workspace / name).touch()
    for line in ("cp -r parts/refs lib", "mv parts/refs lib", "mkdir lib/refs"):
        assert judge(line, workspace).rule == "protected_path", line
    for line in ("cp -r parts/. lib", "cp -r whole/. lib"):
        assert judge(line, workspace).rule == "protected_inside", line
    for line in ("cp -r parts lib", "cp -r whole copy", "mv whole copy"):
        assert judge(line, workspace).rule in {"bash_cp", "bash_mv"}, line
