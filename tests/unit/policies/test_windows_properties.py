"""Generated command lines for Windows: what is allowed names only what is inside, and nothing interprets it."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.verdict import Deny, Verdict
from tests.unit.policies.judging import line_of, read_table, validate_windows_command

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
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_OUTSIDE_QUOTES = re.compile(r"[A-Za-z]+-[A-Za-z]+(?: -[A-Za-z]+(?: Q(?:,Q)*)?)+")
_PATHS = re.compile(r"-(?:LiteralPath|Path|Destination) ((?:'(?:[^']|'')*',?)+)")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, shared_workspace: Path) -> Path:
    if not (shared_workspace / "jn").is_symlink():
        (shared_workspace / "jn").symlink_to("../outdir")
    return shared_workspace


def _judge(root: Path, line: str) -> Verdict:
    return validate_windows_command(line.replace("{WS}", str(root)), root=root, cwd=root)


def _stays_inside(root: Path, path: str) -> bool:
    """Judge a path of an allowed line by another way than the policy does."""
    absolute = Path(path.replace("\\", "/"))
    if not absolute.is_relative_to(root) or ".." in absolute.parts:
        return False
    plain = all(
        part[-1] not in ". "
        and not re.search(r'[:<>|"*?]|~\d', part)
        and part.split(".")[0].strip().lower() not in {"con", "nul", "aux", "prn"}
        for part in absolute.relative_to(root).parts
    )
    return plain and absolute.resolve().is_relative_to(root.resolve())


def _check(root: Path, verdict: Verdict) -> None:
    if isinstance(verdict, Deny):
        assert verdict.rule != "policy_error"
        assert verdict.reason.endswith(".")
        return
    line = line_of(verdict)
    assert _OUTSIDE_QUOTES.fullmatch(_QUOTED.sub("Q", line)), line
    quoted = [text for group in _PATHS.findall(line) for text in _QUOTED.findall(group)]
    paths = [text.replace("''", "'") for text in quoted]
    assert all(_stays_inside(root, path) for path in paths), line
    if not line.startswith(("Get-ChildItem", "Copy-Item")):
        named = {part.lower() for path in paths for part in path.split("\\")}
        assert named.isdisjoint({".env", ".claude", "claude.md", ".git"}), line
    assert line_of(_judge(root, line)) == line


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


@_UNHURRIED
@given(st.text(max_size=60), st.text(max_size=10))
def test_any_text_gets_a_verdict(root: Path, text: str, cwd: str) -> None:
    for line in (f"del {text}", f'copy "{text}" x', f"Remove-Item '{text}'", f"New-Item {text}"):
        _check(root, _judge(root, line))
    verdict = validate_windows_command(text, root=root, cwd=cwd or root)
    assert verdict.rule != "policy_error"
