"""The commands that rules switch on one by one: what runs of them, and what does not."""

import os
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from policies.paths.protected import secret_folders_any_case
from policies.paths.protected_names import SECRET_PATTERNS
from policies.rules import Rules, shipped_rules
from policies.shell.commands import GRAMMARS
from policies.shell.judge import MAX_RUN_CHARS
from policies.tools import validate_bash_command
from policies.verdict import Allow, Deny, Verdict
from tests.unit.policies.corpus import build_workspace

FURTHER = sorted(set(GRAMMARS) - shipped_rules().commands)
ALL = replace(shipped_rules(), commands=frozenset(GRAMMARS))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = build_workspace(tmp_path_factory.mktemp("further"))
    tree = workspace / "tree"
    (tree / ".ssh").mkdir(parents=True)
    for name in (".env", ".ENV.local", ".ssh/id", "Server.KEY", "credentials.json"):
        (tree / name).write_text("needle secret\n", encoding="utf-8")
    for name in ("plain.txt", "项目.md", ".env.example.md"):
        (tree / name).write_text("needle plain\n", encoding="utf-8")
    (workspace / "out").symlink_to("../outdir")
    (workspace / "linked").mkdir()
    (workspace / "linked" / "e").symlink_to("../tree")
    (workspace / "-x").write_text("x", encoding="utf-8")
    return workspace


def judge(command: str, root: Path, rules: Rules = ALL) -> Verdict:
    return validate_bash_command(command, root=root, cwd=root, rules=rules)


def run_line(command: str, root: Path) -> str:
    verdict = judge(command, root)
    assert isinstance(verdict, Allow), verdict
    assert verdict.updated_input is not None
    return str(verdict.updated_input["command"])


def output(command: str, root: Path) -> str:
    """Give what an allowed command writes in real bash."""
    done = subprocess.run(
        ["/bin/bash", "-c", run_line(command, root)],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
        text=True,
    )
    return done.stdout


@pytest.mark.parametrize("name", FURTHER)
def test_each_is_off_until_a_rule_switches_on_just_that_one(root: Path, name: str) -> None:
    operands = {"pwd": "", "diff": "a.txt b.txt", "grep": "x a.txt", "touch": "new.txt"}
    command = f"{name} {operands.get(name, 'a.txt')}"
    off = judge(command, root, shipped_rules())
    assert isinstance(off, Deny)
    assert (off.rule, off.hint is None) == ("command_not_allowed", False)
    only = replace(shipped_rules(), commands=frozenset({name}))
    on = judge(command, root, only)
    assert isinstance(on, Allow), on
    assert on.changes == (name in {"touch", "rmdir"})
    others = [one for one in GRAMMARS if one != name]
    verdicts = [judge(f"{one} a.txt b.txt", root, only) for one in others]
    assert {v.rule for v in verdicts} == {"command_not_allowed"}


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("touch new.txt", "touch -- new.txt"),
        ("touch -cr a.txt b.txt", "touch -c -r a.txt -- b.txt"),
        ("touch --reference a.txt b.txt", "touch --reference=a.txt -- b.txt"),
        ("touch -d '2020-01-01 10:00' b.txt", "touch -d '2020-01-01 10:00' -- b.txt"),
        ("rmdir -p e/f/g", "rmdir -p -- e/f/g"),
        ("pwd -P", "pwd -P"),
        ("head -5 a.txt", "head -n 5 -- a.txt"),
        ("head -n5 a.txt", "head -n 5 -- a.txt"),
        ("head --lines -5 a.txt", "head --lines=-5 -- a.txt"),
        ("head -qc 9 a.txt", "head -q -c 9 -- a.txt"),
        ("tail -n +2 a.txt", "tail -n +2 -- a.txt"),
        ("tail -20 a.txt", "tail -n 20 -- a.txt"),
        ("wc -lw data/*.csv", "wc -l -w -- data/1.csv data/2.csv"),
        ("stat -c '%n %s' a.txt", "stat -c '%n %s' -- a.txt"),
        ("file -b --mime-type a.txt", "file -b --mime-type -- a.txt"),
        ("du -sh", "du -s -h --"),
        ("du -d1 src", "du -d 1 -- src"),
        ("du --max-depth 1 src", "du --max-depth=1 -- src"),
        ("diff -U3 a.txt b.txt", "diff -U 3 -- a.txt b.txt"),
        ("diff -r src docs", "diff -r -- src docs"),
        ("grep -in 'a|b' a.txt", "grep -i -n -e 'a|b' -- a.txt"),
        ("grep -e -x -- -x", "grep -e -x -- -x"),
        ("grep -- -x a.txt", "grep -e -x -- a.txt"),
        ("grep '=x' a.txt", "grep -e '=x' -- a.txt"),
        ("grep -f a.txt b.txt", "grep -f a.txt -- b.txt"),
        ("grep -A2 -3 x a.txt", "grep -A 2 -C 3 -e x -- a.txt"),
        ("grep 报告 a.txt", "grep -e '报告' -- a.txt"),
        ("find", "find ."),
        ("find src -name '*.py'", "find src -name '*.py'"),
        ("find . -name *.py", "find . -name '*.py'"),
        ("find '!x' '(y' -print", "find './!x' './(y' -print"),
        ("find ./-x", "find ./-x"),
        (
            "find . \\( -name a -o -name b \\) -not -empty",
            "find . '(' -name a -o -name b ')' -not -empty",
        ),
        (
            "find . -type f,d -size +1k -mtime -5 -maxdepth 2",
            "find . -type f,d -size +1k -mtime -5 -maxdepth 2",
        ),
        ("find . -newer a.txt", "find . -newer a.txt"),
        ("find docs -name '*.md' -printf '%p %s\\n'", "find docs -name '*.md' -printf '%p %s\\n'"),
        ("find 项目 -printf '文件 %f'", "find '项目' -printf '文件 %f'"),
        ("find src -ls", "find src -ls"),
        ("find 项目 -iname '*.MD'", "find '项目' -iname '*.MD'"),
    ],
)
def test_what_runs_is_the_judged_command_quoted_anew(root: Path, command: str, line: str) -> None:
    assert run_line(command, root) == line
    assert run_line(line, root) == line


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("touch -r ../outside.txt b.txt", "outside_workspace"),
        ("touch --reference=out/keep.txt b.txt", "link_outside"),
        ("touch -r .env b.txt", "secret_file"),
        ("touch -r - b.txt", "option_not_allowed"),
        ("touch -ra.txt -rb.txt c", "option_not_allowed"),
        ("touch --ref=a.txt b.txt", "option_not_allowed"),
        ("touch -d 'TZ=\"x\" 2020' b.txt", "option_not_allowed"),
        ("touch -h b.txt", "option_not_allowed"),
        ("touch .git/x", "protected_path"),
        ("touch tree/.env", "secret_file"),
        ("touch out/x", "link_outside"),
        ("touch", "operands"),
        ("rmdir .", "workspace_root"),
        ("rmdir src/..", "workspace_root"),
        ("rmdir out/", "link_outside"),
        ("rmdir .git", "protected_path"),
        ("rmdir -p ./e/f", "parents_spelling"),
        ("rmdir -p src/../e", "parents_spelling"),
        ("rmdir -p /e", "parents_spelling"),
        ("rmdir --parents .github/workflows", "protected_path"),
        ("rmdir --par e", "option_not_allowed"),
        ("pwd x", "operands"),
        ("pwd --help", "option_not_allowed"),
        ("head", "operands"),
        ("head -n x a.txt", "option_not_allowed"),
        ("head --lines=5k a.txt", "option_not_allowed"),
        ("head .env", "secret_file"),
        ("head a.txt ../outside.txt", "outside_workspace"),
        ("head -", "operand_dash"),
        ("tail -f a.txt", "option_not_allowed"),
        ("tail -5f a.txt", "option_not_allowed"),
        ("tail -F a.txt", "option_not_allowed"),
        ("tail --follow=name a.txt", "option_not_allowed"),
        ("tail --retry a.txt", "option_not_allowed"),
        ("tail --pid=1 a.txt", "option_not_allowed"),
        ("tail -s 1 a.txt", "option_not_allowed"),
        ("wc --files0-from=a.txt", "option_not_allowed"),
        ("wc --files0=a.txt", "option_not_allowed"),
        ("wc", "operands"),
        ("stat -L a.txt", "option_not_allowed"),
        ("stat -f a.txt", "option_not_allowed"),
        ("stat .env", "secret_file"),
        ("stat out", "link_outside"),
        ("file -m a.txt b.txt", "option_not_allowed"),
        ("file -f a.txt", "option_not_allowed"),
        ("file -C", "option_not_allowed"),
        ("file -L a.txt", "option_not_allowed"),
        ("file -z a.txt", "option_not_allowed"),
        ("file -s a.txt", "option_not_allowed"),
        ("file --magic-file=a.txt b.txt", "option_not_allowed"),
        ("file -P name=1 a.txt", "option_not_allowed"),
        ("du --files0-from=a.txt", "option_not_allowed"),
        ("du -X a.txt .", "option_not_allowed"),
        ("du --exclude-from=a.txt .", "option_not_allowed"),
        ("du -L .", "option_not_allowed"),
        ("du -D out", "option_not_allowed"),
        ("du -H out", "option_not_allowed"),
        ("du --dereference .", "option_not_allowed"),
        ("du out", "link_outside"),
        ("du ..", "outside_workspace"),
        ("diff a.txt", "operands"),
        ("diff a.txt b.txt notes.md", "operands"),
        ("diff a.txt -", "operand_dash"),
        ("diff --to-file=a.txt b.txt", "option_not_allowed"),
        ("diff --from-file=a.txt b.txt", "option_not_allowed"),
        ("diff -l a.txt b.txt", "option_not_allowed"),
        ("diff --paginate a.txt b.txt", "option_not_allowed"),
        ("diff -X a.txt src docs", "option_not_allowed"),
        ("diff -S x src docs", "option_not_allowed"),
        ("diff a.txt .env", "secret_file"),
        ("diff a.txt ../outside.txt", "outside_workspace"),
        ("diff -r tree src", "secret_inside"),
        ("diff tree src", "secret_inside"),
        ("diff a.txt tree", "secret_inside"),
        ("diff -r linked src", "link_inside"),
        ("grep x", "operands"),
        ("grep -e x", "operands"),
        ("grep", "operands"),
        ("grep x -", "operand_dash"),
        ("grep x .env", "secret_file"),
        ("grep x ../outside.txt", "outside_workspace"),
        ("grep x out/keep.txt", "link_outside"),
        ("grep -R x .", "option_not_allowed"),
        ("grep -rR x .", "option_not_allowed"),
        ("grep --dereference-recursive x .", "option_not_allowed"),
        ("grep -d recurse x .", "option_not_allowed"),
        ("grep --directories=recurse x .", "option_not_allowed"),
        ("grep -f .env a.txt", "secret_file"),
        ("grep --file=../outside.txt a.txt", "outside_workspace"),
        ("grep -f a.txt -f .env a.txt", "secret_file"),
        ("grep -f - a.txt", "option_not_allowed"),
        ("grep --exclude-from=a.txt x .", "option_not_allowed"),
        ("grep -r x tree/.ssh", "secret_file"),
        ("find ..", "outside_workspace"),
        ("find . ..", "outside_workspace"),
        ("find out", "link_outside"),
        ("find out/", "link_outside"),
        ("find tree/.ssh", "secret_file"),
        ("find ''", "path_empty"),
        ("find ~", "tilde"),
        ("find . -exec id ';'", "option_not_allowed"),
        ("find . -exec id \\;", "option_not_allowed"),
        ("find . -execdir id +", "option_not_allowed"),
        ("find . -ok id", "option_not_allowed"),
        ("find . -okdir id", "option_not_allowed"),
        ("find . -delete", "option_not_allowed"),
        ("find . -fprint x", "option_not_allowed"),
        ("find . -fprint0 x", "option_not_allowed"),
        ("find . -fprintf x y", "option_not_allowed"),
        ("find . -printf", "option_not_allowed"),
        ("find . -printf %p -delete", "option_not_allowed"),
        ("find . -fls x", "option_not_allowed"),
        ("find -L .", "option_not_allowed"),
        ("find -H out", "option_not_allowed"),
        ("find -P .", "option_not_allowed"),
        ("find . -follow", "option_not_allowed"),
        ("find -files0-from a.txt", "option_not_allowed"),
        ("find -D exec .", "option_not_allowed"),
        ("find -O3 .", "option_not_allowed"),
        ("find -- .", "option_not_allowed"),
        ("find . -newer ../outside.txt", "outside_workspace"),
        ("find . -newer .env", "secret_file"),
        ("find . -newermt 2020-01-01", "option_not_allowed"),
        ("find . -samefile a.txt", "option_not_allowed"),
        ("find . -name", "option_not_allowed"),
        ("find . -maxdepth x", "option_not_allowed"),
        ("find . -size 1X", "option_not_allowed"),
        ("find . -type z", "option_not_allowed"),
        ("find . -name x ..", "option_not_allowed"),
        ("find . ',' -delete", "option_not_allowed"),
        ("find . ! -name x", "history_expansion"),
        ("find . ( -name x )", "grouping"),
        ("find . " + "-empty " * 101, "find_expression"),
    ],
)
def test_what_runs_writes_follows_or_waits_is_refused(root: Path, command: str, rule: str) -> None:
    verdict = judge(command, root)
    assert isinstance(verdict, Deny), verdict
    assert verdict.rule == rule
    assert len(verdict.message) < 400


@pytest.mark.parametrize(
    "command",
    [
        "grep -r needle .",
        "grep -r needle",
        "grep -r needle tree",
        "grep -r -e needle tree/../tree",
        "grep -r --include='.env*' needle .",
        "grep -r --include='*' --include='.ENV*' needle tree",
        "grep -r --exclude='plain*' needle tree",
        "grep -rE --exclude-dir=src 'needle|secret' .",
        "grep -r needle linked/e",
    ],
)
def test_grep_reveals_no_secret_in_any_folder(root: Path, command: str) -> None:
    said = output(command, root)
    assert "secret" not in said
    if "plain" not in command and "include" not in command:
        assert "plain" in said


def test_grep_finds_what_is_there(root: Path) -> None:
    found = output("grep -rl needle tree", root).split()
    assert sorted(found) == ["tree/plain.txt", "tree/项目.md"]
    assert output("grep -rl --include=*.md needle tree", root).split() == ["tree/项目.md"]


def test_names_of_secrets_are_no_secret(root: Path) -> None:
    assert "tree/.env" in output("find tree -name '.e*'", root)
    assert output("find . -name plain.txt", root) == "./tree/plain.txt\n"


def test_every_secret_is_left_out_and_the_line_stays_short(root: Path) -> None:
    line = run_line("grep -r x .", root)
    assert line.count("--exclude=") == len(SECRET_PATTERNS)
    assert line.count("--exclude-dir=") == len(SECRET_PATTERNS) + len(secret_folders_any_case())
    assert len(line) < MAX_RUN_CHARS // 2


def test_grep_leaves_out_secrets_that_are_told_by_their_folder(root: Path) -> None:
    for path in (
        "tree/.docker/config.json",
        "tree/.config/gh/hosts.yml",
        "tree/.cargo/credentials",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("secret needle\n", encoding="utf-8")
    (root / "tree" / ".docker" / "配置").mkdir()
    (root / "tree" / ".docker" / "配置" / "a.conf").write_text("needle here\n", encoding="utf-8")
    for command in (
        "grep -r needle .",
        "grep -r needle tree",
        "grep -r needle tree/.config/npm/..",
    ):
        verdict = judge(command, root)
        assert isinstance(verdict, Deny) or "secret" not in output(command, root)
    for command in ("grep -r needle tree/.docker", "grep -r x tree/.config/.", "diff -r tree src"):
        verdict = judge(command, root)
        assert isinstance(verdict, Deny), command
        assert verdict.rule == "secret_inside"
    assert "needle here" in output("grep -r needle tree/.docker/配置", root)


def test_a_device_or_a_socket_is_not_read(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        for command in ("cat sock", "head sock", "grep x sock", "cp sock b", "wc a.txt sock"):
            verdict = judge(command, workspace)
            assert isinstance(verdict, Deny)
            assert verdict.rule == "special_file"
        for command in ("rm sock", "stat sock"):
            assert isinstance(judge(command, workspace), Allow)


def test_a_pipe_may_be_read(workspace: Path) -> None:
    """A way to talk to a program of one's own; the time limit ends a wait."""
    os.mkfifo(workspace / "pipe")
    assert isinstance(judge("cat pipe", workspace), Allow)


def test_rmdir_does_not_take_the_folder_that_it_runs_in(workspace: Path) -> None:
    (workspace / "e" / "f").mkdir(parents=True)
    verdict = validate_bash_command(
        f"rmdir {workspace}/e", root=workspace, cwd=workspace / "e", rules=ALL
    )
    assert isinstance(verdict, Deny)
    assert verdict.rule == "working_directory"
