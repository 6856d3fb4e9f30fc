"""Further directories that rules list: inside for reading or for writing, and guarded all the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.calls import ToolCall
from policies.paths.workspace import ExtraDirectory
from policies.rules import AskRule, Rules, shipped_rules
from policies.shell.commands import GRAMMARS
from policies.tools import ToolGate, validate_bash_command
from policies.verdict import Allow, Ask, Deny, Verdict
from tests.unit.policies.judging import find_misses


@pytest.fixture
def rules(tmp_path: Path, workspace: Path) -> Rules:
    """Return rules with a directory to read, `ro`, and one to write, `rw`, beside the workspace."""
    for name in ("ro", "rw"):
        for below in ("deep", ".git", ".ssh"):
            (tmp_path / name / below).mkdir(parents=True)
        for file in ("x.txt", "y.txt", "项目.md", ".env", "deep/CLAUDE.md", ".ssh/id_rsa"):
            (tmp_path / name / file).write_text("x", encoding="utf-8")
        (tmp_path / name / "leak").symlink_to("../outside.txt")
    (workspace / "to_ro").symlink_to("../ro")
    (workspace / "to_rw").symlink_to("../rw")
    (tmp_path / "rw" / "to_ro").symlink_to("../ro")
    (tmp_path / "ro" / "to_rw").symlink_to("../rw")
    (tmp_path / "rw" / "home").symlink_to(workspace)
    directories = (
        ExtraDirectory(path=tmp_path / "ro", writable=False),
        ExtraDirectory(path=tmp_path / "rw", writable=True),
    )
    return replace(shipped_rules(), directories=directories, commands=frozenset(GRAMMARS))


def bash(command: str, workspace: Path, rules: Rules) -> Verdict:
    line = command.replace("{P}", str(workspace.parent))
    return validate_bash_command(line, root=workspace, cwd=workspace, rules=rules)


USED = """
cat {P}/ro/x.txt ¦ ls {P}/ro ¦ ls {P}/ro/*.txt ¦ cat {P}/ro/项目.md ¦ cat to_ro/x.txt
cp {P}/ro/x.txt . ¦ cp {P}/ro/x.txt {P}/rw/new.txt ¦ grep -r x {P}/ro
find {P}/ro -name '*.md' ¦ diff {P}/ro/x.txt a.txt ¦ cat {P}/rw/x.txt ¦ rm {P}/rw/x.txt
mv {P}/rw/x.txt {P}/rw/z.txt ¦ mv a.txt {P}/rw ¦ mkdir -p {P}/rw/a/b ¦ touch {P}/rw/new.txt
cp a.txt to_rw/z.txt ¦ rm {P}/rw/deep/../x.txt
"""


def test_what_lies_there_may_be_used_as_the_rule_says(workspace: Path, rules: Rules) -> None:
    without = replace(rules, directories=())
    for command in (c.strip() for line in USED.strip().splitlines() for c in line.split("¦")):
        assert isinstance(bash(command, workspace, rules), Allow), command
        denied = bash(command, workspace, without)
        assert denied.rule in {"outside_workspace", "link_outside"}, command


GUARDED = """
read_only_directory: rm {P}/ro/x.txt ¦ mv {P}/ro/x.txt . ¦ cp a.txt {P}/ro
    ¦ cp a.txt {P}/ro/new.txt ¦ mkdir {P}/ro/new ¦ touch {P}/ro/x.txt ¦ cp a.txt to_ro/new.txt
    ¦ cp a.txt {P}/rw/to_ro/new.txt ¦ cp a.txt {P}/ro/to_rw/new.txt ¦ rm {P}/ro/to_rw/x.txt
    ¦ mv -t {P}/ro a.txt
secret_file: cat {P}/ro/.env ¦ cat {P}/rw/.ssh/id_rsa ¦ cp a.txt {P}/rw/.git/config
    ¦ grep -r x {P}/ro/.ssh
protected_path: rm {P}/rw/deep/CLAUDE.md
protected_inside: rm -rf {P}/rw/deep ¦ cp -r {P}/ro copy
workspace_root: rm -rf {P}/rw ¦ rm -rf {P}/rw/ ¦ rm -rf {P}/rw/deep/.. ¦ rm -rf to_rw/
    ¦ rmdir {P}/rw ¦ mv {P}/rw rw2 ¦ mv {P}/ro rw2
glob_root: rm -rf {P}/rw/* ¦ mv {P}/rw/* .
link_outside: cat {P}/ro/leak ¦ cp a.txt {P}/rw/leak ¦ cat {P}/rw/home/a.txt
    ¦ cp {P}/rw/home/a.txt {P}/rw/b.txt ¦ cp a.txt {P}/rw/home/z.txt ¦ ls {P}/rw/home/src
outside_workspace: cat {P}/ro/../outside.txt ¦ cat {P}/ro-evil/x ¦ ls {P}
secret_inside: diff -r {P}/ro src
"""


def test_it_is_guarded_like_the_workspace(workspace: Path, rules: Rules) -> None:
    assert find_misses(GUARDED, lambda line: bash(line, workspace, rules)) == []
    # a relative spelling that leads there is as good as an absolute one
    assert isinstance(bash("cat ../ro/x.txt", workspace, rules), Allow)


def _call(workspace: Path, rules: Rules, tool: str, **given_input: Any) -> Verdict:
    gate = ToolGate(workspace, rules=rules)
    return gate.judge(ToolCall(name=tool, input=given_input, cwd=str(workspace)))


def test_the_file_tools_reach_it_as_well(workspace: Path, rules: Rules, tmp_path: Path) -> None:
    ro, rw = tmp_path / "ro", tmp_path / "rw"
    allowed: list[tuple[str, dict[str, Any]]] = [
        ("Read", {"file_path": f"{ro}/x.txt"}),
        ("Write", {"file_path": f"{rw}/new.txt", "content": "x"}),
        ("Edit", {"file_path": f"{rw}/x.txt", "old_string": "x", "new_string": "y"}),
        ("Glob", {"pattern": "**/*.md", "path": str(ro)}),
        ("Glob", {"pattern": f"{ro}/*.md"}),
        ("Grep", {"pattern": "x", "path": str(ro), "glob": "*.md"}),
    ]
    denied: list[tuple[str, dict[str, Any]]] = [
        ("Write", {"file_path": f"{ro}/new.txt", "content": "x"}),
        ("Edit", {"file_path": f"{workspace}/to_ro/x.txt", "old_string": "x", "new_string": "y"}),
        ("Read", {"file_path": f"{rw}/.env"}),
        ("Write", {"file_path": f"{rw}/.git/config", "content": "x"}),
        ("Glob", {"pattern": "../*", "path": str(ro)}),
        ("Glob", {"pattern": "leak/*", "path": str(ro)}),
        ("Grep", {"pattern": "x", "path": f"{ro}/.ssh"}),
        ("Read", {"file_path": f"{ro}/leak"}),
    ]
    for tool, given_input in allowed:
        verdict = _call(workspace, rules, tool, **given_input)
        assert isinstance(verdict, Allow), given_input
        if verdict.effect is not None:  # its folders are not the workspace's of the same names
            assert verdict.effect.paths is None
    for tool, given_input in denied:
        assert isinstance(_call(workspace, rules, tool, **given_input), Deny), given_input


def test_it_is_no_place_to_work_from(workspace: Path, rules: Rules, tmp_path: Path) -> None:
    assert (
        validate_bash_command("ls", root=workspace, cwd=tmp_path / "rw", rules=rules).rule
        == "cwd_outside"
    )


def test_a_listed_directory_that_became_a_link_leads_nowhere(
    workspace: Path, rules: Rules, tmp_path: Path
) -> None:
    (tmp_path / "ro").rename(tmp_path / "moved")
    (tmp_path / "ro").symlink_to("outdir")
    assert bash("cat {P}/ro/keep.txt", workspace, rules).rule == "link_outside"


def test_patterns_of_ask_rules_mean_the_workspace_alone(workspace: Path, rules: Rules) -> None:
    asking = replace(rules, ask=(AskRule(tools=frozenset({"Read"}), paths=("x.txt", "*.md")),))
    (workspace / "x.txt").touch()
    for path, expected in {"{P}/ro/x.txt": Allow, "{P}/rw/项目.md": Allow, "x.txt": Ask}.items():
        file = path.replace("{P}", str(workspace.parent))
        assert isinstance(_call(workspace, asking, "Read", file_path=file), expected)
