"""Generated command lines: what is allowed runs as judged, and no input takes long or raises."""

import shlex
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.bash import validate_bash_command
from policies.options import GRAMMARS
from policies.paths import Place, Workspace
from policies.verdict import Allow, Deny

_COMMANDS = st.sampled_from([*GRAMMARS, "find", "echo", "r''m"])
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
def root(tmp_path_factory: pytest.TempPathFactory, shared_workspace: Path) -> Path:
    if not (shared_workspace / "out").is_symlink():
        (shared_workspace / "out").symlink_to("../outdir")
    return shared_workspace


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
    verdict = validate_bash_command(f"{command} {gap.join(words) or gap}", root=root, cwd=root)
    if not isinstance(verdict, Allow):
        assert verdict.rule != "policy_error"
        return
    assert verdict.updated_input is not None
    line = str(verdict.updated_input["command"])
    argv = shlex.split(line)
    assert argv[0] == command
    assert shlex.join(argv) == line
    assert _bash_words(line, root) == argv
    for operand in argv[argv.index("--") + 1 :]:
        assert isinstance(Workspace(root, root).locate(operand, follow=False), Place)
    again = validate_bash_command(line, root=root, cwd=root)
    assert again == verdict


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(max_size=60), st.text(max_size=10))
def test_any_text_gets_a_verdict(root: Path, command: str, cwd: str) -> None:
    for line in (command, f"ls {command}", f"rm '{command}'"):
        verdict = validate_bash_command(line, root=root, cwd=cwd or root)
        assert isinstance(verdict, Allow | Deny)
        assert verdict.rule != "policy_error"


@pytest.mark.parametrize(
    "command",
    [
        "ls " + "a" * 100_000,
        "ls " + "* " * 10_000,
        "ls " + "'" * 100_000,
        "ls " + "\\ " * 50_000,
        "ls " + "(" * 100_000,
        "a" * 100_000,
        "ls " + "* " * 2_000,
        "ls " + "*/" * 2_000,
        "ls " + "*a" * 2_000,
        "ls " + "./" * 2_000,
        "ls " + "src/../" * 580,
        "ls *" + "/." * 2_000,
        "ls " + "[a-z]" * 800,
        "rm -rf " + "src " * 500,
        "cp -r " + "src " * 500 + "docs",
        "mkdir -p " + "a/" * 2_000,
        "ls -" + "l" * 4_000,
    ],
)
def test_hostile_lines_are_judged_quickly(root: Path, command: str) -> None:
    began = time.perf_counter()
    verdict = validate_bash_command(command, root=root, cwd=root)
    assert time.perf_counter() - began < 2.0
    assert verdict.rule != "policy_error"


def test_many_patterns_over_many_files_are_judged_quickly(tmp_path: Path) -> None:
    for i in range(3000):
        (tmp_path / f"{'ab' * 40}{i}").write_text("", encoding="utf-8")
    began = time.perf_counter()
    verdict = validate_bash_command("ls " + "*a*a*a*a*a*a*a*z " * 200, root=tmp_path, cwd=tmp_path)
    assert time.perf_counter() - began < 5.0
    assert isinstance(verdict, Deny)
    assert verdict.rule == "glob_too_wide"
