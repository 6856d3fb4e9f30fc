"""The workspace: made whole at the start, never over anything that a person did."""

import contextlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.errors import StartError
from gateway.workspace import (
    MANIFEST,
    prepare_user_blocking,
    prepare_users_blocking,
    prepare_workspace_blocking,
    skill_names,
)
from policies.tools import validate_bash_command
from policies.verdict import Allow

REPOSITORY = Path(__file__).parents[3]
SHIPPED = REPOSITORY / ".claude" / "skills"
NAMES = ("memory-capture", "memory-case", "memory-organize", "memory-revise", "memory-summarize")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the shipped skills, to make a new version of."""
    return shutil.copytree(SHIPPED, tmp_path / "source")


def installed(workspace: Path, name: str) -> Path:
    return workspace / ".claude" / "skills" / name / "SKILL.md"


def upgrade(workspace: Path, source: Path, text: str) -> None:
    """Bring out a new version of one skill and start with it."""
    (source / "memory-capture" / "SKILL.md").write_text(text, encoding="utf-8")
    prepare_workspace_blocking(workspace, source)


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below `root`, with what changes when somebody writes it."""
    return {
        str(path.relative_to(root)): (
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            path.read_bytes(),
        )
        for path in root.rglob("*")
        if path.is_file()
    }


def capture(workspace: Path) -> str:
    return installed(workspace, "memory-capture").read_text(encoding="utf-8")


def test_a_new_workspace_is_furnished_and_a_second_run_only_puts_back_what_is_missing(
    workspace: Path,
) -> None:
    prepare_workspace_blocking(workspace, SHIPPED)
    readme = (workspace / "memory" / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("# Memory\n")
    assert "\n# 记忆\n" in readme
    for name in NAMES:
        assert installed(workspace, name).read_bytes() == (SHIPPED / name / "SKILL.md").read_bytes()
    before = tree(workspace)
    assert set(before) == {
        "memory/README.md",
        f".claude/skills/{MANIFEST}",
        *(f".claude/skills/{name}/SKILL.md" for name in NAMES),
    }
    prepare_workspace_blocking(workspace, SHIPPED)
    assert tree(workspace) == before
    shutil.rmtree(installed(workspace, "memory-revise").parent)
    installed(workspace, "memory-capture").unlink()
    prepare_workspace_blocking(workspace, SHIPPED)
    assert all(installed(workspace, name).is_file() for name in NAMES)


def test_a_users_folder_is_furnished_for_this_user_alone(tmp_path: Path) -> None:
    own, ada = (tmp_path / "ws" / "users" / name for name in (".server", "ada"))
    for _ in range(2):
        prepare_users_blocking(own)
        prepare_user_blocking(ada, SHIPPED)
    for folder in (own.parent, own, ada):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(own.iterdir()) == []
    assert all(installed(ada, name).is_file() for name in NAMES)
    assert (ada / "memory" / "README.md").is_file()


@pytest.mark.parametrize("name", ["users", "users/.server", "users/ada"])
def test_a_link_in_the_place_of_a_users_folder_is_refused(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = tmp_path / "ws" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)

    def prepare() -> None:
        prepare_users_blocking(tmp_path / "ws/users/.server")
        prepare_user_blocking(tmp_path / "ws/users/ada", SHIPPED)

    with pytest.raises(StartError, match="must be a real folder, not a link or a file"):
        prepare()
    assert list(elsewhere.iterdir()) == []


def test_what_people_keep_in_the_workspace_stays_through_new_versions(
    workspace: Path, source: Path
) -> None:
    own = workspace / "memory" / "README.md", installed(workspace, "memory-capture")
    for file in (*own, installed(workspace, "my-skill")):
        file.parent.mkdir(parents=True)
        file.write_text("here first", encoding="utf-8")
    before = tree(workspace)
    prepare_workspace_blocking(workspace, source)
    manifest = json.loads((workspace / ".claude" / "skills" / MANIFEST).read_bytes())
    assert sorted(manifest["skills"]) == list(NAMES[1:])
    upgrade(workspace, source, "version 2")
    after = tree(workspace)
    assert {name: after[name] for name in before} == before


def test_a_skill_that_the_user_changed_is_kept_through_new_versions(
    workspace: Path, source: Path
) -> None:
    prepare_workspace_blocking(workspace, source)
    installed(workspace, "memory-capture").write_text("my own way", encoding="utf-8")
    prepare_workspace_blocking(workspace, source)
    upgrade(workspace, source, "version 2")
    assert capture(workspace) == "my own way"


def test_an_untouched_skill_follows_the_new_version(workspace: Path, source: Path) -> None:
    prepare_workspace_blocking(workspace, source)
    others = {name: installed(workspace, name).stat().st_ino for name in NAMES[1:]}
    upgrade(workspace, source, "version 2")
    upgrade(workspace, source, "version 3")
    assert capture(workspace) == "version 3"
    assert {name: installed(workspace, name).stat().st_ino for name in others} == others


def test_a_manifest_that_cannot_be_understood_makes_every_difference_the_users(
    workspace: Path, source: Path
) -> None:
    prepare_workspace_blocking(workspace, source)
    old = installed(workspace, "memory-capture").read_bytes()
    for manifest in (b"", b"[]", b'{"skills": []}', b'{"skills": {"memory-capture": 3}}', b"\xff"):
        (workspace / ".claude" / "skills" / MANIFEST).write_bytes(manifest)
        upgrade(workspace, source, "version 2")
        assert installed(workspace, "memory-capture").read_bytes() == old, manifest


@pytest.mark.parametrize("file", ["SKILL.md", MANIFEST])
def test_a_full_disk_in_mid_update_costs_nothing_and_the_next_start_completes_it(
    workspace: Path, source: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """The hash is noted before the file is written, so neither version counts as the user's."""
    prepare_workspace_blocking(workspace, source)
    old = installed(workspace, "memory-capture").read_bytes()
    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.name == file:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        with pytest.raises(StartError, match=r"No space left on device.*CANDOR_WORKSPACE"):
            upgrade(workspace, source, "version 2")
    assert installed(workspace, "memory-capture").read_bytes() == old
    assert not list(workspace.rglob("*.part"))
    upgrade(workspace, source, "version 3")
    assert capture(workspace) == "version 3"


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
@pytest.mark.parametrize("link", ["memory", ".claude", ".claude/skills"])
def test_a_link_in_the_place_of_our_folders_is_refused_and_not_written_through(
    tmp_path: Path, workspace: Path, link: str, *, inside: bool
) -> None:
    target = (workspace if inside else tmp_path) / "elsewhere"
    target.mkdir(parents=True)
    (workspace / link).parent.mkdir(parents=True, exist_ok=True)
    (workspace / link).symlink_to(target)
    with pytest.raises(StartError, match="not a link"):
        prepare_workspace_blocking(workspace, SHIPPED)
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("link", ["", "/SKILL.md"], ids=["folder", "file"])
@pytest.mark.parametrize("dangling", [True, False])
def test_a_skill_that_is_a_link_is_the_users_and_not_written_through(
    tmp_path: Path, workspace: Path, source: Path, link: str, *, dangling: bool
) -> None:
    prepare_workspace_blocking(workspace, source)
    folder = installed(workspace, "memory-capture").parent
    outside = tmp_path / "outside"
    shutil.copytree(folder, outside)
    before = tree(outside)
    shutil.rmtree(folder)
    place = Path(f"{folder}{link}")
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(tmp_path / "nowhere" if dangling else Path(f"{outside}{link}"))
    upgrade(workspace, source, "version 2")
    assert place.is_symlink()
    assert tree(outside) == before
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("link", [f".claude/skills/{MANIFEST}", "memory/README.md"])
def test_no_file_of_ours_is_written_through_a_link(
    tmp_path: Path, workspace: Path, link: str
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("theirs", encoding="utf-8")
    (workspace / link).parent.mkdir(parents=True)
    (workspace / link).symlink_to(outside)
    refused = pytest.raises(StartError, match="not a link")
    with refused if link.endswith(MANIFEST) else contextlib.nullcontext():
        prepare_workspace_blocking(workspace, SHIPPED)
    assert outside.read_text(encoding="utf-8") == "theirs"
    assert (workspace / link).is_symlink()


def test_a_file_or_folder_where_a_skill_belongs_is_left_alone(workspace: Path) -> None:
    skills = workspace / ".claude" / "skills"
    skills.mkdir(parents=True)
    (skills / "memory-capture").write_text("a file", encoding="utf-8")
    (skills / "memory-revise" / "SKILL.md").mkdir(parents=True)
    prepare_workspace_blocking(workspace, SHIPPED)
    assert (skills / "memory-capture").read_text(encoding="utf-8") == "a file"
    assert (skills / "memory-revise" / "SKILL.md").is_dir()


@pytest.mark.parametrize("kind", ["file", "below_file", "dangling_link"])
def test_a_workspace_that_is_no_directory_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "dangling_link":
        place.symlink_to(tmp_path / "nowhere")
    else:
        place.write_text("a file", encoding="utf-8")
    workspace = place / "workspace" if kind == "below_file" else place
    with pytest.raises(StartError, match="is not a directory; set CANDOR_WORKSPACE"):
        prepare_workspace_blocking(workspace, SHIPPED)


@pytest.mark.parametrize("is_there", [True, False])
def test_missing_skills_are_told_before_anything_is_made(
    tmp_path: Path, workspace: Path, *, is_there: bool
) -> None:
    source = tmp_path / "no-skills"
    if is_there:
        source.mkdir()
    with pytest.raises(StartError, match="missing from"):
        skill_names(source)
    with pytest.raises(StartError, match="missing from"):
        prepare_workspace_blocking(workspace, source)
    assert not workspace.exists()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        for path in folder.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)


_AS_NOBODY = """
import os, sys
from pathlib import Path
from gateway.errors import StartError
from gateway.workspace import prepare_workspace_blocking
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    prepare_workspace_blocking(Path(sys.argv[1]), Path(sys.argv[2]))
except StartError as exc:
    print(exc)
    sys.exit(3)
"""


def prepare_as_nobody(workspace: Path, source: Path) -> subprocess.CompletedProcess[str]:
    """Prepare in a process without root's powers, to which every folder is writable."""
    return subprocess.run(
        [sys.executable, "-c", _AS_NOBODY, str(workspace), str(source)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def hand_over(root: Path) -> None:
    """Change the owner of everything below `root` to the user of the other process."""
    if os.geteuid() == 0:
        for path in (root, *root.rglob("*")):
            os.chown(path, 65534, 65534)


needs_users = pytest.mark.skipif(not hasattr(os, "setuid"), reason="no POSIX permissions here")


@needs_users
def test_a_complete_workspace_must_be_writable_but_for_the_claude_folder(open_folder: Path) -> None:
    """Only trying to write tells; an operator may write-protect what the agent obeys."""
    workspace = open_folder / "workspace"
    source = shutil.copytree(SHIPPED, open_folder / "source")
    prepare_workspace_blocking(workspace, source)
    hand_over(workspace)
    for folder in (".claude/skills", ".claude"):
        (workspace / folder).chmod(0o555)
    done = prepare_as_nobody(workspace, source)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for folder in ("memory", "."):
        (workspace / folder).chmod(0o555)
        done = prepare_as_nobody(workspace, source)
        (workspace / folder).chmod(0o755)
        assert (done.returncode, done.stderr) == (3, "")
        assert done.stdout == (
            f"The workspace {workspace} cannot be made or written: Permission denied; set "
            "CANDOR_WORKSPACE to a folder that the server may read and write.\n"
        )


@needs_users
def test_files_are_made_with_the_users_own_permissions(workspace: Path) -> None:
    """People edit these files: they are not as private as a temporary file's default."""
    before = os.umask(0o022)
    try:
        prepare_workspace_blocking(workspace, SHIPPED)
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in workspace.rglob("*") if path.is_file()}
    assert modes == {0o644}


def test_every_shipped_skill_is_found_in_two_languages_and_passes_the_gate(workspace: Path) -> None:
    """An exclamation mark before a backtick runs a command when the skill is loaded; no gate sees it."""
    (workspace / "memory").mkdir(parents=True)
    assert skill_names(SHIPPED) == NAMES
    for name in NAMES:
        assert [path.name for path in (SHIPPED / name).iterdir()] == ["SKILL.md"]
        text = (SHIPPED / name / "SKILL.md").read_text(encoding="utf-8")
        lines = text.splitlines()
        fields = dict(line.split(": ", 1) for line in lines[1 : lines.index("---", 1)])
        assert sorted(fields) == ["description", "name"]
        assert fields["name"] == name
        assert ": " not in fields["description"]  # a plain scalar in YAML
        assert len(fields["description"]) <= 500
        assert re.search(r'"[a-z]', fields["description"])
        assert re.search("[\u4e00-\u9fff]", fields["description"])
        assert not re.search(r"!`|\$ARGUMENTS|\$\d|\$\{", text), name
        assert not re.search(r"(?m)^@|\s@\S", text), name
        for command in re.findall(r"`((?:rm|mv|cp|mkdir|ls|cat) [^`]+)`", text):
            verdict = validate_bash_command(command, root=workspace, cwd=workspace)
            assert isinstance(verdict, Allow), (command, verdict)


def test_what_another_server_makes_meanwhile_is_taken_as_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers may begin with a workspace at the same moment."""
    prepare_workspace_blocking(tmp_path / "ws", SHIPPED)
    monkeypatch.setattr("gateway.workspace.os.path.lexists", lambda _: False)
    prepare_workspace_blocking(tmp_path / "ws", SHIPPED)
