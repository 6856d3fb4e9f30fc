"""What a box covers in folders, in work trees and behind links: settings and secrets."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.boxes import USERS, Bench, box_bench
from tests.support.walls import needs_boxes

pytestmark = needs_boxes

SECRET = "S3CR3T-OF-A-PERSON"


@pytest.fixture(params=USERS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A workspace with a repository and a secret."""
    with box_bench(request.param) as bench:
        bench.git("init", "-q")
        bench.write(".env", SECRET)
        yield bench


def add_work_tree(bench: Bench, name: str) -> Path:
    """Commit what is in git's index, and add a work tree."""
    who = ("-c", "user.name=x", "-c", "user.email=x")
    bench.git(*who, "commit", "-q", "--allow-empty", "-m", "Begin")
    place = f".candor-worktrees/{name}"
    bench.git("worktree", "add", "-q", "-b", f"candor/{name}", place)
    return bench.workspace / place


@contextmanager
def while_a_command_runs(bench: Bench, folder: Path) -> Iterator[None]:
    """Run the block after a command in a folder has begun; it ends well afterwards."""
    with bench.asked("touch begun; until [ -e go ]; do sleep 0.1; done", cwd=folder) as speaker:
        while not (folder / "begun").exists():
            time.sleep(0.01)
        yield
        (folder / "go").touch()
        assert speaker.recv(100) == b"0 "


def test_passwords_are_left_out_of_the_settings_that_a_work_tree_and_submodules_have(
    bench: Bench,
) -> None:
    url = f"https://me:{SECRET}@example.com/x.git"
    bench.git("remote", "add", "origin", url)
    tree = add_work_tree(bench, "cnv_a")
    for name in ("group/sub", "group/sub/modules/inner"):
        bench.write(f".git/modules/{name}/HEAD", "ref: refs/heads/main\n")
        bench.write(f".git/modules/{name}/config", f'[remote "origin"]\n\turl = {url}\n')
        bench.write(f".git/modules/{name}/credentials", url)
    bench.write(".claude/skills/own/.git/HEAD", "ref: refs/heads/main\n")
    bench.write(".claude/skills/own/.git/config", f'[remote "origin"]\n\turl = {url}\n')
    ran = bench.run("cat $(find .git .claude -name config -o -name credentials); echo > .claude/x")
    assert ran.output.count("https://example.com/x.git") == 4
    assert ran.output.endswith("Read-only file system\n")
    assert SECRET not in ran.output
    line = "git remote -v; find $(git rev-parse --git-common-dir)/ -type f -exec cat {} +"
    ran = bench.run(f"{line}; mkdir -p ../../.git/modules/new", cwd=tree)
    assert "https://example.com/x.git" in ran.output
    assert SECRET not in ran.output


def test_passwords_are_left_out_of_the_settings_of_submodules_in_a_person_s_work_tree(
    bench: Bench,
) -> None:
    part = ".git/worktrees/theirs"
    bench.write(f"{part}/HEAD", "ref: refs/heads/main\n")
    bench.write(f"{part}/commondir", "../..\n")
    for sub in ("modules/sub", "modules/sub/modules/inner"):
        for name in ("HEAD", "objects/x", "refs/x"):
            bench.write(f"{part}/{sub}/{name}", "")
        url = f"https://me:{SECRET}@example.com/x.git"
        bench.write(f"{part}/{sub}/config", f'[remote "origin"]\n\turl = {url}\n')
    ran = bench.run("find .git/worktrees -name config -exec cat {} +")
    assert ran.output.count("https://example.com/x.git") == 2
    assert SECRET not in ran.output


def test_secrets_below_a_folder_that_acts_are_empty(bench: Bench) -> None:
    names = (".cargo/credentials", ".devcontainer/.env", ".claude/a/server.pem", "logs/.ssh/x")
    for name in names:
        bench.write(name, SECRET)
    bench.write(".claude/a/node_modules/b/c.pem", "public")
    ran = bench.run(f"cat {' '.join(names)} .claude/a/node_modules/b/c.pem; echo > .claude/a/y")
    assert SECRET not in ran.output
    assert "public" in ran.output
    assert "Read-only file system" in ran.output
    assert bench.run("rm -r .claude/a 2> /dev/null; mv .claude x; ls .claude/a").output != ""


def test_a_command_outside_of_work_trees_sees_none(bench: Bench) -> None:
    bench.git("add", "-f", ".env")
    tree = add_work_tree(bench, "cnv_a")
    assert (tree / ".env").read_text() == SECRET
    ran = bench.run(
        "ls .candor-worktrees; echo > .candor-worktrees/x; cat .candor-worktrees/*/.env"
    )
    assert "cnv_a" not in ran.output
    assert SECRET not in ran.output
    assert [entry.name for entry in tree.parent.iterdir()] == ["cnv_a"]


def test_a_command_in_a_work_tree_leaves_no_link_in_the_repository(bench: Bench) -> None:
    """A person's `git commit` writes the message through one."""
    tree = add_work_tree(bench, "cnv_a")
    names = ("SQUASH_MSG", "logs/x", "worktrees/cnv_a/COMMIT_EDITMSG", "worktrees/cnv_a/logs/x")
    lines = (f"ln -s {bench.root}/outside ../../.git/{name}" for name in names)
    ran = bench.run("; ".join((*lines, "git commit -q --allow-empty -m One")), cwd=tree)
    assert [name for name in names if os.path.lexists(bench.workspace / ".git" / name)] == []
    assert [name for name in names if name not in ran.output] == []
    assert bench.run("git log -1 --format=%s", cwd=tree).output == "One\n"


def test_a_command_in_a_work_tree_leaves_no_repository_with_hooks_in_the_repository(
    bench: Bench,
) -> None:
    """A link in the work tree, which a merge brings, could lead a person to one."""
    tree = add_work_tree(bench, "cnv_a")
    own = bench.workspace / ".git/worktrees/cnv_a"
    line = "git init -q x; mkdir -p x/.git/hooks .git logs/y/objects logs/y/refs logs/y/hooks"
    ran = bench.run(f"cd ../../.git/worktrees/cnv_a; {line}; echo > logs/y/HEAD", cwd=tree)
    left = [name for name in ("x/.git", ".git", "logs/y/hooks") if (own / name).exists()]
    assert (ran.code, left) == (0, [])
    assert "sandbox removed worktrees/cnv_a/.git, worktrees/cnv_a/logs/y/hooks" in ran.output
    assert bench.run("git log -1 --format=%s", cwd=tree).output == "Begin\n"


def test_a_command_in_a_work_tree_leaves_no_lock_of_what_all_share(bench: Bench) -> None:
    tree = add_work_tree(bench, "cnv_a")
    ran = bench.run("cd ../../.git; touch config.lock index.lock HEAD.lock", cwd=tree)
    assert ran.code == 0
    assert list((bench.workspace / ".git").glob("*.lock")) == []


def test_a_commit_whose_message_a_person_writes_while_a_command_runs_in_a_work_tree_is_made(
    bench: Bench,
) -> None:
    bench.write("a.txt", "")
    bench.git("add", "a.txt")
    tree = add_work_tree(bench, "cnv_a")
    bench.write("a.txt", "changed")
    line = "touch begun; until [ -e go ]; do sleep 0.1; done"
    editor = bench.write(
        "editor",
        f"touch {tree}/go; until [ -e {tree}/ended ]; do sleep 0.1; done; echo Message > $1",
    )
    with bench.asked(line, cwd=tree) as speaker, ThreadPoolExecutor(1) as threads:
        while not (tree / "begun").exists():
            time.sleep(0.01)
        who = ("-c", "user.name=x", "-c", "user.email=x", "-c", f"core.editor=sh {editor}")
        committing = threads.submit(bench.git, *who, "commit", "-q", "-a")
        answer = speaker.recv(100)
        (tree / "ended").touch()
        committing.result()
    assert answer == b"0 "
    bench.git("diff", "--cached", "--exit-code")


def test_a_command_in_a_work_tree_leaves_no_changes_that_a_person_s_commit_would_bring(
    bench: Bench,
) -> None:
    tree = add_work_tree(bench, "cnv_a")
    bench.run("git rev-parse HEAD > ../../.git/MERGE_AUTOSTASH", cwd=tree)
    assert not (bench.workspace / ".git/MERGE_AUTOSTASH").exists()


@pytest.mark.parametrize("is_in_tree", [True, False])
@pytest.mark.parametrize("is_used", [True, False])
def test_a_person_s_commit_copies_no_file_to_where_a_command_reads_it(
    bench: Bench, *, is_used: bool, is_in_tree: bool
) -> None:
    """Git records the resolutions of conflicts so, in the files that a list names."""
    for name, value in (("user.name", "x"), ("user.email", "x")):
        bench.git("config", name, value)
    if is_used:
        bench.git("config", "rerere.enabled", "true")
        bench.write(f".git/rr-cache/{'a' * 40}/preimage", "")
    tree = add_work_tree(bench, "cnv_a") if is_in_tree else bench.workspace
    repository = bench.workspace / ".git"
    ran = bench.run(
        f"cd {repository}; mkdir -p rr-cache/{'a' * 40}; touch rr-cache/{'a' * 40}/preimage;"
        f" printf '{'a' * 40}\\t.env\\0' > MERGE_RR",
        cwd=tree,
    )
    assert ("rr-cache." in ran.output) is not is_used
    bench.git("commit", "-q", "--allow-empty", "-m", "One")
    assert SECRET not in bench.run(f"cat {repository}/rr-cache/*/*", cwd=tree).output


def test_git_in_the_box_merges_where_a_person_has_it_record_resolutions(bench: Bench) -> None:
    bench.git("config", "rerere.enabled", "true")
    bench.write(".git/rr-cache/x", "")
    line = "echo {0} > a; git add a; git commit -qm {0}"
    begin = f"git checkout -q -b one; {line.format('1')}; git checkout -q -b two HEAD^"
    bench.run(f"git commit -q --allow-empty -m 0; {begin}; {line.format('2')}; git merge -q one")
    ran = bench.run("echo 3 > a; git commit -qam Merged; git status -s; git log -1 --format=%s")
    assert ran.output == "Merged\n"


@pytest.mark.parametrize("is_in_tree", [True, False])
def test_a_person_whose_git_begins_to_record_resolutions_while_a_command_runs_can_commit(
    bench: Bench, *, is_in_tree: bool
) -> None:
    for name, value in (("user.name", "x"), ("user.email", "x")):
        bench.git("config", name, value)
    tree = add_work_tree(bench, "cnv_a") if is_in_tree else bench.workspace
    bench.git("commit", "-q", "--allow-empty", "-m", "Base")
    for branch, start in (("one", "HEAD"), ("two", "HEAD^")):
        bench.git("checkout", "-q", "-b", branch, start)
        bench.write("a.txt", branch)
        bench.git("add", "a.txt")
        bench.git("commit", "-q", "-m", branch)
    with while_a_command_runs(bench, tree), pytest.raises(subprocess.CalledProcessError):
        bench.git("-c", "rerere.enabled=true", "merge", "-q", "one")
    for content in ("both", "more"):
        bench.write("a.txt", content)
        bench.git("-c", "rerere.enabled=true", "commit", "-q", "-a", "-m", content)


@pytest.mark.parametrize("words", [("rebase", "main"), ("merge", "main"), ("cherry-pick", "main")])
def test_what_a_person_begins_in_the_workspace_while_a_command_runs_in_a_work_tree_stays(
    bench: Bench, words: tuple[str, ...]
) -> None:
    for name, value in (("user.name", "x"), ("user.email", "x"), ("core.editor", "true")):
        bench.git("config", name, value)
    bench.git("symbolic-ref", "HEAD", "refs/heads/main")
    tree = add_work_tree(bench, "cnv_a")
    bench.git("branch", "theirs")
    for branch in ("main", "theirs"):
        bench.git("checkout", "-q", branch)
        bench.write("a.txt", branch)
        bench.git("add", "a.txt")
        bench.git("commit", "-q", "-m", branch)
    with while_a_command_runs(bench, tree), pytest.raises(subprocess.CalledProcessError):
        bench.git(*words)
    bench.git("add", "a.txt")
    bench.git(words[0], "--continue")


@pytest.mark.parametrize("is_in_tree", [True, False])
def test_the_settings_that_a_new_work_tree_gets_while_a_command_runs_stay(
    bench: Bench, *, is_in_tree: bool
) -> None:
    bench.write("d/x", "")
    bench.git("add", "d")
    tree = add_work_tree(bench, "cnv_a")
    bench.git("sparse-checkout", "set", "--cone")
    folder = tree if is_in_tree else bench.workspace
    with while_a_command_runs(bench, folder):
        bench.git("worktree", "add", "-q", ".candor-worktrees/cnv_b")
    assert (bench.workspace / ".git/worktrees/cnv_b/config.worktree").exists()


def test_a_link_that_a_person_changes_where_no_command_can_stays_changed(bench: Bench) -> None:
    bench.write(".devcontainer/x", "")
    link = bench.workspace / ".devcontainer/server.pem"
    link.symlink_to("a.txt")
    with while_a_command_runs(bench, bench.workspace):
        link.unlink()
        link.symlink_to("b.txt")
    assert str(link.readlink()) == "b.txt"


@pytest.mark.parametrize("target", ["{workspace}/shared/x.txt", "../{name}/shared/x.txt"])
def test_a_secret_that_a_link_leads_to_is_empty_however_the_link_says_it(
    bench: Bench, target: str
) -> None:
    bench.write("shared/x.txt", SECRET)
    (bench.workspace / ".netrc").symlink_to(
        target.format(workspace=bench.workspace, name=bench.workspace.name)
    )
    assert bench.run("cat .netrc shared/x.txt").output == ""


def test_a_link_by_way_of_other_links_is_covered_and_stays(bench: Bench) -> None:
    bench.write("v1/x.txt", SECRET)
    bench.write("docs/rules.md", "Rules.\n")
    links = {".netrc": "now/y.txt", "now": "v1", "v1/y.txt": "./x.txt"}
    links |= {"CLAUDE.md": "AGENTS.md", "AGENTS.md": "more/../rules", "rules": "docs/rules.md"}
    links |= {"more": "v1", ".pypirc": "v1/x.txt/none", "a.pem": "b.pem", "b.pem": "a.pem"}
    for name, target in links.items():
        (bench.workspace / name).symlink_to(target)
    ran = bench.run(
        "cat .netrc v1/x.txt; cat CLAUDE.md; echo x >> docs/rules.md;"
        " ln -sfn docs now; rm rules; echo evil > rules"
    )
    assert SECRET not in ran.output
    assert "Rules.\n" in ran.output
    assert "the sandbox removed now, rules." in ran.output
    assert (bench.workspace / "docs/rules.md").read_text() == "Rules.\n"
    assert {name: os.readlink(bench.workspace / name) for name in links} == links  # noqa: PTH115


@pytest.mark.parametrize(
    ("links", "line"),
    [
        ({"sub/.netrc": "../shared/x.txt"}, "rm -r sub"),
        ({".netrc": "sub/l", "sub/l": "../shared/x.txt"}, "mv sub other"),
        ({".netrc": "sub/er/../../shared/x.txt"}, "rm -r sub"),
    ],
)
def test_a_secret_that_a_link_leads_to_stays_covered_whatever_becomes_of_the_way(
    bench: Bench, links: dict[str, str], line: str
) -> None:
    bench.write("shared/x.txt", SECRET)
    bench.write("sub/er/y.txt", "")
    for name, target in links.items():
        (bench.workspace / name).symlink_to(target)
    bench.run(line)
    assert SECRET not in bench.run("cat shared/x.txt").output


@pytest.mark.parametrize("target", ["/nowhere/x.txt", "../.env", "../keys/.ssh/x.txt"])
def test_a_folder_whose_link_alone_tells_of_no_secret_can_be_removed(
    bench: Bench, target: str
) -> None:
    """The links of a repository's packages lead to the `.env` at its top."""
    bench.write("sub/y.txt", "")
    bench.write("keys/.ssh/x.txt", SECRET)
    (bench.workspace / "sub/.netrc").symlink_to(target)
    assert bench.run("mv sub other; rm -r other").output == ""
    assert not (bench.workspace / "sub").exists()
    assert SECRET not in bench.run("cat .env keys/.ssh/x.txt").output


def test_links_of_a_command_on_the_way_of_a_protected_one_stay(bench: Bench) -> None:
    bench.write("x", "")
    (bench.workspace / "theirs").symlink_to("x")
    ran = bench.run("ln -s x own; ln -s own .netrc; ln -s theirs CLAUDE.md")
    assert ran.output == "Protected names cannot be made here; the sandbox removed CLAUDE.md.\n"
    assert bench.run("readlink own theirs").output == "x\nx\n"


def test_a_repository_with_links_has_work_trees_with_commands(bench: Bench) -> None:
    tree = add_work_tree(bench, "cnv_a")
    shutil.rmtree(bench.workspace / ".git/hooks")
    bench.write(".git/own-hooks/update", "")
    (bench.workspace / ".git/hooks").symlink_to("own-hooks")
    (bench.workspace / ".git/remotes").symlink_to("../hooks")
    ran = bench.run("cd ../../.git; echo > own-hooks/update; rm hooks; mkdir hooks", cwd=tree)
    assert "own-hooks/update: Read-only file system" in ran.output
    assert "the sandbox removed hooks." in ran.output
    assert str((bench.workspace / ".git/hooks").readlink()) == "own-hooks"


def test_a_link_to_what_is_hidden_keeps_no_command_from_running(bench: Bench) -> None:
    bench.write("keys/.ssh/id_rsa", SECRET)
    bench.run("ln -s keys/.ssh/id_rsa .netrc")
    assert bench.run("cat .netrc; echo ran").output.endswith("ran\n")


def test_the_top_of_the_workspace_is_no_repository_with_settings_of_a_command(bench: Bench) -> None:
    shutil.rmtree(bench.workspace / ".git")
    evil = "[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch\n"
    ran = bench.run(
        f"mkdir objects refs hooks; echo 'ref: refs/heads/x' > HEAD; printf '{evil}' > config;"
        " echo > hooks/update"
    )
    assert "the sandbox removed hooks" in ran.output
    assert "the sandbox rewrote config" in ran.output
    assert "fsmonitor" not in (bench.workspace / "config").read_text()


def test_more_secrets_than_can_be_covered_are_named_as_the_reason(bench: Bench) -> None:
    for number in range(210):
        bench.write(f"d{number}/.env", SECRET)
    ran = bench.run("cat */.env")
    assert (ran.code, SECRET in ran.output) == (126, False)
    assert "too many files and folders with the names of secrets" in ran.output
    assert "at most 400" in ran.output
    for number in range(20):
        shutil.rmtree(bench.workspace / f"d{number}")
    assert bench.run("echo runs").output == "runs\n"
