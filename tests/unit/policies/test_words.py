"""Command lines as bash reads and runs them: literal words, and everything else refused by name."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.paths.workspace import Place, Workspace
from policies.rules import shipped_rules
from policies.shell.commands import GRAMMARS
from policies.shell.grammar import read_words
from policies.shell.words import split_words
from policies.tools import validate_bash_command
from policies.verdict import Allow, Deny
from policies.visible_text import MAX_COMMAND_CHARS
from tests.support.tables import read_pairs, read_table_text
from tests.unit.policies.corpus import Case, build_workspace, fill, read_cases, run_shell
from tests.unit.policies.judging import bash_words, denied, line_of, read_table


def split(command: str) -> tuple[str, ...] | str:
    """Return the words, or the rule that refuses."""
    words = denied(lambda: split_words(command))
    return words.rule if isinstance(words, Deny) else tuple(word.text for word in words)


PLAIN = read_pairs("words-plain")


def test_both_read_a_plain_command_as_bash_does(tmp_path: Path) -> None:
    assert {command: split(command) for command in PLAIN} == PLAIN
    assert {command: read_words(command) for command in PLAIN} == PLAIN
    quoted = (command for command in PLAIN if not command.startswith("time"))
    assert all(bash_words(command, tmp_path, "-f") == list(PLAIN[command]) for command in quoted)
    assert split("") == split(" \t ") == ()


REFUSED = read_table_text("words-refused")


def test_every_other_construct_is_refused_under_its_own_name() -> None:
    found = {command: split(command) for command, _ in read_table(REFUSED)}
    assert found == dict(read_table(REFUSED))
    assert split("ls " + "a" * MAX_COMMAND_CHARS) == "command_too_long"
    assert split("ls " + "a " * 2000) == "too_many_words"


UNREADABLE = """
# x ¦ ls # x ¦ ls; id ¦ ls && id ¦ ls || id ¦ ls | id ¦ ls & ¦ ls > x ¦ ls < x ¦ ls 2>&1 ¦ ls <<< x
ls <(id) ¦ ls $(id) ¦ ls `id` ¦ ls $x ¦ ls ${x} ¦ ls "$x" ¦ ls "`x`" ¦ ls $'x' ¦ ls $"x" ¦ ls $((1))
A=1 ls ¦ A=1 ¦ ( ls ) ¦ { ls; } ¦ ! ls ¦ [ -f x ] ¦ [[ -f x ]] ¦ if x; then y; fi ¦ ls |
for i in x; do y; done ¦ f() { ls; } ¦ declare -x A ¦ unset A ¦ ls 'a ¦ ls "a ¦ ls a\\ ¦ ls &&
ls ${ id; } ¦ ls !(a) ¦ ((1)) ¦ case x in x) y;; esac
"""


def test_the_grammar_gives_no_words_for_anything_else() -> None:
    commands = [c.strip() for line in UNREADABLE.strip().splitlines() for c in line.split("¦")]
    commands += ["", " ", "ls\nid", "cat <<E\nx\nE"]
    assert [command for command in commands if read_words(command) is not None] == []


def test_wildcards_and_plain_spelling_are_known_for_each_word() -> None:
    words = split_words("rm '*.txt' \\* \"?\" *.txt a'*'b? r'm'")
    assert [word.text for word in words if word.is_glob] == ["*.txt", "a*b?"]
    assert [word.text for word in words if word.bare] == ["rm", "*.txt"]


_PIECES = st.sampled_from(
    [*" \t'\"\\/.-*?[]:,@%+=#~a1é报", "''", '""', "\\ ", "\\'", "' '", '" "', "'$x'", "a=b", "--"]
)


@settings(
    max_examples=75, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_PIECES, max_size=14).map("".join))
def test_an_accepted_line_has_the_words_that_bash_sees(tmp_path: Path, command: str) -> None:
    words = denied(lambda: split_words(command))
    if not isinstance(words, Deny):
        assert [word.text for word in words] == bash_words(command, tmp_path, "-f")


_NAMES = st.text(
    alphabet=st.characters(
        min_codepoint=32, exclude_categories=["Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs", "Cn"]
    ),
    min_size=1,
    max_size=12,
) | st.sampled_from(
    ["if", "then", "do", "in", "[", "]", "[[", "time", "12", "2x", "a=b", "-", "--", "项目"]
)


@settings(max_examples=75, deadline=None)
@given(st.lists(_NAMES, max_size=6))
def test_both_readings_agree_on_quoted_names(names: list[str]) -> None:
    line = " ".join(["ls", *("'" + name.replace("'", "'\\''") + "'" for name in names)])
    assert split(line) == read_words(line) == ("ls", *names)
    assert read_words(shlex.join(["ls", *names])) == ("ls", *names)


@pytest.mark.parametrize("second", [None, ("ls",), ("ls", "a.txt", "b"), ("ls", "b.txt")])
def test_a_disagreement_denies_under_its_own_rule(
    shared_workspace: Path, monkeypatch: pytest.MonkeyPatch, second: tuple[str, ...] | None
) -> None:
    root = shared_workspace
    for command in ("ls [\\;", "ls a[\\|b"):  # the grammar stumbles where bash reads one word
        assert len(split(command)) == 2
        assert validate_bash_command(command, root=root, cwd=root).rule == "parsers_disagree"
    monkeypatch.setattr("policies.shell.judge.read_words", lambda _: second)
    assert validate_bash_command("ls a.txt", root=root, cwd=root).rule == "parsers_disagree"


ALL = replace(shipped_rules(), commands=frozenset(GRAMMARS))

_COMMANDS = st.sampled_from([*GRAMMARS, "echo", "r''m"])
_LISTED = r"""
-r ¦ -f ¦ -rf ¦ -la ¦ -t ¦ -tsrc ¦ -- ¦ --recursive ¦ --target-directory=src ¦ -p ¦ a.txt
b.txt ¦ src
¦ src/ ¦ ./src ¦ src/../a.txt ¦ data/*.csv ¦ *.md ¦ * ¦ new ¦ 'a b.txt' ¦ "it's.txt"
it\'s.txt ¦ 项目
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
