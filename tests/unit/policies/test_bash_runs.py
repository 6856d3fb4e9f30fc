"""Allowed commands as bash runs them."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.paths.workspace import Place, Workspace
from policies.rules import shipped_rules
from policies.shell.commands import GRAMMARS
from policies.tools import validate_bash_command
from policies.verdict import Allow, Deny
from tests.unit.policies.corpus import Case, build_workspace, fill, read_cases, run_shell
from tests.unit.policies.judging import bash_words, line_of

ALL = replace(shipped_rules(), commands=frozenset(GRAMMARS))

_COMMANDS = st.sampled_from([*GRAMMARS, "echo", "r''m"])
_LISTED = r"""
-r ¦ -f ¦ -rf ¦ -la ¦ -t ¦ -tsrc ¦ -- ¦ --recursive ¦ --target-directory=src ¦ -p ¦ a.txt ¦ b.txt ¦ src
¦ src/ ¦ ./src ¦ src/../a.txt ¦ data/*.csv ¦ *.md ¦ * ¦ new ¦ 'a b.txt' ¦ "it's.txt" ¦ it\'s.txt ¦ 项目
¦ '$(id)' ¦ ';id' ¦ -x ¦ ./-x ¦ '*' ¦ .. ¦ ../outside.txt ¦ /etc/passwd ¦ ~ ¦ $HOME ¦ .env ¦ .claude
¦ CLAUDE.md ¦ logs ¦ ; ¦ && ¦ | ¦ > ¦ a>b ¦ `id` ¦ $(id) ¦ {a,b} ¦ # ¦ \ ¦ ' ¦ " ¦ out ¦ out/
"""
_WORDS = st.sampled_from([*(word.strip() for word in _LISTED.split("¦")), "\n"])
_QUIET = [HealthCheck.function_scoped_fixture]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = build_workspace(tmp_path_factory.mktemp("properties"))
    (workspace / "out").symlink_to("../outdir")
    return workspace


@settings(max_examples=125, deadline=None, suppress_health_check=_QUIET)
@given(_COMMANDS, st.lists(_WORDS, max_size=5), st.sampled_from([" ", "  ", "\t", ""]))
def test_an_allowed_command_runs_as_the_words_that_were_judged(
    root: Path, command: str, words: list[str], gap: str
) -> None:
    text = f"{command} {gap.join(words) or gap}"
    verdict = validate_bash_command(text, root=root, cwd=root, rules=ALL)
    if not isinstance(verdict, Allow):
        assert verdict.rule != "policy_error"
        return
    line = line_of(verdict)
    argv = shlex.split(line)
    assert argv[0] == command
    assert shlex.join(argv) == line
    assert bash_words(line, root) == argv
    for operand in argv[argv.index("--") + 1 :] if "--" in argv else ():
        assert isinstance(Workspace(root, root).locate(operand, follow=False), Place)
    if "--exclude-dir" not in line:  # each judgement adds these anew
        assert validate_bash_command(line, root=root, cwd=root, rules=ALL) == verdict


@settings(max_examples=50, deadline=None, suppress_health_check=_QUIET)
@given(st.text(max_size=60), st.text(max_size=10))
def test_any_text_gets_a_verdict(root: Path, command: str, cwd: str) -> None:
    for line in (command, f"ls {command}", f"rm '{command}'", f"find {command}", f"grep {command}"):
        verdict = validate_bash_command(line, root=root, cwd=cwd or root, rules=ALL)
        assert isinstance(verdict, Allow | Deny)
        assert verdict.rule != "policy_error"


SAMPLES = 24


def _snapshot(folder: Path) -> dict[str, str]:
    """Return every name below a folder with its content or its link's target."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = path.read_text(encoding="utf-8") if path.is_file() else "folder"
    return found


def _sample() -> list[Case]:
    cases = [case for case in read_cases("policy-allow.jsonl") if case.tool == "Bash"]
    changing = [case for case in cases if case.cls in {"rm", "mv", "cp", "mkdir", "near_miss"}]
    return changing[:: max(1, len(changing) // SAMPLES + 1)][:SAMPLES]


def test_an_allowed_command_does_what_was_written_and_touches_nothing_outside(
    tmp_path: Path,
) -> None:
    cases = _sample()
    assert len(cases) > 15
    for case in cases:
        meant = build_workspace(tmp_path / case.id / "meant", case.setup)
        done = build_workspace(tmp_path / case.id / "done", case.setup)
        before = _snapshot(done.parent)
        verdict = validate_bash_command(fill(case.input, done)["command"], root=done, cwd=done)
        run_shell(fill(case.input, meant)["command"], meant)
        run_shell(line_of(verdict), done)
        after = _snapshot(done.parent)
        assert after == _snapshot(meant.parent), case.id
        outside = {k: v for k, v in before.items() if not k.startswith("ws/")}
        assert {k: v for k, v in after.items() if not k.startswith("ws/")} == outside, case.id
