"""The commands that rules switch on one by one: what runs of them, and what does not."""

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from policies.paths.protected import SECRET_PATTERNS, secret_folders_any_case
from policies.rules import Rules, shipped_rules
from policies.shell.commands import GRAMMARS
from policies.shell.judge import MAX_RUN_CHARS
from policies.tools import validate_bash_command
from policies.verdict import Allow, Deny, Verdict
from tests.support.tables import read_pairs, read_table_text
from tests.unit.policies.corpus import build_workspace, run_shell
from tests.unit.policies.judging import find_misses, line_of

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
    return line_of(judge(command, root))


def output(command: str, root: Path) -> str:
    """Return what an allowed command writes in real bash."""
    return run_shell(run_line(command, root), root).stdout


def test_each_is_off_until_a_rule_switches_on_just_that_one(root: Path) -> None:
    operands = {"pwd": "", "diff": "a.txt b.txt", "grep": "x a.txt", "touch": "new.txt"}
    for name in FURTHER:
        command = f"{name} {operands.get(name, 'a.txt')}"
        off = judge(command, root, shipped_rules())
        assert isinstance(off, Deny)
        assert (off.rule, off.hint is None) == ("command_not_allowed", False)
        only = replace(shipped_rules(), commands=frozenset({name}))
        on = judge(command, root, only)
        assert isinstance(on, Allow), on
        assert on.changes == (name in {"touch", "rmdir"})
        others = (other for other in GRAMMARS if other != name)
        rules = {judge(f"{other} a.txt b.txt", root, only).rule for other in others}
        assert rules == {"command_not_allowed"}


RUNS = read_pairs("further-commands-runs")


def test_what_runs_is_the_judged_command_quoted_anew(root: Path) -> None:
    assert {command: run_line(command, root) for command in RUNS} == RUNS
    lines = set(RUNS.values())
    assert {line: run_line(line, root) for line in lines} == {line: line for line in lines}


REFUSED = read_table_text("further-commands-refused")


def test_what_runs_writes_follows_or_waits_is_refused(root: Path) -> None:
    assert find_misses(REFUSED, lambda line: judge(line, root)) == []
    assert judge("find . " + "-empty " * 101, root).rule == "find_expression"


def test_grep_reveals_no_secret_in_any_folder(root: Path) -> None:
    for command in (
        *("grep -r needle .", "grep -r needle", "grep -r needle tree", "grep -r needle linked/e"),
        *("grep -r -e needle tree/../tree", "grep -r --include='.env*' needle ."),
        "grep -r --include='*' --include='.ENV*' needle tree",
        "grep -r --exclude='plain*' needle tree",
        "grep -rE --exclude-dir=src 'needle|secret' .",
    ):
        said = output(command, root)
        assert "secret" not in said, command
        assert "plain" in said or "plain" in command or "include" in command, command


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
        assert judge(command, root).rule == "secret_inside", command
    assert "needle here" in output("grep -r needle tree/.docker/配置", root)


def test_a_device_or_a_socket_is_not_read(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        for command in ("cat sock", "head sock", "grep x sock", "cp sock b", "wc a.txt sock"):
            assert judge(command, workspace).rule == "special_file"
        for command in ("rm sock", "stat sock"):
            assert isinstance(judge(command, workspace), Allow)


def test_a_pipe_may_be_read(workspace: Path) -> None:
    """A way to talk to a program of one's own; the time limit ends a wait."""
    os.mkfifo(workspace / "pipe")
    assert isinstance(judge("cat pipe", workspace), Allow)


def test_rmdir_does_not_take_the_folder_that_it_runs_in(workspace: Path) -> None:
    (workspace / "e" / "f").mkdir(parents=True)
    assert (
        validate_bash_command(
            f"rmdir {workspace}/e", root=workspace, cwd=workspace / "e", rules=ALL
        ).rule
        == "working_directory"
    )
