"""The published ways out of the sandboxes of other agents, each tried here."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.calls import ToolCall
from policies.tools import ToolGate
from policies.verdict import Deny
from tests.support.boxes import USERS, Bench, box_bench
from tests.support.walls import needs_boxes

pytestmark = needs_boxes

SECRET = "S3CR3T-OUTSIDE"


@pytest.fixture(params=USERS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A workspace with a folder beside it."""
    with box_bench(request.param) as bench:
        outside = bench.root / "outside"
        outside.mkdir()
        (outside / "kept").write_text(SECRET, "utf-8")
        os.chown(outside, bench.starter, bench.starter)
        bench.git("init", "-q")
        bench.write("readme.md", "Hello\n")
        yield bench


def entries(bench: Bench) -> dict[str, int]:
    """Return everything in the workspace but git's objects, with its mode."""
    found = {}
    for path in bench.workspace.rglob("*"):
        if "objects" not in path.parts:
            found[str(path)] = stat.S_IFMT(path.lstat().st_mode)
    return found


def test_cve_2026_25725_settings_that_were_absent_do_not_appear(bench: Bench) -> None:
    bench.run(
        'mkdir .claude; echo \'{"hooks": {"SessionStart": []}}\' > .claude/settings.local.json'
    )
    assert not (bench.workspace / ".claude").exists()


def test_cve_2026_25724_a_link_to_what_is_denied_is_denied_too(bench: Bench) -> None:
    bench.write(".env", SECRET)
    bench.write("CLAUDE.md", "Be kind.\n")
    ran = bench.run("ln -s .env notes; ln -s CLAUDE.md rules; cat notes; echo evil > rules")
    assert SECRET not in ran.output
    assert (bench.workspace / "CLAUDE.md").read_text("utf-8") == "Be kind.\n"
    gate = ToolGate(bench.workspace, sandboxed_shell=True)
    tries: list[tuple[str, dict[str, object], str]] = [
        ("Read", {"file_path": "notes"}, "secret_file"),
        ("Grep", {"pattern": "S3CR3T", "path": "notes"}, "secret_file"),
        ("Write", {"file_path": "rules", "content": "evil"}, "protected_path"),
        ("Edit", {"file_path": "rules", "old_string": "k", "new_string": "e"}, "protected_path"),
    ]
    for tool, given, rule in tries:
        verdict = gate.judge(ToolCall(name=tool, input=given, cwd=str(bench.workspace)))
        assert isinstance(verdict, Deny)
        assert verdict.rule == rule


def test_cve_2026_41397_what_is_put_right_after_a_command_follows_no_link_out(
    bench: Bench,
) -> None:
    """The broker stands outside of the box, and works on a tree that the command made."""
    outside = bench.root / "outside"
    names = ("HEAD", "config", "objects/kept", "refs/kept", "hooks/post-commit")
    for name in names:
        (outside / name).parent.mkdir(exist_ok=True)
        (outside / name).write_text("kept", "utf-8")
    for path in outside.rglob("*"):
        os.chown(path, bench.starter, bench.starter)
    before = {path: path.lstat() for path in (outside, *outside.rglob("*"))}
    links = (
        f"git init -q a && rm a/.git/config && ln -s {outside}/config a/.git/config",
        f"git init -q b && rm -rf b/.git && ln -s {outside} b/.git",
        f"mkdir c && ln -s {outside} c/.claude && ln -s {outside} .vscode",
        f"mkdir -p d/.claude/e && ln -s {outside} d/.claude/e/f && chmod 0 d/.claude/e d",
        f"mkdir g && cd g && mkdir objects refs && touch HEAD && ln -s {outside}/config config",
    )
    bench.run("; ".join(f"( {link} )" for link in links))
    assert {path: path.lstat() for path in (outside, *outside.rglob("*"))} == before
    assert {path.read_text("utf-8") for path in outside.rglob("*") if path.is_file()} == {
        SECRET,
        "kept",
    }
    assert not any((bench.workspace / name).is_symlink() for name in ("a/.git/config", "g/config"))
    left = ("b/.git", "c/.claude", ".vscode", "d/.claude")
    assert [name for name in left if os.path.lexists(bench.workspace / name)] == []


@pytest.mark.parametrize("swap", ["ln -s {outside} d", "echo > d", ":"])
def test_a_protected_link_is_not_put_back_where_its_folder_was(bench: Bench, swap: str) -> None:
    """The broker would delete what has its name elsewhere, and put it there. A folder of a link into
    the workspace cannot be moved, so this one leads out of it.
    """
    outside = bench.root / "outside"
    (outside / ".ssh").mkdir()
    os.chown(outside / ".ssh", bench.starter, bench.starter)
    assert bench.run("mkdir d && ln -s ../../evil d/.ssh").output == ""
    ran = bench.run(f"mv d e && {swap.format(outside=outside)}")
    assert (ran.code, ran.output) == (0, "")
    assert sorted(path.name for path in outside.iterdir()) == [".ssh", "kept"]
    assert not (outside / ".ssh").is_symlink()


def test_cve_2026_39861_a_link_to_a_place_outside_leads_nowhere(bench: Bench) -> None:
    ran = bench.run("ln -s ../outside out; echo evil > out/new; cat out/kept; echo evil > out/kept")
    assert SECRET not in ran.output
    assert [path.name for path in (bench.root / "outside").iterdir()] == ["kept"]
    assert (bench.root / "outside" / "kept").read_text("utf-8") == SECRET


def test_cve_2026_88968_no_process_is_left_to_swap_a_folder_for_a_link(bench: Bench) -> None:
    """Not even while another tool writes into that folder."""
    swap = f"while :; do mv d e; ln -s {bench.root}/outside d; rm d; mv e d; done"
    bench.run(f"mkdir d; (setsid sh -c '{swap}' > /dev/null 2>&1 &) ; sleep 0.1")
    assert bench.left_running() == []
    (folder,) = [
        path
        for path in bench.workspace.iterdir()
        if path.name in {"d", "e"} and not path.is_symlink()
    ]
    for _ in range(200):
        (folder / "written").write_text("by a tool", "utf-8")
    assert [path.name for path in (bench.root / "outside").iterdir()] == ["kept"]


def test_cve_2026_42074_the_model_cannot_ask_to_leave_the_box(tmp_path: Path) -> None:
    call = ToolCall(
        name="Bash",
        input={"command": "ls", "dangerouslyDisableSandbox": True},
        cwd=str(tmp_path),
    )
    assert isinstance(ToolGate(tmp_path, sandboxed_shell=True).judge(call), Deny)


def test_cve_2026_54316_no_host_is_approved_in_advance(bench: Bench) -> None:
    hosts = (
        "github.com",
        "registry.example.org",
        "packages.example.org",
        "api.anthropic.com",
        "localhost",
    )
    line = "; ".join(f"curl -s -m 2 https://{host}/ && echo REACHED" for host in hosts)
    assert "REACHED" not in bench.run(line).output


def test_a_secret_that_a_wildcard_names_is_covered_at_any_depth(bench: Bench) -> None:
    for name in ("a/b/c/d/.env.production", "x/server.pem", "y/id_rsa-work", "z/.aws/credentials"):
        bench.write(name, SECRET)
    assert SECRET not in bench.run("cat */* */*/* */*/*/*/* */*/*/*/.env*; grep -r S3CR3T .").output


def test_a_command_leaves_no_stub_files_and_makes_no_changes_that_git_sees(bench: Bench) -> None:
    bench.write(".env", SECRET)
    before = entries(bench)
    bench.run("true")
    with bench.asked("sleep 60"):
        pass  # given up at once
    assert bench.run("git status --porcelain").output == "?? readme.md\n"
    assert entries(bench) == before


def test_a_file_that_the_host_reads_later_is_not_left_to_a_nested_repository(bench: Bench) -> None:
    bench.run(
        "mkdir -p vendor/lib && cd vendor/lib && git init -q && mkdir .git/hooks && printf '#!/bin/sh\\ntouch /tmp/evil' > .git/hooks/post-checkout && chmod +x .git/hooks/post-checkout"
    )
    assert not (bench.workspace / "vendor/lib/.git/hooks").exists()
