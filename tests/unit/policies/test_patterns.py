"""The file patterns of Glob and Grep: inside, and not aimed at secrets."""

from pathlib import Path

from policies.paths.protected import secret_exclusions
from policies.paths.protected_names import SECRET_BELOW, SECRET_IN_REPOSITORY, SECRET_PATTERNS
from policies.tools import ToolCall, ToolGate
from policies.verdict import Deny
from tests.unit.policies.judging import allow_call, find_rule, read_list, read_table

REFUSED = r"""
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
        *read_table(REFUSED),
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
