"""Generated command lines for Windows: what is allowed names only what is inside, and nothing interprets it.

There is no cmd and no PowerShell to run it with here; bash, the third shell that may get the line, is run.
"""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.verdict import Allow, Deny, Verdict
from policies.windows.wildcards import read_pattern, takes
from tests.unit.policies.judging import bash_words, read_table, validate_windows_command

_VERBS = st.sampled_from(
    [
        *("del", "move", "copy", "ren", "DEL", "Remove-Item", "Move-Item", "Copy-Item"),
        *("New-Item", "Get-ChildItem", "get-childitem", "d^el", "call", "&"),
    ]
)
_LISTED = r"""
a.txt ¦ A.TXT ¦ b.txt ¦ src ¦ src\ ¦ .\src ¦ src/main.py ¦ src\..\a.txt ¦ new ¦ data\*.csv
¦ *.log ¦ * ¦ build\?.tmp ¦ [ab].txt ¦ 'a b.txt' ¦ "a b.txt" ¦ 项目 ¦ "报告（最终版）.docx" ¦ 'it''s.txt'
¦ a.txt,b.txt ¦ 'a.txt','..\x' ¦ {WS} ¦ {WS}\a.txt ¦ docs ¦ docs\ ¦ "docs\" ¦ archive
¦ notes.md~ ¦ '$(id)' ¦ ';id' ¦ "R&D.txt" ¦ /q ¦ /s ¦ /y ¦ /f/q ¦ /a:h ¦ -Path ¦ -LiteralPath
¦ -Destination ¦ -Recurse ¦ -Force ¦ -Filter ¦ -Include ¦ *.py ¦ -ItemType ¦ Directory
¦ SymbolicLink ¦ -Name ¦ -Value ¦ -Path:a.txt ¦ -Confirm:$false ¦ -ov ¦ -Target ¦ -ErrorAction
¦ Stop ¦ .. ¦ ..\outside.txt ¦ C:\x ¦ C:x ¦ \x ¦ \\s\x ¦ \??\C:\x ¦ Env:\X ¦ ~ ¦ NUL ¦ con.txt
¦ a.txt:s ¦ GIT~1 ¦ .env ¦ .claude ¦ CLAUDE.md ¦ logs ¦ src. ¦ jn ¦ jn\ ¦ jn\* ¦ jn\keep.txt ¦ ;
¦ & ¦ | ¦ > ¦ %X% ¦ !X! ¦ $x ¦ ` ¦ ^ ¦ ( ¦ ) ¦ @x ¦ # ¦ “a” ¦ –x ¦ ' ¦ " ¦ , ¦ = ¦ + ¦ {U+000A}
¦ <# ¦ --% ¦ {U+200B} ¦ {U+3000}
"""
_WORDS = st.sampled_from([word for word, _ in read_table(f": {_LISTED}")])
_HAZARDS = st.sampled_from(
    [*"&|<>^%!$`;,=+(){}[]@#'\"\\/:*?~-. \t\n“’–\u00a0\u2028报é", "..", "$(", "::"]
)
_SEEDS = st.sampled_from(
    [
        "del /q build\\*.tmp",
        'copy "a b.txt" "docs\\a b.txt"',
        "move a.txt docs\\a.txt",
        'ren "a b.txt" "a_b.txt"',
        "Remove-Item -Path 'a.txt','b.txt' -Force",
        "Move-Item -LiteralPath 'img\\IMG_2024 (1).png' -Destination archive",
        'Copy-Item "a.txt" -Destination "docs\\" -Recurse',
        "New-Item -ItemType Directory -Path .\\a\\b",
        "Get-ChildItem -Path . -Filter *.py -Recurse",
    ]
)
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"")
_OUTSIDE_QUOTES = re.compile(
    r"[A-Za-z]+(?:-[A-Za-z]+)?(?: (?:/-?[a-z]|-[A-Za-z]+|-Confirm:\$false|Q(?:,Q)*))*"
)
_CMD_PATHS = re.compile(r'"([^"]*)"')
_PARAMETER_PATHS = re.compile(
    r"-(?:LiteralPath|Path|Destination) ((?:'(?:[^']|'')*'|\"[^\"]*\"|,)+)"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, shared_workspace: Path) -> Path:
    if not (shared_workspace / "jn").is_symlink():
        (shared_workspace / "jn").symlink_to("../outdir")
    return shared_workspace


def _judge(root: Path, line: str) -> Verdict:
    return validate_windows_command(line.replace("{WS}", str(root)), root=root, cwd=root)


def _read_paths(line: str) -> list[str]:
    """Read the paths of an allowed line, by another way than the policy does."""
    if line[0].islower():
        return _CMD_PATHS.findall(line)
    return [
        quoted[1:-1].replace("''", "'")
        for group in _PARAMETER_PATHS.findall(line)
        for quoted in _QUOTED.findall(group)
    ]


def _stays_inside(root: Path, path: str) -> bool:
    unified = path.replace("\\", "/")
    if unified.startswith("/"):
        below = unified.removeprefix(str(root))
        if below == unified or not below.startswith(("/", "")):
            return False
        unified = below.lstrip("/")
    depth = 0
    for part in unified.split("/"):
        depth += -1 if part == ".." else part not in {"", "."}
        plain = part in {"", ".", ".."} or (
            part[-1] not in ". "
            and not re.search(r'[:<>|"]|~\d', part)
            and part.split(".")[0].strip().lower() not in {"con", "nul", "aux", "prn"}
            and part.lower() not in {".env", ".claude", "claude.md", ".git"}
        )
        if depth < 0 or not plain:
            return False
    physical = (root / unified).resolve()
    return "*" in unified or "?" in unified or physical.is_relative_to(root.resolve())


def _check(root: Path, verdict: Verdict) -> None:
    if isinstance(verdict, Deny):
        assert verdict.rule != "policy_error"
        assert verdict.reason.endswith(".")
        return
    assert isinstance(verdict, Allow)
    assert verdict.updated_input is not None
    line = str(verdict.updated_input["command"])
    assert _OUTSIDE_QUOTES.fullmatch(_QUOTED.sub("Q", line)), line
    for path in _read_paths(line):
        may_list_protected = line.startswith(("Get-ChildItem", "copy", "Copy-Item"))
        plain = re.sub(r"(?i)\.claude|\.git|claude\.md", "x", path) if may_list_protected else path
        assert _stays_inside(root, plain), line
    assert _judge(root, line) == verdict


def _tamper(line: str, changes: list[tuple[int, str, bool]]) -> str:
    for at, hazard, replaces in changes:
        line = line[:at] + hazard + line[at + replaces :]
    return line


_UNHURRIED = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_UNHURRIED
@given(_VERBS, st.lists(_WORDS, max_size=6), st.sampled_from([" ", "  ", "\t", ""]))
def test_an_allowed_line_names_only_what_is_inside(
    root: Path, verb: str, words: list[str], gap: str
) -> None:
    _check(root, _judge(root, f"{verb} {gap.join(words)}"))


@_UNHURRIED
@given(_SEEDS, st.lists(st.tuples(st.integers(0, 80), _HAZARDS, st.booleans()), max_size=3))
def test_a_line_that_was_tampered_with_stays_harmless(
    root: Path, seed: str, changes: list[tuple[int, str, bool]]
) -> None:
    _check(root, _judge(root, _tamper(seed, changes)))


@pytest.mark.soak
@settings(
    max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_SEEDS, st.lists(st.tuples(st.integers(0, 80), _HAZARDS, st.booleans()), max_size=5))
def test_many_lines_that_were_tampered_with_stay_harmless(
    root: Path, seed: str, changes: list[tuple[int, str, bool]]
) -> None:
    _check(root, _judge(root, _tamper(seed, changes)))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(_SEEDS, st.lists(st.tuples(st.integers(0, 80), _HAZARDS), max_size=2))
def test_bash_expands_nothing_in_an_allowed_line(
    root: Path, seed: str, changes: list[tuple[int, str]]
) -> None:
    line = seed
    for at, hazard in changes:
        line = line[:at] + hazard + line[at:]
    verdict = _judge(root, line)
    if not isinstance(verdict, Allow) or verdict.updated_input is None:
        return
    runs = str(verdict.updated_input["command"])
    assert bash_words(runs, root) == [
        _unquote(word) for word in _QUOTED.sub(_protect, runs).split(" ")
    ]


def _protect(match: re.Match[str]) -> str:
    return match.group()[1:-1].replace("''", "").replace(" ", "\0").replace("\\\\", "\\")


def _unquote(word: str) -> str:
    return word.replace("\0", " ").replace("$false", "")


@_UNHURRIED
@given(st.text(max_size=60), st.text(max_size=10))
def test_any_text_gets_a_verdict(root: Path, text: str, cwd: str) -> None:
    for line in (f"del {text}", f'copy "{text}" x', f"Remove-Item '{text}'", f"New-Item {text}"):
        _check(root, _judge(root, line))
    verdict = validate_windows_command(text, root=root, cwd=cwd or root)
    assert verdict.rule != "policy_error"


TAKEN: tuple[tuple[str, str, str], ...] = (
    ("*.*", "a.txt Makefile .env", ""),
    ("makefile.*", "Makefile makefile.am", "make"),
    ("*.txt", "a.txt A.TXT b.txtx", "a.md"),
    ("a?.txt", "a.txt ab.txt", "abc.txt"),
    ("e*", ".env e.md ENV", "a.txt"),
    ("claude*", ".claude claude.md", "a.txt"),
    ("报?.*", "报告.docx 报.docx", "ab.docx"),
)


def test_patterns_take_what_either_shell_takes() -> None:
    for pattern, taken, left in TAKEN:
        read = read_pattern(pattern)
        assert [name for name in taken.split() if not takes(read, name)] == [], pattern
        assert [name for name in left.split() if takes(read, name)] == [], pattern
