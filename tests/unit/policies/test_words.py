"""The tokenizer: literal words as bash reads them, everything else refused under its own name."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.shell.words import MAX_COMMAND_CHARS, split_words
from policies.verdict import Deny


def _texts(command: str) -> list[str]:
    words = split_words(command)
    assert not isinstance(words, Deny), words
    return [word.text for word in words]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls", ["ls"]),
        ("  ls \t -la  ", ["ls", "-la"]),
        ("cat 'a b.txt'", ["cat", "a b.txt"]),
        ('cat "a b.txt"', ["cat", "a b.txt"]),
        (r"cat a\ b.txt", ["cat", "a b.txt"]),
        (r"cat 'it'\''s.txt'", ["cat", "it's.txt"]),
        ("cat ''", ["cat", ""]),
        ("cat a''b", ["cat", "ab"]),
        ("rm '$(x).txt' 'a;b' 'a|b' '`x`'", ["rm", "$(x).txt", "a;b", "a|b", "`x`"]),
        ("rm a#1.txt b~ c=d", ["rm", "a#1.txt", "b~", "c=d"]),
        ("cat 报告.docx 🎉.txt", ["cat", "报告.docx", "🎉.txt"]),
        ("", []),
        (" \t ", []),
    ],
)
def test_literal_words_are_read_as_bash_reads_them(command: str, words: list[str]) -> None:
    assert _texts(command) == words


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("ls; id", "operator_semicolon"),
        ("ls && id", "operator_and"),
        ("ls || id", "operator_or"),
        ("ls | id", "operator_pipe"),
        ("ls & id", "operator_background"),
        ("ls $(id)", "command_substitution"),
        ("ls `id`", "command_substitution"),
        ('ls "`id`"', "command_substitution"),
        ("ls $HOME", "parameter_expansion"),
        ("ls ${HOME}", "parameter_expansion"),
        ('ls "$HOME"', "parameter_expansion"),
        ("ls $((1))", "arithmetic"),
        ("ls $[1]", "arithmetic"),
        (r"cat $'\x2f'", "ansi_c_quoting"),
        ('cat $"x"', "locale_quoting"),
        ("ls > x", "redirect"),
        ("ls &> x", "redirect"),
        ("cat < x", "redirect"),
        ("cat << X", "heredoc"),
        ("cat <<< x", "herestring"),
        ("cat <(id)", "process_substitution"),
        ("cp a >(id)", "process_substitution"),
        ("(ls)", "grouping"),
        ("mkdir {a,b}", "brace_expansion"),
        ("! ls", "history_expansion"),
        ('ls "a!b"', "history_expansion"),
        ("ls ^a", "history_expansion"),
        ("ls # x", "comment"),
        ("ls ~", "tilde"),
        ("ls a=~", "tilde"),
        ("ls a=b:~", "tilde"),
        ("cat =ls", "equals"),
        ("ls\nid", "newline"),
        ("ls\r\nid", "newline"),
        ("cat 'a\nb'", "newline"),
        ("cat a\\\nb", "line_continuation"),
        (r"cat C:\x", "backslash"),
        ("cat a\\", "backslash"),
        (r'cat "a\"b"', "quoted_backslash"),
        ("cat 'a", "unclosed_quote"),
        ('cat "a', "unclosed_quote"),
        ("ls\x00", "control_character"),
        ("ls\u00a0x", "control_character"),
        ("ls\u2028x", "control_character"),
        ("rm \u202etxt.a", "control_character"),
        ("rm \U000e0072", "control_character"),
        ("rm \ud800", "control_character"),
    ],
)
def test_every_other_construct_is_refused_under_its_own_name(command: str, rule: str) -> None:
    verdict = split_words(command)
    assert isinstance(verdict, Deny)
    assert verdict.rule == rule
    assert verdict.hint


def test_a_quoted_wildcard_is_a_letter_like_any_other() -> None:
    words = split_words("rm '*.txt' \\* \"?\" *.txt a'*'b?")
    assert not isinstance(words, Deny)
    assert [word.is_glob for word in words] == [False, False, False, False, True, True]


def test_a_word_knows_whether_it_was_written_plainly() -> None:
    words = split_words("rm r'm' \\ ")
    assert not isinstance(words, Deny)
    assert [word.bare for word in words] == [True, False, False]


def test_a_long_command_and_many_words_are_refused() -> None:
    long = split_words("ls " + "a" * MAX_COMMAND_CHARS)
    many = split_words("ls " + "a " * 2000)
    assert isinstance(long, Deny)
    assert isinstance(many, Deny)
    assert (long.rule, many.rule) == ("command_too_long", "too_many_words")


def _bash_words(command: str, cwd: Path) -> list[str]:
    """Let a restricted bash without programs split the words, with globbing off."""
    done = subprocess.run(
        ["/bin/bash", "-r", "-f", "-c", f"printf '%s\\0' x {command}"],
        cwd=cwd,
        env={"PATH": "/nonexistent", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().split("\0")[1:-1]


_PIECES = st.sampled_from(
    [*" \t'\"\\/.-*?[]:,@%+=#~a1é报", "''", '""', "\\ ", "\\'", "' '", '" "', "'$x'", "a=b", "--"]
)


@settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_PIECES, max_size=14).map("".join))
def test_an_accepted_line_has_the_words_that_bash_sees(tmp_path: Path, command: str) -> None:
    words = split_words(command)
    if not isinstance(words, Deny):
        assert [word.text for word in words] == _bash_words(command, tmp_path)


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_split_or_refused_and_never_raises(command: str) -> None:
    assert isinstance(split_words(command), tuple | Deny)
