"""Generated command lines: what is allowed runs as judged, and no input takes long or raises."""

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.paths.workspace import Place, Workspace
from policies.rules import shipped_rules
from policies.shell.commands import GRAMMARS
from policies.tools import validate_bash_command
from policies.verdict import Allow, Deny, Verdict
from tests.unit.policies.corpus import build_workspace

ALL = replace(shipped_rules(), commands=frozenset(GRAMMARS))

_COMMANDS = st.sampled_from([*GRAMMARS, "echo", "r''m"])
_WORDS = st.sampled_from(
    [
        *(
            "-r",
            "-f",
            "-rf",
            "-la",
            "-t",
            "-tsrc",
            "--",
            "--recursive",
            "--target-directory=src",
            "-p",
        ),
        *(
            "a.txt",
            "b.txt",
            "src",
            "src/",
            "./src",
            "src/../a.txt",
            "data/*.csv",
            "*.md",
            "*",
            "new",
        ),
        *(
            "'a b.txt'",
            '"it\'s.txt"',
            "it\\'s.txt",
            "项目",
            "'$(id)'",
            "';id'",
            "-x",
            "./-x",
            "'*'",
        ),
        *(
            "..",
            "../outside.txt",
            "/etc/passwd",
            "~",
            "$HOME",
            ".env",
            ".claude",
            "CLAUDE.md",
            "logs",
        ),
        *(
            ";",
            "&&",
            "|",
            ">",
            "a>b",
            "`id`",
            "$(id)",
            "{a,b}",
            "#",
            "\\",
            "'",
            '"',
            "\n",
            "out",
            "out/",
        ),
    ]
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = build_workspace(tmp_path_factory.mktemp("properties"))
    (workspace / "out").symlink_to("../outdir")
    return workspace


def _bash_words(line: str, cwd: Path) -> list[str]:
    done = subprocess.run(
        ["/bin/bash", "-r", "-c", f"printf '%s\\0' {line}"],
        cwd=cwd,
        env={"PATH": "/nonexistent", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().split("\0")[:-1]


@settings(
    max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_COMMANDS, st.lists(_WORDS, max_size=5), st.sampled_from([" ", "  ", "\t", ""]))
def test_an_allowed_command_runs_as_the_words_that_were_judged(
    root: Path, command: str, words: list[str], gap: str
) -> None:
    text = f"{command} {gap.join(words) or gap}"
    verdict = validate_bash_command(text, root=root, cwd=root, rules=ALL)
    if not isinstance(verdict, Allow):
        assert verdict.rule != "policy_error"
        return
    assert verdict.updated_input is not None
    line = str(verdict.updated_input["command"])
    argv = shlex.split(line)
    assert argv[0] == command
    assert shlex.join(argv) == line
    assert _bash_words(line, root) == argv
    for operand in argv[argv.index("--") + 1 :] if "--" in argv else ():
        assert isinstance(Workspace(root, root).locate(operand, follow=False), Place)
    if "--exclude-dir" not in line:  # each judgement adds these anew
        assert validate_bash_command(line, root=root, cwd=root, rules=ALL) == verdict


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(max_size=60), st.text(max_size=10))
def test_any_text_gets_a_verdict(root: Path, command: str, cwd: str) -> None:
    for line in (command, f"ls {command}", f"rm '{command}'", f"find {command}", f"grep {command}"):
        verdict = validate_bash_command(line, root=root, cwd=cwd or root, rules=ALL)
        assert isinstance(verdict, Allow | Deny)
        assert verdict.rule != "policy_error"


MOST_CALLS = 2_500_000
"""Of functions, in one verdict; an honest one needs some hundred."""


def _count_calls(command: str, root: Path) -> tuple[int, Verdict]:
    """Judge a line and count the functions that it calls: work, whatever the machine's speed."""
    count = 0

    def tally(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(tally)
    try:
        verdict = validate_bash_command(command, root=root, cwd=root, rules=ALL)
    finally:
        sys.setprofile(None)
    return count, verdict


@pytest.mark.parametrize(
    "command",
    [
        "ls " + "a" * 100_000,
        "ls " + "* " * 10_000,
        "ls " + "'" * 100_000,
        "ls " + "\\ " * 50_000,
        "ls " + "(" * 100_000,
        "ls " + "$(" * 50_000,
        "ls " + "{" * 100_000,
        "a" * 100_000,
        "ls " + "* " * 2_000,
        "ls " + "*/" * 2_000,
        "ls " + "*a" * 2_000,
        "ls " + "./" * 2_000,
        "ls " + "src/../" * 580,
        "ls *" + "/." * 2_000,
        "ls " + "[a-z]" * 800,
        "ls " + "[" * 4_000,
        "ls " + "*/*/* " * 300,
        "ls " + "''" * 2_000,
        "ls " + "'a'\"b\"" * 600,
        "rm -rf " + "src " * 500,
        "cp -r " + "src " * 500 + "docs",
        "mv " + "src " * 500 + "docs",
        "mkdir -p " + "a/" * 2_000,
        "mkdir -p " + "a/../" * 800,
        "rmdir -p " + ("a/" * 60 + " ") * 33,
        "rmdir -p " + "a/" * 2_000,
        "ls -" + "l" * 4_000,
        "find . " + "-not " * 800,
        "grep -r x " + "src " * 500,
    ],
)
def test_hostile_lines_are_judged_in_bounded_work(root: Path, command: str) -> None:
    calls, verdict = _count_calls(command, root)
    assert calls < MOST_CALLS
    assert verdict.rule != "policy_error"
    if len(command) > 5_000:
        assert (calls < 500, verdict.rule) == (True, "command_too_long")


def test_the_work_grows_with_the_line_and_not_faster(root: Path) -> None:
    for piece in ("a", "'a' ", "\\ ", "a/", "*x ", "./", "[a]"):
        short, _ = _count_calls("ls " + piece * 100, root)
        long, _ = _count_calls("ls " + piece * 400, root)
        assert long < 6 * short + 20_000, piece


def test_many_patterns_over_many_files_are_judged_in_bounded_work(tmp_path: Path) -> None:
    for i in range(3000):
        (tmp_path / f"{'ab' * 40}{i}").write_text("", encoding="utf-8")
    calls, verdict = _count_calls("ls " + "*a*a*a*a*a*a*a*z " * 200, tmp_path)
    assert calls < MOST_CALLS
    assert isinstance(verdict, Deny)
    assert verdict.rule == "glob_too_wide"
