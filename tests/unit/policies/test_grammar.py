"""The second reading of a command line, and what becomes of a disagreement."""

import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.shell.grammar import read_words
from policies.shell.words import split_words
from policies.tools import validate_bash_command
from policies.verdict import Deny

_NAMES = st.text(
    alphabet=st.characters(
        min_codepoint=32, exclude_categories=["Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs", "Cn"]
    ),
    min_size=1,
    max_size=12,
) | st.sampled_from(
    ["if", "then", "do", "in", "[", "]", "[[", "time", "12", "2x", "a=b", "-", "--", "项目"]
)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls", ["ls"]),
        ("ls -la src", ["ls", "-la", "src"]),
        ("cat 'a b' \"it's\" it\\'s 'it'\\''s'", ["cat", "a b", "it's", "it's", "it's"]),
        ("ls 1 -2 +3 4.txt [12].csv", ["ls", "1", "-2", "+3", "4.txt", "[12].csv"]),
        ("rm a=b if then \"\" ''", ["rm", "a=b", "if", "then", "", ""]),
        ('cat 项目.md 🎉 " x "', ["cat", "项目.md", "🎉", " x "]),
        ("time ls", ["time", "ls"]),
    ],
)
def test_a_plain_command_gives_its_words(command: str, words: list[str]) -> None:
    assert read_words(command) == tuple(words)


@pytest.mark.parametrize(
    "command",
    [
        *("", " ", "# x", "ls # x", "ls; id", "ls && id", "ls || id", "ls | id", "ls &", "ls\nid"),
        *("ls > x", "ls < x", "ls 2>&1", "ls <<< x", "cat <<E\nx\nE", "ls <(id)", "ls $(id)"),
        *("ls `id`", "ls $x", "ls ${x}", 'ls "$x"', 'ls "`id`"', "ls $'x'", 'ls $"x"', "ls $((1))"),
        *(
            "A=1 ls",
            "A=1",
            "( ls )",
            "{ ls; }",
            "! ls",
            "[ -f x ]",
            "[[ -f x ]]",
            "if x; then y; fi",
        ),
        *(
            "for i in x; do y; done",
            "f() { ls; }",
            "declare -x A",
            "unset A",
            "ls 'a",
            'ls "a',
            "ls a\\",
        ),
        *("ls ${ id; }", "ls !(a)", "((1))", "case x in x) y;; esac", "ls |", "ls &&"),
    ],
)
def test_anything_else_gives_none(command: str) -> None:
    assert read_words(command) is None


@given(st.lists(_NAMES, max_size=6))
@settings(max_examples=300, deadline=None)
def test_both_readings_agree_on_quoted_names(names: list[str]) -> None:
    line = " ".join(["ls", *("'" + name.replace("'", "'\\''") + "'" for name in names)])
    words = split_words(line)
    assert not isinstance(words, Deny)
    assert read_words(line) == tuple(word.text for word in words) == ("ls", *names)
    assert read_words(shlex.join(["ls", *names])) == ("ls", *names)


@pytest.mark.parametrize("command", ["ls [\\;", "ls a[\\|b"])
def test_where_the_grammar_stumbles_the_command_is_denied(
    shared_workspace: Path, command: str
) -> None:
    """Bash reads one word here, and so does our tokenizer; the doubt is enough."""
    words = split_words(command)
    assert not isinstance(words, Deny)
    assert len(words) == 2
    verdict = validate_bash_command(command, root=shared_workspace, cwd=shared_workspace)
    assert isinstance(verdict, Deny)
    assert verdict.rule == "parsers_disagree"


@pytest.mark.parametrize("second", [None, ("ls",), ("ls", "a.txt", "b"), ("ls", "b.txt")])
def test_a_disagreement_denies_under_its_own_rule(
    shared_workspace: Path, monkeypatch: pytest.MonkeyPatch, second: tuple[str, ...] | None
) -> None:
    monkeypatch.setattr("policies.shell.judge.read_words", lambda _: second)
    verdict = validate_bash_command("ls a.txt", root=shared_workspace, cwd=shared_workspace)
    assert isinstance(verdict, Deny)
    assert verdict.rule == "parsers_disagree"
    assert verdict.hint is not None
