"""What the box keeps, each with a real command in it, by a broker of root's and by an ordinary user's.

Among them are the ways out of such sandboxes that were published.
"""

import os
import re
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gateway.engine.processes import MARK
from tests.support.boxes import ANSWER_S, USERS, Bench, Ran, box_bench
from tests.support.walls import needs_boxes

pytestmark = needs_boxes

SECRET = "S3CR3T-OF-A-PERSON"
SETTINGS = "{}"


@pytest.fixture(scope="module", params=USERS)
def shared(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with box_bench(request.param) as bench:
        yield bench


@pytest.fixture
def bench(shared: Bench) -> Bench:
    """A workspace with what is protected, made anew: a repository, secrets, settings of an agent."""
    for entry in shared.workspace.iterdir():
        subprocess.run(["rm", "-rf", str(entry)], check=True)
    shared.git("init", "-q")
    shared.write("readme.md", "Hello\n")
    shared.write(".env", SECRET)
    shared.write("deep/er/.env.local", SECRET)
    shared.write("keys/.ssh/id_rsa", SECRET)
    shared.write(".claude/settings.json", SETTINGS)
    shared.write("CLAUDE.md", "Be kind.\n")
    shared.write("lib/.git/HEAD", "ref: refs/heads/main\n")
    shared.write("lib/.git/config", "[core]\n\tbare = false\n")
    for folder in ("objects", "refs", "hooks"):
        shared.write(f"lib/.git/{folder}/.keep", "")
    return shared


def test_ordinary_work_is_done(bench: Bench) -> None:
    ran = bench.run(
        "printf 'a\\nb\\n' | sort -r > sorted.txt && cat sorted.txt && mkdir -p x/y && cd x/y && pwd"
    )
    assert (ran.code, ran.output) == (0, f"b\na\n{bench.workspace}/x/y\n")
    status = (bench.workspace / "sorted.txt").stat()
    assert status.st_uid == bench.starter


def test_make_and_npm_do_their_work(bench: Bench) -> None:
    bench.write("Makefile", "all: part\n\tcat part > whole\npart:\n\techo made > part\n")
    ran = bench.run(
        "make -s -j2 && cat whole && npm init -y > /dev/null"
        " && npm pkg set scripts.test='node -p 6*7' && npm test --silent"
    )
    assert (ran.code, ran.output) == (0, "made\n42\n")


def test_the_last_working_directory_comes_back(bench: Bench) -> None:
    file = f"{bench.box.plan.temporary}/claude-1f-cwd"
    ran = bench.run(f"cd keys && pwd -P >| {file}", cwd_file=file)
    assert ran.ended_in == f"{bench.workspace}/keys"
    other = f"{bench.root}/elsewhere-cwd"
    assert bench.run(f"pwd -P >| {other}", cwd_file=other).ended_in == ""


def test_secrets_are_empty(bench: Bench) -> None:
    ran = bench.run(
        "cat .env deep/er/.env.local; ls keys/.ssh; cp -r . /tmp/all; grep -r S3CR3T /tmp /etc /var . 2>/dev/null"
    )
    assert SECRET not in ran.output
    assert (bench.workspace / ".env").read_text() == SECRET


@pytest.mark.parametrize(
    "line",
    [
        "echo x > .env",
        "rm -f .env",
        "mv .env taken",
        "ln .env second && cat second",
        "mv deep away && cat away/er/.env.local",
        "mv deep/er deep/away && cat deep/away/.env.local",
        "rm -rf keys; ls keys/.ssh/id_rsa",
        "umount .env",
        "echo x > .claude/settings.json",
        "mv .claude other && mkdir .claude && echo x > .claude/settings.json",
        "rm -rf .claude",
        "echo x >> CLAUDE.md",
        "ln -sf readme.md CLAUDE.md",
        "mv CLAUDE.md x",
        "echo x > .git/config",
        "git config core.fsmonitor ./evil",
        "git config --global core.hooksPath . && exit 1",
        "mv .git other && git init -q && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        "echo x > lib/.git/hooks/pre-commit",
        "mv lib other && mkdir -p lib/.git/hooks && echo x > lib/.git/hooks/pre-commit",
        "rm -rf lib",
    ],
)
def test_what_is_protected_stays_as_it_is(bench: Bench, line: str) -> None:
    before = protected_files(bench.workspace)
    ran = bench.run(f"({line}) && echo DONE-ANYWAY")
    assert "DONE-ANYWAY" not in ran.output
    assert SECRET not in ran.output
    assert protected_files(bench.workspace) == before


def protected_files(workspace: Path) -> dict[str, bytes]:
    """Return the content of everything below a protected name."""
    names = re.compile(r"/(\.env[^/]*|\.ssh|\.claude|CLAUDE\.md|\.git/(config|hooks|info))(/|$)")
    files = (path for path in workspace.rglob("*") if path.is_file() or path.is_symlink())
    return {str(path): path.read_bytes() for path in files if names.search(str(path))}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("mkdir -p a/b/.claude && echo x > a/b/.claude/settings.json", ["a/b/.claude"]),
        ("echo x > a.txt; echo x > .mcp.json; ln -s a.txt AGENTS.md", [".mcp.json", "AGENTS.md"]),
        ("mkdir .CLAUDE .vscode", [".CLAUDE", ".vscode"]),
        (
            "mkdir -p refs/gh/instructions a; ln -s refs/gh .github; ln -s ../gh a/.config",
            [".github", "a/.config"],
        ),
        ("git config -f .gitconfig core.fsmonitor evil", [".gitconfig"]),
        (
            "mkdir -m 0 shut; mkdir open; mkdir open/.claude; chmod 0 open/.claude open",
            ["open/.claude"],
        ),
        (
            "git init -q new; mkdir new/.git/hooks; echo x > new/.git/hooks/pre-commit",
            ["new/.git/hooks"],
        ),
        ("mkdir -p .git/modules/x; echo x > .git/commondir", [".git/commondir", ".git/modules"]),
        (
            "git init -q new; mkdir new/.git/remotes .git/remotes; echo URL: /x > .git/remotes/origin",
            ["new/.git/remotes", ".git/remotes"],
        ),
        (
            "mkdir bare; cd bare; mkdir objects refs hooks; echo > HEAD; echo > hooks/update",
            ["bare/hooks"],
        ),
        (
            "mkdir -p split/c/objects split/c/refs; cd split; echo > HEAD; echo c > commondir; > config.worktree",
            ["split/commondir", "split/config.worktree"],
        ),
        (
            "ln -s /tmp/x .git/COMMIT_EDITMSG; mkdir -p .git/logs/refs; ln -s ../../a .git/logs/refs/x",
            [".git/COMMIT_EDITMSG", ".git/logs/refs/x"],
        ),
        (
            "cd .git; rm HEAD; for name in HEAD COMMIT_EDITMSG FETCH_HEAD; do ln -s refs/heads/main $name; done",
            [".git/COMMIT_EDITMSG", ".git/FETCH_HEAD"],
        ),
        (
            "mkdir -p .git/x/.git .git/y/objects .git/y/refs; cd .git/y; > HEAD; mkdir hooks; ln -s .git/y ../../src",
            [".git/x/.git", ".git/y/hooks"],
        ),
        (
            "mkdir -p .env.d/.ssh; cd .env.d/.ssh; git init -q; mkdir .git/hooks; > ../CLAUDE.md",
            [".env.d/.ssh/.git/hooks", ".env.d/CLAUDE.md"],
        ),
        (
            "mkdir -p bare/objects bare/refs bare/.claude bare/x/.vscode; echo > bare/HEAD",
            ["bare/.claude", "bare/x/.vscode"],
        ),
        ("mkdir a; echo x > a/.bashrc; chmod 500 a", ["a/.bashrc"]),
        ("mkdir a; ln -s /tmp a/.vscode; chmod 100 a", ["a/.vscode"]),
        ("echo 'gitdir: /tmp/x' > lib2.git; mkdir q; echo 'gitdir: ../x' > q/.git", ["q/.git"]),
    ],
)
def test_what_a_command_makes_under_a_protected_name_is_removed_and_named(
    bench: Bench, line: str, names: list[str]
) -> None:
    ran = bench.run(line)
    for name in names:
        assert not os.path.lexists(bench.workspace / name), name
        assert name in ran.output
    assert bench.run("true").output == ""


DEEP = """python3 - <<'END'
import os
for _ in range({}):
    os.mkdir('d' * 40); os.chdir('d' * 40)
END"""


def test_what_is_too_deep_to_be_deleted_loses_its_name_at_least(bench: Bench) -> None:
    ran = bench.run(
        f"mkdir .vscode && echo evil > .vscode/tasks.json && cd .vscode && {DEEP.format(1500)}"
    )
    assert not (bench.workspace / ".vscode").exists()
    assert "the sandbox removed .vscode." in ran.output
    assert bench.run("true").code == 126  # until a person has looked at what is left


def test_what_cannot_be_searched_is_not_worked_in_and_hides_nothing_else(bench: Bench) -> None:
    ran = bench.run(f"echo evil > AGENTS.md; {DEEP.format(200)}")
    assert "the sandbox removed AGENTS.md." in ran.output
    assert not (bench.workspace / "AGENTS.md").exists()
    again = bench.run("echo x > made")
    assert again.code == 126
    assert again.output.startswith("This command did not run: the folder dddd")
    assert again.output.endswith("cannot be read (File name too long).\n")
    assert not (bench.workspace / "made").exists()


def test_a_link_that_is_protected_is_put_back_and_what_it_leads_to_is_protected(
    bench: Bench,
) -> None:
    bench.write("shared/rules.md", "Rules.\n")
    bench.write("shared/password.txt", SECRET)
    links = {"GEMINI.md": "shared/rules.md", ".netrc": "shared/password.txt"}
    for name, target in links.items():
        (bench.workspace / name).symlink_to(target)
    ran = bench.run(
        "echo x >> GEMINI.md; echo x >> shared/rules.md; cat .netrc shared/password.txt;"
        " rm GEMINI.md; echo evil > GEMINI.md"
    )
    assert SECRET not in ran.output
    assert (bench.workspace / "shared/rules.md").read_text() == "Rules.\n"
    for name, target in links.items():
        assert str((bench.workspace / name).readlink()) == target


def test_a_link_of_a_person_s_in_a_repository_is_put_back_and_what_it_leads_to_is_written(
    bench: Bench,
) -> None:
    bench.write("logs/HEAD", "")
    log = bench.workspace / ".git/logs"
    log.symlink_to("../old")
    link = bench.workspace / ".git/refs/heads/now"
    link.symlink_to("refs/heads/main")
    ran = bench.run("mkdir old; echo x > .git/logs/HEAD; rm .git/logs; ln -s ../lib .git/logs")
    assert ran.output == "Protected names cannot be made here; the sandbox removed .git/logs.\n"
    assert str(log.readlink()) == "../old"
    assert (bench.workspace / "old/HEAD").read_text() == "x\n"
    assert bench.run("ln -sfn refs/heads/other .git/refs/heads/now").output == ""
    assert str(link.readlink()) == "refs/heads/other"


def test_passwords_in_a_repository_s_settings_are_left_out(bench: Bench) -> None:
    bench.git("remote", "add", "origin", f"https://me:{SECRET}@example.com/x.git")
    bench.git("config", "http.https://example.com/.extraheader", f"AUTHORIZATION: basic {SECRET}")
    bench.git("config", "sendemail.smtpPass", SECRET)
    bench.git("config", "remote.other.url", f"https://me:p@{SECRET}@example.com/y.git")
    with (bench.workspace / ".git/config").open("a", encoding="utf-8") as settings:
        settings.write(f"[http] extraHeader = X: \\\n  {SECRET}\n")
    ran = bench.run("cat .git/config; git remote -v")
    assert "https://example.com/x.git" in ran.output
    assert SECRET not in ran.output


def test_an_untracked_secret_is_not_added_to_a_repository(bench: Bench) -> None:
    ran = bench.run("git add -A . ':!lib' 2>&1; git commit -qm All && git ls-files")
    assert ran.code == 0
    assert "readme.md" in ran.output
    assert ".env" not in ran.output


def test_no_file_runs_as_its_owner(bench: Bench) -> None:
    """On the disk it would belong to whom the workspace belongs, who may be root."""
    ran = bench.run(
        "cp /bin/bash b && chmod 4755 b; cp /bin/bash c && chmod g+s c; install -m 6755 /bin/bash d"
    )
    assert "Operation not permitted" in ran.output
    modes = [path.stat().st_mode for path in bench.workspace.rglob("*") if path.is_file()]
    assert not any(mode & (stat.S_ISUID | stat.S_ISGID) for mode in modes)


@pytest.mark.parametrize(
    "line",
    [
        "unshare -Ur true",
        "unshare -m true",
        "mount -t tmpfs none /tmp",
        "nsenter -t 1 -m true",
        "chroot . true",
        "su -c true",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
        "python3 -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)'",
        "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW)'",
        "python3 -c 'import ctypes; exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)'",
        "python3 -c 'import os; os.memfd_create(\"x\")'",
        "python3 -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")'",
        "echo 1 > /proc/sys/kernel/core_pattern",
        "echo b > /proc/sysrq-trigger",
        "echo x > /etc/passwd",
        "echo x > /usr/bin/evil",
        "mkdir /new",
        "mknod device c 1 3",
        "ls /sys/kernel",
        "ls /root || ls /home",
        "kill -9 -1 && kill -0 2",
    ],
)
def test_the_kernel_refuses(bench: Bench, line: str) -> None:
    assert bench.run(f"({line}) > /dev/null 2>&1").code != 0


def test_nothing_of_the_server_is_in_the_environment(bench: Bench) -> None:
    ran = bench.run(
        "env -0 | tr '\\0' '\\n' | cut -d= -f1 | sort | tr '\\n' ' '; cat /proc/*/environ | tr '\\0' '\\n' | grep -c TOKEN"
    )
    assert ran.output == (
        "CLAUDECODE GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0 GIT_EDITOR GIT_PAGER"
        " GIT_TEMPLATE_DIR GIT_TERMINAL_PROMPT HOME LANG LOGNAME PAGER PATH PWD SHELL SHLVL TERM TMPDIR USER _ 0\n"
    )


def test_no_descriptor_leads_past_a_cover(bench: Bench) -> None:
    ran = bench.run("for fd in /proc/self/fd/*; do readlink $fd; done; cat <&9 <&10 <&11")
    links = [line for line in ran.output.split("\n") if re.fullmatch(r"/\S+", line)]
    assert [line for line in links if line != "/dev/null" and not line.startswith("/proc/")] == []
    assert SECRET not in ran.output


def test_a_folder_that_was_a_link_at_the_start_of_a_command_leads_nowhere(bench: Bench) -> None:
    """The published way: a folder of the workspace is swapped for a link to a place outside."""
    (bench.root / "outside").mkdir()
    (bench.root / "outside" / "kept").write_text(SECRET)
    (bench.workspace / "link").symlink_to(bench.root / "outside")
    ran = bench.run("cat link/kept; echo x > link/new; ls -la link/ .. ../outside")
    assert SECRET not in ran.output
    assert [path.name for path in (bench.root / "outside").iterdir()] == ["kept"]
    subprocess.run(["rm", "-rf", str(bench.root / "outside")], check=True)


def test_background_processes_end_with_their_command(bench: Bench) -> None:
    ran = bench.run(
        "(setsid sh -c \"trap '' TERM HUP INT; sleep 300\" >/dev/null 2>&1 &); nohup sleep 301 & echo out"
    )
    assert ran.code == 0
    assert bench.left_running() == []


def test_the_processes_of_a_box_are_found_by_the_mark_of_their_agent(bench: Bench) -> None:
    """The engine waits for them, and kills them with the agent."""
    with bench.asked("echo started > started; sleep 300"):
        until = time.monotonic() + ANSWER_S
        while not (bench.workspace / "started").exists():
            assert time.monotonic() < until
        (outer,) = psutil.Process(bench.process.pid).children()
        (first,) = outer.children()
        assert [one.environ()[MARK] for one in (outer, first)] == ["mark", "mark"]
    (bench.workspace / "started").unlink()


def test_a_command_that_nobody_waits_for_ends(bench: Bench) -> None:
    with bench.asked("trap '' TERM; echo started > started; sleep 300"):
        until = time.monotonic() + ANSWER_S
        while not (bench.workspace / "started").exists():
            assert time.monotonic() < until
    assert bench.run("true").code == 0  # the next one begins when the last one has ended
    assert bench.left_running() == []


def test_a_program_that_cannot_read_the_key_is_not_served() -> None:
    """An MCP server, for instance: it reaches the socket, but not the files beside it."""
    with box_bench() as bench:
        for key in ("", "of-agent", "of-others"):
            bench.key = key
            assert bench.run("true") == Ran(None, "", "")
        bench.box.write_script_blocking()
        words = [str(bench.box.prefix), "echo served > by-key"]
        subprocess.run(words, check=True, cwd=bench.workspace, timeout=ANSWER_S)
        assert (bench.workspace / "by-key").read_text() == "served\n"


def test_a_broker_without_a_key_serves_nobody() -> None:
    with box_bench(key="") as bench:
        assert bench.run("true") == Ran(None, "", "")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can speak as somebody else")
def test_a_stranger_is_not_served(bench: Bench) -> None:
    """Only processes of whoever started the broker may speak to it."""
    real, bench.starter = bench.starter, 61_235
    try:
        with pytest.raises((ConnectionError, AssertionError)):
            assert bench.run("echo x > served").code is not None
    finally:
        bench.starter = real
    assert bench.run("ls served").code != 0


def test_further_folders_are_there_as_the_rules_say_and_protected_alike() -> None:
    for user in USERS:
        with box_bench(user) as place:
            for name in (
                "read/file",
                "write/file",
                "read/.env",
                "write/.env",
                "write/lib/.git/HEAD",
            ):
                path = place.root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(SECRET if name.endswith(".env") else name)
            for path in place.root.rglob("*"):
                os.chown(path, place.starter, place.starter)
            folders = [[name, str(place.root / name)] for name in ("read", "write")]
            with box_bench(user, folders=folders) as bench:
                ran = bench.run(
                    f"cd {place.root}; cat read/file write/file */.env; echo x > write/new;"
                    " echo x > read/new; mkdir write/.claude; echo x > write/lib/.git/config; mv write/.env write/x"
                )
                assert ran.output.startswith("read/filewrite/file")
                assert "Read-only file system" in ran.output
                assert "the sandbox removed .claude" in ran.output
                assert SECRET not in ran.output
            assert (place.root / "write/new").exists()
            assert not (place.root / "read/new").exists()
            assert not (place.root / "write/.claude").exists()
            assert (place.root / "write/.env").read_text() == SECRET
