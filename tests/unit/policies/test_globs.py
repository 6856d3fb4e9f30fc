"""Patterns of the shell and of the search tools."""

import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.calls import ToolCall
from policies.paths.protected import (
    SECRET_BELOW,
    SECRET_IN_REPOSITORY,
    SECRET_PATTERNS,
    secret_exclusions,
)
from policies.paths.workspace import Workspace
from policies.shell.globs import Budget, expand
from policies.shell.words import Word, split_words
from policies.tools import ToolGate
from policies.verdict import Deny
from tests.unit.policies.judging import (
    allow_call,
    bash_words,
    denied,
    find_rule,
    read_list,
    read_table,
)


def _word(text: str) -> Word:
    return split_words(text)[0]


def _names(text: str, root: Path, budget: Budget | None = None) -> list[str] | str:
    """Return the names, or the rule that refuses."""
    found = denied(lambda: expand(_word(text), Workspace(root, root), budget or Budget()))
    return found.rule if isinstance(found, Deny) else list(found.names)


def test_a_pattern_gives_the_names_that_bash_gives(shared_workspace: Path) -> None:
    assert _names("*.txt", shared_workspace) == sorted(
        ["a b.txt", "a.txt", "b.txt", "it's.txt", "résumé.txt", "🎉party.txt"]
    )
    assert _names("data/[12].csv", shared_workspace) == ["data/1.csv", "data/2.csv"]
    assert _names("./src/*.py", shared_workspace) == ["./src/main.py", "./src/util.py"]
    assert _names("s*/", shared_workspace) == ["src/"]
    assert _names("*/main.py", shared_workspace) == ["src/main.py"]
    assert _names(f"{shared_workspace}/d*/1.csv", shared_workspace) == [
        f"{shared_workspace}/data/1.csv"
    ]


def test_a_pattern_without_a_match_stays_as_it_is(shared_workspace: Path) -> None:
    assert _names("*.zip", shared_workspace) == ["*.zip"]
    assert _names("nosuch/*", shared_workspace) == ["nosuch/*"]


def test_quoted_wildcards_match_only_themselves(tmp_path: Path) -> None:
    for name in ("a*b", "axb", "a*c"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert _names("a'*'?", tmp_path) == ["a*b", "a*c"]
    assert _names("'a*b'", tmp_path) == ["a*b"]


REFUSED = """
glob_hidden: .* ¦ src/.* ¦ '.'e*
glob_bracket: [.]env ¦ [a ¦ [[:alpha:]]* ¦ ['a']*
glob_parent: */..
outside_workspace: ../* ¦ /etc/*
"""


def test_patterns_that_reach_too_far_are_refused(shared_workspace: Path) -> None:
    found = {pattern: _names(pattern, shared_workspace) for pattern, _ in read_table(REFUSED)}
    assert found == dict(read_table(REFUSED))
    assert _names("*" * 17, shared_workspace) == "glob_too_wide"


def test_a_pattern_does_not_look_through_links_that_lead_outside(workspace: Path) -> None:
    (workspace / "out").symlink_to("../outdir")
    assert _names("out/*", workspace) == "link_outside"
    assert _names("o*/*", workspace) == "link_outside"


def test_a_name_that_looks_like_an_option_is_refused(tmp_path: Path) -> None:
    (tmp_path / "-rf").write_text("", encoding="utf-8")
    assert _names("*", tmp_path) == "glob_option"
    assert _names("./*", tmp_path) == ["./-rf"]


def test_hits_and_work_are_bounded_over_all_words_of_a_command(tmp_path: Path) -> None:
    for i in range(20):
        (tmp_path / f"f{i}").write_text("", encoding="utf-8")
    assert _names("f*", tmp_path, Budget(hits=19)) == "glob_too_wide"
    assert _names("x*", tmp_path, Budget(examined=19)) == "glob_too_wide"
    assert len(_names("f*", tmp_path, Budget(hits=20, examined=20))) == 20
    budget = Budget(examined=30)
    assert _names("x*", tmp_path, budget) == ["x*"]
    assert _names("x*", tmp_path, budget) == "glob_too_wide"


_PIECES = st.sampled_from(["*", "?", "[ab]", "[a-c]", "a", "b", "c", "/", "'*'", "d", "."])


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_PIECES, min_size=1, max_size=7).map("".join))
def test_an_accepted_pattern_means_what_it_means_to_bash(tmp_path: Path, pattern: str) -> None:
    for name in ("a", "b", "ab", "abc", "a*", ".a", "d/a", "d/ab", "d/.b", "d/d/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    names = _names(pattern, tmp_path)
    if not isinstance(names, str):
        tidy = [re.sub("/+", "/", name) for name in names]  # bash drops doubled slashes
        assert sorted(tidy) == sorted(
            re.sub("/+", "/", n) for n in bash_words(pattern, tmp_path, language="C")
        )


AIMED = r"""
pattern_parent: ../* ¦ src/../../* ¦ [.][.]/* ¦ ?[.]/*
outside_workspace: /etc/* ¦ {/etc/*,*.py} ¦ {a,{b,/etc}}/*
path_tilde: ~/** ¦ {~,a}/*
pattern_secret: .env ¦ **/.env* ¦ .e* ¦ **/*.pem ¦ id_* ¦ {a,.env} ¦ *.jks ¦ **/*.kdbx
    ¦ *.{ppk,keystore} ¦ **/id_ecdsa* ¦ service-account*.json ¦ service_account*.json
    ¦ client_secret* ¦ credentials* ¦ **/*credentials* ¦ secrets.* ¦ prod*.key ¦ 证书*.pem
    ¦ cert[0-9].p12 ¦ .en[v] ¦ *.env ¦ *.tfstate* ¦ **/.docker/config.json ¦ .ssh/**
pattern_braces: {a ¦ a}
path_backslash: a\*
"""


def test_a_pattern_stays_inside_and_does_not_aim_at_secrets(shared_workspace: Path) -> None:
    cases = [
        *read_table(AIMED),
        ("{a,b}" * 7, "pattern_braces"),
        ("a" * 1025, "pattern_too_long"),
    ]
    for pattern, rule in cases:
        assert find_rule(shared_workspace, "Glob", pattern=pattern) == rule, pattern
        assert find_rule(shared_workspace, "Grep", pattern="x", glob=pattern) == rule, pattern
    assert find_rule(shared_workspace, "Glob", pattern="") == "path_empty"


ORDINARY = r"""
* ¦ .* ¦ **/* ¦ *.json ¦ *..md ¦ src/** ¦ *.{py,js} ¦ .github/** ¦ [a-z]*.py ¦ **/*server*
server* ¦ **/server.* ¦ **/client* ¦ **/*client*.json ¦ **/*key* ¦ **/*env* ¦ **/*secret*
**/*ssh* ¦ **/*token* ¦ **/*_key* ¦ *-token ¦ *config* ¦ service* ¦ *service*.json ¦ *docker*
.docker/* ¦ *history* ¦ *log* ¦ *db* ¦ *production* ¦ *npm* ¦ .key* ¦ 密钥* ¦ *环境* ¦ *日志* ¦ ??
[.]* ¦ [a-z]*[0-9] ¦ *.{json,toml,cnf} ¦ *.backup ¦ *.e* ¦ *.k* ¦ *.s* ¦ *.p* ¦ *.?
"""


def test_a_broad_or_ordinary_pattern_is_allowed(shared_workspace: Path) -> None:
    for pattern in read_list(ORDINARY):
        allow_call(shared_workspace, "Glob", pattern=pattern)
        allow_call(shared_workspace, "Glob", pattern=f"{shared_workspace}/{pattern}")


def test_a_file_pattern_of_grep_is_no_option(shared_workspace: Path) -> None:
    for glob in ("--pre=id", "-g.env", "*.py -uu", "a,--follow", "*.md,-项目"):
        assert find_rule(shared_workspace, "Grep", pattern="x", glob=glob) == "pattern_option"
    allow_call(shared_workspace, "Grep", pattern="--pre=id", glob="a-b*.py")


def test_no_name_that_is_protected_is_aimed_at_by_itself(shared_workspace: Path) -> None:
    for pattern in SECRET_PATTERNS:
        assert find_rule(shared_workspace, "Glob", pattern=f"**/{pattern}") == "pattern_secret"
    for folder, name in SECRET_BELOW:
        assert find_rule(shared_workspace, "Glob", pattern=f"{folder}/{name}") == "pattern_secret"


def test_a_search_starts_inside(workspace: Path) -> None:
    (workspace / "out").symlink_to("/etc")
    for name in ("Glob", "Grep"):
        assert find_rule(workspace, name, pattern="x", path="..") == "outside_workspace"
        assert find_rule(workspace, name, pattern="x", path="out") == "link_outside"
        assert find_rule(workspace, name, pattern="x", path=".env") == "secret_file"
        call = ToolCall(name=name, input={"pattern": "x"}, cwd="/etc")
        assert isinstance(ToolGate(workspace).judge(call), Deny)
    assert find_rule(workspace, "Glob", pattern="out/*") == "link_outside"


def test_grep_does_not_start_in_a_folder_whose_name_it_would_not_see(workspace: Path) -> None:
    for folder in (".docker", "项目/.Config", "docker"):
        (workspace / folder).mkdir(parents=True)
        (workspace / folder / "config.json").write_text("{}", encoding="utf-8")
        starts = (
            ({"pattern": "x"}, workspace / folder),
            ({"pattern": "x", "path": folder}, workspace),
            ({"pattern": "x", "path": str(workspace / "docs")}, workspace / folder),
        )
        for asked, cwd in starts:
            verdict = ToolGate(workspace).judge(ToolCall(name="Grep", input=asked, cwd=str(cwd)))
            assert verdict.rule == ("grep_inside" if folder == "docker" else "search_start")


def test_grep_is_told_last_of_all_to_leave_out_secrets(shared_workspace: Path) -> None:
    plain = allow_call(shared_workspace, "Grep", pattern="x").updated_input
    assert plain == {"pattern": "x", "glob": secret_exclusions()}
    narrowed = allow_call(
        shared_workspace, "Grep", pattern="x", glob="*.py, *.js !a*"
    ).updated_input
    assert narrowed is not None
    assert narrowed["glob"] == f"*.py, *.js !a* {secret_exclusions()}"


def test_the_exclusions_survive_the_tools_own_splitting() -> None:
    pieces = secret_exclusions().split()
    assert len(pieces) == len((*SECRET_PATTERNS, *SECRET_BELOW, *SECRET_IN_REPOSITORY))
    assert "!**/*.[gG][iI][tT]/**/[cC][oO][nN][fF][iI][gG]" in pieces
    assert "!**/.[dD][oO][cC][kK][eE][rR]/[cC][oO][nN][fF][iI][gG].[jJ][sS][oO][nN]" in pieces
    assert {"!.[eE][nN][vV]*", "!*.[pP]12", "![iI][dD]_[rR][sS][aA]"} <= set(pieces)
    assert (
        "![sS][eE][rR][vV][iI][cC][eE][-_][aA][cC][cC][oO][uU][nN][tT]*.[jJ][sS][oO][nN]" in pieces
    )
    assert all(piece.startswith("!") and not set(piece) & set("{},\\") for piece in pieces)
